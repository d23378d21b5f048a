"""The errors of calls to an API server, as a tree:

    KubeError
    ├── NotLeading       this process may not write: it does not hold the Lease
    ├── Unreachable      no answer: connection refused or cut, timed out
    │   └── Silent       a watch that was answered, and then said nothing for too long
    └── Refused          an answer with a status, in the server's words
        ├── NotFound     404
        ├── Conflict     409, of which AlreadyExists is one
        ├── Gone         410: the version that was asked for is no longer kept
        └── Invalid      400, 422: the object itself is at fault (also 500 for a field that the schema does not have)

`passes` says whether trying again may help without anybody doing anything. What to do about an error is left to the caller.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_PASSING = frozenset({401, 408, 409, 410, 425, 429})
"""401 is about who asks, never about the object: a server that cannot look a token up just now answers so, and one that was just renewed
may not be known everywhere yet."""
_UNDECLARED = "field not declared in schema"
"""How the server refuses a server-side apply of a field that the kind does not have. It says so with status 500, each time again."""

Field = tuple[str, ...]
"""The names on the way to a field; that of a list's items is one for all of them."""


class KubeError(Exception):
    """Any of the errors below."""

    passes = True


class NotLeading(KubeError):
    """A write that was not sent."""


class Unreachable(KubeError):
    """There was no answer, so it is not known whether the server did what was asked."""


class Silent(Unreachable):
    """A watch fell silent. Whether the server is gone or only has nothing to say shows when another watch is opened."""


class Refused(KubeError):
    passes = False

    def __init__(self, status: int, body: Mapping[str, Any], *, retry_after: float | None = None) -> None:
        self.status = status
        self.reason = str(body.get("reason") or "")
        self.message = str(body.get("message") or "")
        details = body.get("details") or {}
        self.causes: tuple[Mapping[str, str], ...] = tuple(details.get("causes") or ())
        self.retry_after = retry_after
        """Seconds to wait, where the server said so."""
        self.passes = status in _PASSING or (status >= 500 and not isinstance(self, Invalid))
        super().__init__(f"{status} {self.reason}: {self.message}")


class NotFound(Refused):
    pass


class Conflict(Refused):
    @property
    def already_exists(self) -> bool:
        return self.reason == "AlreadyExists"


class Gone(Refused):
    pass


class Invalid(Refused):
    pass


_KINDS: Mapping[int, type[Refused]] = {400: Invalid, 404: NotFound, 409: Conflict, 410: Gone, 422: Invalid}


def refusal(status: int, body: Mapping[str, Any], *, retry_after: float | None = None) -> Refused:
    """The error for a status and the Status object that came with it."""
    kind = _KINDS.get(status, Refused)
    if status >= 500 and _UNDECLARED in str(body.get("message")):
        kind = Invalid
    return kind(status, body, retry_after=retry_after)


def undeclared(error: Refused) -> frozenset[Field]:
    """The fields that the kind does not have, of those that were applied."""
    named = re.findall(rf"(\.\S+): {_UNDECLARED}", error.message)
    return frozenset(tuple(re.sub(r"\[[^\]]*\]", "", path).strip(".").split(".")) for path in named)


def is_another(error: KubeError) -> bool:
    """Whether a call that gave a uid failed since the object of that uid is gone, or another one has its name now."""
    if isinstance(error, Invalid):
        return any(cause.get("field") == "metadata.uid" for cause in error.causes)
    return isinstance(error, Conflict) and "uid mismatch" in error.message
