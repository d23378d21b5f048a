"""Which proxy a request goes through, read from the variables that everybody reads: HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, NO_PROXY."""

from __future__ import annotations

import base64
import ipaddress
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import SplitResult, unquote

from plimsoll_runtime.sources.guard import address_of, parts_of


class Proxy(NamedTuple):
    host: str
    port: int
    headers: Mapping[str, str]
    """Its own credentials."""


def proxy_of(url: SplitResult, environment: Mapping[str, str]) -> Proxy | None:
    told = _variable(environment, f"{url.scheme}_proxy") or _variable(environment, "all_proxy")
    if not told or _passes(url.hostname or "", _variable(environment, "no_proxy")):
        return None
    parts = parts_of(told if "://" in told else f"http://{told}")
    if not parts.hostname:
        return None
    headers = {}
    if parts.username is not None:
        credentials = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        headers["Proxy-Authorization"] = "Basic " + base64.b64encode(credentials.encode()).decode()
    return Proxy(parts.hostname, parts.port or 80, headers)


def _variable(environment: Mapping[str, str], name: str) -> str:
    return environment.get(name) or environment.get(name.upper()) or ""


def _passes(host: str, listed: str) -> bool:
    """Whether a host goes past the proxy: what is listed may be a name with all names below it, an address, a network, or everything."""
    address = address_of(host)
    for word in filter(None, (one.strip().lower() for one in listed.split(","))):
        if word == "*":
            return True
        if address is not None:
            try:
                if address in ipaddress.ip_network(word, False):
                    return True
            except ValueError:
                continue
        name = word.partition(":")[0].lstrip("*").lstrip(".")
        if name and (host.lower() == name or host.lower().endswith(f".{name}")):
            return True
    return False
