"""Which proxy a request goes through, read from the variables that everybody reads: HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, NO_PROXY."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import SplitResult

from plimsoll_runtime.sources.guard import address_of
from plimsoll_runtime.sources.named import basic, parts_in
from plimsoll_runtime.sources.trouble import failed

CONFIGURED = "network.httpProxy and network.httpsProxy of the operator's config"


class Proxy(NamedTuple):
    host: str
    port: int
    headers: Mapping[str, str]
    """Its own credentials."""


def proxy_of(url: SplitResult, environment: Mapping[str, str]) -> Proxy | None:
    name, told = _variable(environment, f"{url.scheme}_proxy", "all_proxy")
    if not told or _passes(url.hostname or "", _variable(environment, "no_proxy")[1]):
        return None
    parts = parts_in(name, told if "://" in told else f"http://{told}", f"correct {CONFIGURED}")
    if parts.scheme != "http":
        # A name and a password would go there unencrypted, to a port that speaks TLS or SOCKS.
        raise failed("Download", f"{name}: only http:// proxies are understood", f"correct {CONFIGURED}")
    known = basic(parts)
    return Proxy(parts.hostname or "", parts.port or 80, {"Proxy-Authorization": known} if known else {})


def _variable(environment: Mapping[str, str], *names: str) -> tuple[str, str]:
    """The first of these variables that says something, in small letters or in capitals: its name in capitals, and its value."""
    for name in names:
        if value := environment.get(name) or environment.get(name.upper()):
            return name.upper(), value
    return "", ""


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
