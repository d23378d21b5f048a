"""Where a fetch may go: an answer may send it elsewhere, and must not send it into the machine or to what hands out credentials.

The address that a connection really has is what counts, not what a name stood for a moment before.
"""

from __future__ import annotations

import ipaddress
from typing import Union
from urllib.parse import SplitResult, urlsplit

from plimsoll_runtime.sources.trouble import failed

Address = Union[ipaddress.IPv4Address, ipaddress.IPv6Address]
_METADATA_NAMES = ("metadata", "metadata.google.internal", "instance-data", "instance-data.ec2.internal")
_METADATA = tuple(
    map(ipaddress.ip_address, ("100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::254"))
)
"""Of clouds that have them outside the link-local range."""
_SCHEMES = ("http", "https")
PUBLIC, PRIVATE, LOOPBACK = 0, 1, 2
_REMEDY = "check what answers at this address (mirror, proxy, DNS); hosts that an answer names have to be public, or as private as the first"


def address_of(host: str) -> Address | None:
    """The address that a host is written as; None where it is a name."""
    try:
        found = ipaddress.ip_address(host.partition("%")[0].strip("[]"))
    except ValueError:
        return None
    mapped = getattr(found, "ipv4_mapped", None)
    return found if mapped is None else mapped


def depth(address: Address) -> int:
    """How far inside an address lies: public, private, or this machine itself."""
    if address.is_loopback:
        return LOOPBACK
    return PUBLIC if address.is_global else PRIVATE


def check_name(url: SplitResult, before: SplitResult | None) -> None:
    """Refuses addresses that may not be asked, before anything is connected. `before` is where the answer came from that sends us there."""
    told = f"{url.scheme}://{url.netloc.rpartition('@')[2]}"
    if url.scheme not in _SCHEMES or not url.hostname:
        raise _refused(f"{told} is no address of http or https", before)
    if before is not None and (before.scheme, url.scheme) == ("https", "http"):
        raise _refused(f"{told} is not encrypted", before)
    if url.hostname.rstrip(".").lower() in _METADATA_NAMES:
        raise _refused(f"{told} hands out credentials of the machine", before)
    address = address_of(url.hostname)
    if address is not None:
        check_address(address, url, before, None)


def check_address(address: Address, url: SplitResult, before: SplitResult | None, first: int | None) -> None:
    """Refuses an address that a name led to. `first` is how far inside the first address of this request was, or None where that cannot be known."""
    host = url.hostname if address_of(url.hostname or "") is not None else f"{url.hostname} ({address})"
    if address.is_link_local or address.is_multicast or address.is_unspecified or address in _METADATA:
        raise _refused(
            f"{host} is an address of the machine itself or of what hands out its credentials", before
        )
    if before is not None and first is not None and depth(address) > first:
        raise _refused(f"{host} lies further inside than where it is named", before)


def same_origin(one: SplitResult, other: SplitResult) -> bool:
    return (one.scheme, one.hostname, _port(one)) == (other.scheme, other.hostname, _port(other))


def _port(url: SplitResult) -> int:
    return url.port or (443 if url.scheme == "https" else 80)


def _refused(what: str, before: SplitResult | None) -> Exception:
    how = "the way to the model" if before is None else f"{before.hostname} sends the download on, but"
    message = f"{how}: {what}" if before is None else f"{how} {what}"
    return failed("Download", message, _REMEDY)


def parts_of(url: str) -> SplitResult:
    """The parts of an address. One that has none is told without what stands before its @ or behind its ?, and without the library's own
    words, which quote a password that is not escaped."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        told = url.rpartition("@")[2].partition("?")[0]
        raise failed("Download", f"{told[:200]!r} is no address", _REMEDY) from None
    return parts
