"""Texts without the passwords of the addresses in them, as of a proxy or a mirror: what is wrong with an address goes into logs and
conditions, which more people read than the file.

A password may hold any sign, as it may not be escaped where the address is refused, so all up to the last @ is taken for one.
"""

from __future__ import annotations

import re
from typing import Final

_LAST_AT: Final = r".*@(?!sha\d+:)"
"""But the one of an image's digest."""
_FORMS: Final = (
    # Whoever is named to a server of the web or to a proxy may be a token.
    re.compile(rf"(?i)(\b(?:https?|socks\w*)://){_LAST_AT}"),
    re.compile(rf"(://)[^\s/]*:{_LAST_AT}"),
    # As some programs take a proxy: without a scheme.
    re.compile(rf"()(?<![\w/])[^\s/:@'\"][^\s:@'\"]*:(?!//)(?=\S){_LAST_AT}"),
)


def without_passwords(text: str) -> str:
    """Of one value, not of prose: what stands between two addresses goes too."""
    for form in _FORMS:
        text = form.sub(r"\1***@", text)
    return text
