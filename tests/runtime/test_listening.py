"""Where an engine listens that is told nothing of it: for pods that others may reach by IPv6, on addresses of both kinds."""

from __future__ import annotations

import pytest

from plimsoll_runtime import closing, command, listening
from plimsoll_runtime.address import Address, address_of

SERVE = ("vllm", "serve", "m", "--port", "8000")
SIX = "fd00::2"
ASKED = listening._source


@pytest.fixture(autouse=True)
def reached(monkeypatch: pytest.MonkeyPatch) -> None:
    """This pod goes elsewhere by an IPv6 address."""
    monkeypatch.setattr(listening, "_source", lambda: SIX)
    monkeypatch.setattr(listening, "_takes_both", lambda: True)


@pytest.mark.parametrize(
    ("source", "told"), [(SIX, True), (None, False), ("fe80::1%eth0", False), ("::1", False)]
)
def test_an_engine_listens_on_both_kinds_where_a_pod_is_reached_by_ipv6(monkeypatch, source, told):
    monkeypatch.setattr(listening, "_source", lambda: source)
    assert listening.told(SERVE) == (*SERVE, *(("--host", "::") if told else ()))


@pytest.mark.parametrize(
    "argv",
    [
        (*SERVE, "--host", "10.1.2.3"),
        (*SERVE, "--host=::1"),
        (*SERVE, "--uds", "/tmp/s"),
        (*SERVE, "--headless"),
        (*SERVE, "--config", "/etc/vllm.yaml"),
        ("ray", "start", "--block"),
        ("serve", "m"),
    ],
)
def test_what_says_itself_where_it_listens_or_is_no_server_is_told_nothing(argv):
    assert listening.told(argv) == argv


def test_where_such_a_socket_takes_ipv6_alone_nothing_is_told(monkeypatch):
    monkeypatch.setattr(listening, "_takes_both", lambda: False)
    assert listening.told(SERVE) == SERVE


def test_the_supervisor_asks_an_engine_on_both_kinds_as_before():
    assert address_of(listening.told(SERVE)) == address_of(SERVE) == Address("127.0.0.1", 8000, tls=False)


def test_the_engine_is_told_beside_all_else(monkeypatch):
    runs: list[tuple[str, ...]] = []
    monkeypatch.setattr(command, "_run", lambda options, *_: runs.append(options.argv))
    command.main(["serve", "--port=0", "--close-connections", "--", *SERVE], {})
    command.main(["serve", "--port=0", "--", *SERVE], {})
    assert runs == [(*SERVE, "--host", "::", *closing.WORDS), (*SERVE, "--host", "::")]


def test_a_machine_without_a_way_has_no_address_for_it():
    assert ASKED("10.1.2.3") is None
    assert ASKED("::1") in ("::1", None)  # None where the kernel has no IPv6
