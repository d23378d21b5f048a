"""Addresses that variables hold, with a name and a password in them: these go into a header, and never into a text."""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Mapping
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


def endpoint(name: str, url: str, field: str, secret: Mapping[str, str]) -> tuple[str, Mapping[str, str]]:
    """A server that a variable names, without the name and password in it, and the headers that say who asks: a token's, or else those two.
    `field` is where an admin sets it."""
    parts = parts_in(name, url, f"correct {field} of the operator's config")
    known = basic(parts)
    return (
        parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl().rstrip("/"),
        secret or ({"Authorization": known} if known else {}),
    )
