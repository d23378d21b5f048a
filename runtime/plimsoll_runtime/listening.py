"""Where the engine listens. vLLM does on all IPv4 addresses unless it is told another one, and where a pod's first address is an IPv6 one no
probe would ever reach it."""

from __future__ import annotations

import ipaddress
import socket
from typing import Final

from plimsoll_runtime.address import has
from plimsoll_runtime.closing import serves

WORDS: Final = ("--host", "::")
_SAYS: Final = ("--host", "--uds", "--headless", "--config")
"""Words that say where it listens, or that it does not; the last names a file that may."""
_ELSEWHERE: Final = "2001:db8::1"
"""An address for examples, which nobody has. Nothing is sent there."""


def told(argv: tuple[str, ...]) -> tuple[str, ...]:
    """The engine's words, with all addresses of both kinds to listen on where others may reach this pod by IPv6. Which kind they come by is the
    cluster's to say, and a Service's: where pods have both, either may be the one that the kubelet's probes go to."""
    if not serves(argv) or any(has(argv, word) for word in _SAYS) or not _by_ipv6():
        return argv
    return (*argv, *WORDS)


def _by_ipv6() -> bool:
    return _is_reached(_source()) and _takes_both()


def _is_reached(source: str | None) -> bool:
    """Whether others come by this address."""
    if source is None:
        return False
    address = ipaddress.ip_address(source.partition("%")[0])
    return not (address.is_link_local or address.is_loopback or address.is_unspecified)


def _source(other: str = _ELSEWHERE) -> str | None:
    """The IPv6 address by which this machine would go elsewhere; None where it has no way."""
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as one:
            one.connect((other, 9))
            return str(one.getsockname()[0])
    except OSError:
        return None


def _takes_both() -> bool:
    """Whether a socket for all IPv6 addresses takes IPv4 connections too, as the kernel has it unless it is told otherwise: the supervisor
    asks the engine at 127.0.0.1."""
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as one:
            one.bind(("::", 0))
            return not one.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY)
    except OSError:
        return False
