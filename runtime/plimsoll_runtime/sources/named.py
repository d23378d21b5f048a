"""Addresses that variables hold, with a name and a password in them: these go into a header, and never into a text."""

from __future__ import annotations

import base64
import contextlib
from urllib.parse import SplitResult, unquote, urlsplit

from plimsoll_runtime.sources.trouble import failed


def parts_in(name: str, url: str, remedy: str) -> SplitResult:
    """The parts of the address in a variable. Where its password is not escaped, a part of that is taken for the host, the port or the path,
    so what is wrong is told by the variable's name alone."""
    with contextlib.suppress(ValueError):
        parts = urlsplit(url)
        if parts.port != 0 and parts.hostname and "@" not in f"{parts.path}{parts.query}{parts.fragment}":
            return parts
    message = f"{name} is no address; characters such as / # ? @ in its password must be escaped (%2F)"
    raise failed("Download", message, remedy)


def basic(url: SplitResult) -> str | None:
    """What a header says of the name and the password in an address; None where it has none."""
    if url.username is None:
        return None
    credentials = f"{unquote(url.username)}:{unquote(url.password or '')}"
    return "Basic " + base64.b64encode(credentials.encode()).decode()
