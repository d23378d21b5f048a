"""Where an engine listens that is told nothing of it: for pods that others reach by IPv6 alone, on addresses of both kinds."""

from __future__ import annotations

import socket

import pytest

from plimsoll_runtime import closing, command, listening
from plimsoll_runtime.address import Address, address_of

SERVE = ("vllm", "serve", "m", "--port", "8000")
FOUR, SIX = "10.1.2.3", "fd00::2"


@pytest.fixture
def sources(monkeypatch: pytest.MonkeyPatch) -> dict[int, str | None]:
    """By which addresses this pod goes elsewhere."""
    found: dict[int, str | None] = {socket.AF_INET: None, socket.AF_INET6: SIX}
    monkeypatch.setattr(listening, "_source", lambda family, _: found[family])
    monkeypatch.setattr(listening, "_takes_both", lambda: True)
    return found


@pytest.mark.parametrize(
    ("four", "six", "told"),
    [
        (None, SIX, True),
        ("169.254.172.3", SIX, True),  # as EKS gives it to pods of an IPv6 cluster
        (FOUR, None, False),
        (FOUR, SIX, False),
        (None, None, False),
        (None, "fe80::1%eth0", False),
        ("127.0.0.1", "::1", False),
    ],
)
def test_an_engine_listens_on_both_kinds_where_a_pod_is_reached_by_ipv6_alone(sources, four, six, told):
    sources.update({socket.AF_INET: four, socket.AF_INET6: six})
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
def test_what_says_itself_where_it_listens_or_is_no_server_is_told_nothing(sources, argv):
    assert listening.told(argv) == argv


def test_where_such_a_socket_takes_ipv6_alone_nothing_is_told(sources, monkeypatch):
    monkeypatch.setattr(listening, "_takes_both", lambda: False)
    assert listening.told(SERVE) == SERVE


def test_the_supervisor_asks_an_engine_on_both_kinds_as_before(sources):
    assert address_of(listening.told(SERVE)) == address_of(SERVE) == Address("127.0.0.1", 8000, tls=False)


def test_the_engine_is_told_beside_all_else(sources, monkeypatch):
    runs: list[tuple[str, ...]] = []
    monkeypatch.setattr(command, "_run", lambda options, *_: runs.append(options.argv))
    command.main(["serve", "--port=0", "--close-connections", "--", *SERVE], {})
    command.main(["serve", "--port=0", "--", *SERVE], {})
    assert runs == [(*SERVE, "--host", "::", *closing.WORDS), (*SERVE, "--host", "::")]


def test_a_machine_without_a_way_has_no_address_for_it():
    assert listening._source(socket.AF_INET, "::1") is None
    assert listening._source(socket.AF_INET, "127.0.0.1") == "127.0.0.1"
