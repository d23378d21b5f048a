"""The webhook's certificates: good for what they are for, renewed in time, and never shown before they are trusted."""

from __future__ import annotations

import base64
import socket
import ssl
import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from plimsoll.kube.certificates import LIFE, RENEW_AFTER, SETTLE, Kept, Pair, made, renewed

HOSTS = ("plimsoll-webhook.plimsoll.svc", "127.0.0.1")
NOW = datetime.now(UTC)  # noqa: TID251 - a TLS library has no other clock
BLOCK = "-----BEGIN CERTIFICATE-----"


def shakes(shown: Pair, authorities: str, folder: Path, host: str = HOSTS[0]) -> bool:
    """Whether a client that trusts these authorities alone accepts what is shown."""
    (folder / "crt").write_text(shown.certificate)
    (folder / "key").write_text(shown.key)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(folder / "crt", folder / "key")
    client = ssl.create_default_context(cadata=authorities)
    here, there = socket.socketpair()

    def answer() -> None:
        try:
            with server.wrap_socket(there, server_side=True) as wrapped:
                wrapped.recv(1)
        except OSError:
            there.close()

    thread = threading.Thread(target=answer)
    thread.start()
    try:
        with client.wrap_socket(here, server_hostname=host) as wrapped:
            return wrapped.send(b".") == 1
    except ssl.SSLCertVerificationError:
        return False
    finally:
        here.close()
        thread.join()


@pytest.mark.parametrize("host", HOSTS)
def test_what_is_made_is_accepted_by_whom_its_authority_is_told(tmp_path: Path, host: str) -> None:
    kept = renewed(None, HOSTS, NOW)
    assert shakes(kept.shown, kept.authorities, tmp_path, host)


def test_it_is_accepted_for_no_other_name_and_by_no_other_authority(tmp_path: Path) -> None:
    kept = renewed(None, HOSTS, NOW)
    _, other = made(HOSTS, NOW)
    assert not shakes(kept.shown, kept.authorities, tmp_path, "elsewhere.svc")
    assert not shakes(kept.shown, other, tmp_path)


def test_what_the_secret_holds_is_what_was_kept() -> None:
    kept = renewed(renewed(None, HOSTS, NOW), HOSTS, NOW + RENEW_AFTER)
    assert kept.next is not None
    assert Kept.read(kept.data()) == kept
    assert Kept.read({}) is None


@pytest.mark.parametrize(
    "after",
    [timedelta(0), timedelta(days=1), RENEW_AFTER - timedelta(minutes=1)],
    ids=["at once", "a day later", "just before"],
)
def test_nothing_is_renewed_before_its_time(after: timedelta) -> None:
    kept = renewed(None, HOSTS, NOW)
    assert renewed(kept, HOSTS, NOW + after) is kept


def test_a_new_one_is_trusted_before_it_is_shown_and_the_old_one_for_as_long_as_it_may_be(
    tmp_path: Path,
) -> None:
    first = renewed(None, HOSTS, NOW - RENEW_AFTER)
    announced = renewed(first, HOSTS, NOW)
    assert announced.shown == first.shown
    assert announced.next is not None
    assert renewed(announced, HOSTS, NOW + SETTLE - timedelta(seconds=2)) is announced
    shown = renewed(announced, HOSTS, NOW + SETTLE)
    assert shown.shown == announced.next
    assert shown.next is None
    for pair in (first.shown, shown.shown):
        assert shakes(pair, announced.authorities, tmp_path)
        assert shakes(pair, shown.authorities, tmp_path)


def test_the_bundle_does_not_grow() -> None:
    kept, now = renewed(None, HOSTS, NOW), NOW
    for _ in range(5):
        now += RENEW_AFTER
        kept = renewed(kept, HOSTS, now)
        assert kept.authorities.count(BLOCK) == 2
        now += SETTLE
        kept = renewed(kept, HOSTS, now)
        assert kept.next is None


GOOD = renewed(None, HOSTS, NOW)
P256, UNUSUAL = (bytes.fromhex(f"2a8648ce3d0301{last}") for last in ("07", "06"))
"""Curves by their identifiers; the second is one that the library of certificates does not know."""


def on_another_curve(pem: str) -> str:
    head, *text, tail = pem.splitlines()
    content = base64.b64decode("".join(text)).replace(P256, UNUSUAL)
    return "\n".join((head, base64.b64encode(content).decode(), tail))


@pytest.mark.parametrize(
    "spoiled",
    [
        Kept(shown=Pair("no certificate", "no key"), authorities=""),
        replace(GOOD, shown=replace(GOOD.shown, key=made(HOSTS, NOW)[0].key)),
        replace(GOOD, shown=replace(GOOD.shown, key=on_another_curve(GOOD.shown.key))),
        replace(GOOD, shown=replace(GOOD.shown, certificate=on_another_curve(GOOD.shown.certificate))),
        Kept(shown=made(("other.svc",), NOW)[0], authorities=made(("other.svc",), NOW)[1]),
        Kept(shown=made(HOSTS, NOW)[0], authorities=made(HOSTS, NOW)[1]),
        renewed(None, HOSTS, NOW - LIFE),
    ],
    ids=[
        "unreadable",
        "with another's key",
        "with an unusual key",
        "of an unusual key",
        "for another name",
        "of an authority that is not in the bundle",
        "at its end",
    ],
)
def test_what_cannot_be_shown_is_made_anew_at_once(tmp_path: Path, spoiled: Kept) -> None:
    kept = renewed(spoiled, HOSTS, NOW)
    assert shakes(kept.shown, kept.authorities, tmp_path)
    assert kept.next is None


@pytest.mark.parametrize(
    "following",
    [Pair("no certificate", "no key"), Pair(made(HOSTS, NOW)[0].certificate, "no key"), made(HOSTS, NOW)[0]],
    ids=["unreadable", "without its key", "of an authority that is not in the bundle"],
)
def test_what_can_never_be_shown_next_is_made_anew_and_what_is_shown_stays_meanwhile(
    tmp_path: Path, following: Pair
) -> None:
    announced = renewed(renewed(None, HOSTS, NOW - RENEW_AFTER), HOSTS, NOW)
    mended = renewed(replace(announced, next=following), HOSTS, NOW + SETTLE)
    assert mended.shown == announced.shown
    after = renewed(mended, HOSTS, NOW + 2 * SETTLE)
    assert after.shown == mended.next
    assert shakes(after.shown, mended.authorities, tmp_path)
