"""A member of a group that has to wait for its leader: for how long, what it says meanwhile, and why it gives up."""

from __future__ import annotations

import signal
import socket

import pytest

from plimsoll_runtime.failure import Failure
from plimsoll_runtime.group import Members, Place, Silence, Wait, silence_of
from plimsoll_runtime.said import Said
from plimsoll_runtime.side import Side

WHY = Failure("NoKvRoom", "no room", "more GPUs")


def test_a_member_waits_for_its_leader_before_it_starts_anything(supervised_two):
    _, member = supervised_two
    member.engine(
        "--nnodes=2", "--master-addr=127.0.0.1", "--node-rank=1", "--headless", own=("--leader-port=9",)
    )
    member.until_said("waits for its leader")
    facts = member.facts()
    assert facts["state"] == "preflight"
    assert facts["phase"] == "waits for its leader 127.0.0.1: port 9 of it refuses connections"
    member.send(signal.SIGTERM)
    assert member.end() == 0
    assert "Application startup complete" not in member.said()


def test_a_member_whose_leader_never_answers_ends_with_that_reason_before_it_brings_anything(
    supervised_two,
):
    _, member = supervised_two
    member.engine(
        "--nnodes=2", "--master-addr=127.0.0.1", "--node-rank=1", "--headless",
        own=("--leader-port=9", "--plan", '{"startSeconds": 1}', "--fetch", "hf://acme/tiny"),
    )  # fmt: skip
    assert member.end() == 1
    failure = member.failure()
    assert failure["word"] == "LeaderLost"
    assert "127.0.0.1, has not answered for 1 seconds: port 9 of it refuses connections" in failure["message"]
    assert "--leader-port" in failure["remedy"]


def silent(monkeypatch, error: OSError) -> Silence:
    """As the system says it."""

    def resolved(*_: object, **__: object) -> list[object]:
        raise error

    monkeypatch.setattr(socket, "getaddrinfo", resolved)
    found = silence_of(Place(1, 2, "leader.example", 8079))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("error", "how", "remedy"),
    [
        (
            socket.gaierror(socket.EAI_NONAME, "Name or service not known"),
            "its name cannot be resolved (Name or service not known)",
            "DNS",
        ),
        (
            ConnectionRefusedError(111, "Connection refused"),
            "port 8079 of it refuses connections",
            "--leader-port",
        ),
        (TimeoutError("timed out"), "port 8079 of it does not answer (timed out)", "NetworkPolicy"),
        (
            OSError(113, "No route to host"),
            "port 8079 of it does not answer (No route to host)",
            "NetworkPolicy",
        ),
    ],
)
def test_why_a_leader_is_silent_is_told_apart(monkeypatch, error, how, remedy):
    found = silent(monkeypatch, error)
    assert found.how == how
    assert remedy in found.remedy


def test_a_leader_that_answers_is_not_silent_even_where_it_has_failed():
    said = Said(("vllm", "serve"), 0.0)
    said.fails(WHY)
    side = Side(said, 0, Members(2))
    try:
        assert silence_of(Place(1, 2, "127.0.0.1", side.port), timeout=60.0) is None
    finally:
        side.close()


def test_only_a_leader_that_nobody_hears_of_is_given_up():
    place, refused = Place(1, 2, "leader.example", 8079), Silence("it refuses", "look there")
    wait = Wait(place, 0.0, 600.0)
    assert wait.take(refused, 599.0) is None
    assert wait.take(None, 599.5) is None
    assert wait.take(refused, 1199.0) is None
    failure = wait.take(refused, 1199.5)
    assert failure is not None
    assert (failure.word, failure.remedy) == ("LeaderLost", "look there")
    assert "leader.example, has not answered for 600 seconds: it refuses" in failure.message
    assert "has no engine yet" in wait.text(None)


def test_a_member_brings_its_model_while_its_leader_brings_its_own(supervised_two):
    """A leader that answers is not waited for until it has an engine."""
    _, member = supervised_two
    side = Side(Said(("vllm", "serve"), 0.0), 0, Members(2))
    try:
        member.engine(
            "--nnodes=2", "--master-addr=127.0.0.1", "--node-rank=1", "--headless",
            own=(f"--leader-port={side.port}", "--fetch", "oci://127.0.0.1:9/acme/tiny"),
        )  # fmt: skip
        member.until("fetching")
    finally:
        side.close()
