"""Replicas over several pods: they start with their leader, end together, and say one reason."""

from __future__ import annotations

import os
import signal
import socket

import pytest

from plimsoll_runtime.failure import Failure
from plimsoll_runtime.group import (
    SILENT_SECONDS,
    Answer,
    Leader,
    Members,
    Place,
    Report,
    ask_leader,
    place_of,
    place_told,
    report_of,
)
from plimsoll_runtime.said import Said
from plimsoll_runtime.side import Answer as Heard
from plimsoll_runtime.side import Side
from plimsoll_runtime.supervisor import Options, Supervisor
from plimsoll_runtime.watching import Companion, Over, Stranded
from tests.runtime.conftest import Started, Undying

WHY = Failure("NoKvRoom", "no room", "more GPUs", ("a line",))


@pytest.mark.parametrize(
    ("argv", "place"),
    [
        (
            "vllm serve m --nnodes 2 --node-rank 1 --master-addr a.b --master-port 29501",
            Place(1, 2, "a.b", 8079),
        ),
        ("vllm serve m --nnodes=4 --node-rank=0 --master-addr=a.b", Place(0, 4, "a.b", 8079)),
        ("vllm serve m --nnodes 1 --node-rank 0 --master-addr a.b", None),
        ("vllm serve m", None),
    ],
)
def test_the_engines_words_say_who_is_who(argv, place):
    assert place_of(argv.split(), 8079) == place


def test_who_is_who_may_be_told_by_whoever_starts_it():
    assert place_told(1, 2, "a.b", 8079) == Place(1, 2, "a.b", 8079)
    assert place_told(0, 1, "a.b", 8079) is None
    with pytest.raises(ValueError, match="rank 2 is none of 2"):
        place_told(2, 2, "a.b", 8079)


@pytest.mark.parametrize("rank", ["2", "one"])
def test_a_rank_that_there_is_not_is_an_error_of_the_command_line(supervised, rank):
    supervised.engine(own=("--member", rank, "2", "a.b"))
    assert supervised.end() == 2
    assert supervised.failure()["word"] == "BadSetting"
    assert supervised.failure()["message"].startswith("--member ")


def test_a_member_that_comes_back_ends_the_group():
    members = Members(3)
    assert members.take(Report(1, "x"), "10.0.0.1", 0.0)
    assert members.take(Report(2, "y"), "10.0.0.2", 0.0)
    assert members.lost(1.0) is None
    assert not members.take(Report(1, "z"), "10.0.0.1", 2.0)
    failure = members.lost(2.0)
    assert failure is not None
    assert failure.message == "rank 1 of this replica was started again"
    assert not members.take(Report(2, "y"), "10.0.0.2", 3.0)


def test_a_member_that_says_why_it_ended_is_quoted():
    members = Members(2)
    members.take(Report(1, "x"), "10.0.0.1", 0.0)
    members.take(Report(1, "x", WHY), "10.0.0.1", 1.0)
    failure = members.lost(1.0)
    assert failure is not None
    assert failure.word == "MemberLost"
    assert failure.message == "rank 1 of this replica ended: NoKvRoom: no room"
    assert (failure.remedy, failure.evidence) == ("more GPUs", ("a line",))


def test_a_member_that_falls_silent_is_lost():
    members = Members(2)
    members.take(Report(1, "x"), "10.0.0.1", 100.0)
    assert members.lost(100.0 + SILENT_SECONDS) is None
    assert members.lost(100.1 + SILENT_SECONDS) is not None


@pytest.mark.parametrize("report", [Report(0, "x"), Report(2, "x"), Report(-1, "x")])
def test_ranks_that_there_are_not_are_not_let_in(report):
    assert not Members(2).take(report, "10.0.0.9", 0.0)


def test_a_stranger_cannot_end_a_group_in_a_members_name():
    members = Members(2)
    members.take(Report(1, "x"), "10.0.0.1", 0.0)
    assert not members.take(Report(1, "x", WHY), "10.0.0.9", 1.0)
    assert not members.take(Report(1, "other"), "10.0.0.9", 1.0)
    assert members.lost(1.0) is None


def test_a_leader_that_started_again_or_fails_or_is_silent_ends_its_member():
    leader = Leader(0.0, "run")
    assert leader.take(Answer(True, "run", None), 1.0) is None
    assert leader.take(None, 1.0 + SILENT_SECONDS) is None
    lost = leader.take(None, 1.1 + SILENT_SECONDS)
    again = leader.take(Answer(True, "next", None), 2.0)
    failed = leader.take(Answer(True, "run", WHY), 3.0)
    assert lost is not None
    assert lost.word == "LeaderLost"
    assert again is not None
    assert again.word == "GroupEnded"
    assert failed is not None
    assert failed.message == "this replica is over: NoKvRoom: no room"


def asked(place: Place, report: Report) -> Answer:
    """As members ask, with a busy machine's patience."""
    answer = ask_leader(place, report, timeout=60.0)
    assert answer is not None
    return answer


def test_members_are_let_in_when_their_leader_has_an_engine_and_not_while_it_brings_its_model():
    said, members = Said(("vllm", "serve"), 0.0), Members(2)
    side = Side(said, 0, members)
    place = Place(1, 2, "127.0.0.1", side.port)
    try:
        said.begins_to_fetch(0.0)
        assert not asked(place, Report(1, "x")).accepted
        assert members.joined == 0
        said.begins(1.0)
        assert asked(place, Report(1, "x")).accepted
    finally:
        side.close()


def test_who_belongs_to_the_leader_before_is_not_let_in_by_the_next_and_ends_alone():
    said, members = Said(("vllm", "serve"), 0.0), Members(2)
    said.begins(0.0)
    side = Side(said, 0, members)
    place = Place(1, 2, "127.0.0.1", side.port)
    try:
        old = asked(place, Report(1, "x", leader="the run before"))
        assert not old.accepted
        assert members.joined == 0
        over = Leader(0.0, "the run before").take(old, 1.0)
        assert over is not None
        assert over.word == "GroupEnded"
        asked(place, Report(1, "x", WHY, "the run before"))
        assert asked(place, Report(1, "y")).accepted
        assert asked(place, Report(1, "y", leader=said.run)).accepted
        assert members.lost(0.0) is None
    finally:
        side.close()


@pytest.mark.parametrize(
    "text",
    [b"", b"[]", b"{}", b'{"rank": "x", "run": 1}', b"\xff", b'{"rank":1,"run":"a","failure":{"word":1}}',
     b'{"rank":1e999,"run":"a"}'],
)  # fmt: skip
def test_what_is_no_report_is_none(text):
    assert report_of(text) is None


@pytest.mark.parametrize(
    "body", [b"[]", b'{"accepted": 1, "run": "a", "serves": 0, "failure": "full"}', b"[" * 9999]
)
def test_who_answers_otherwise_than_a_supervisor_is_no_leader(monkeypatch, body):
    monkeypatch.setattr("plimsoll_runtime.side.heard", lambda *_: Heard(200, "application/json", body))
    side = Side(Said(("vllm", "serve"), 0.0), 0, Members(2))
    try:
        assert ask_leader(Place(1, 2, "127.0.0.1", side.port), Report(1, "x")) is None
    finally:
        side.close()


def test_a_member_finds_its_leader_when_names_no_longer_resolve(monkeypatch):
    resolve = socket.getaddrinfo

    def known(host, *more, **others):
        return resolve("127.0.0.1" if host == "leader.example" else host, *more, **others)

    def lost(host, *more, **others):
        if host == "leader.example":
            raise socket.gaierror(socket.EAI_AGAIN, "try again")
        return resolve(host, *more, **others)

    leader = Said(("vllm", "serve"), 0.0)
    leader.begins(0.0)
    side = Side(leader, 0, Members(2))
    place = Place(1, 2, "leader.example", side.port)
    member = Supervisor(Options(argv=("vllm", "serve"), environment={}, place=place), Said(("vllm",), 0.0))
    try:
        monkeypatch.setattr(socket, "getaddrinfo", known)
        assert member._join()
        monkeypatch.setattr(socket, "getaddrinfo", lost)
        assert member._companion is not None
        assert member._companion.report() is not None
    finally:
        if member._companion is not None:
            member._companion.end()
            member._companion.join(10)
        side.close()


class Patient(Companion):
    """On a busy machine."""

    def report(self, failure: Failure | None = None, timeout: float = 60.0) -> Answer | None:
        return super().report(failure, max(timeout, 60.0))


def test_a_member_that_ends_its_engine_says_why_at_once_and_hears_no_other_reason_while_the_engine_dies():
    said = Said(("vllm", "serve"), 0.0)
    said.begins(0.0)
    members = Members(2)
    side = Side(said, 0, members)
    place = Place(1, 2, "127.0.0.1", side.port)
    environment = {"HF_TOKEN": "hf_abcdef"}
    member = Supervisor(Options(argv=("vllm",), environment=environment, place=place), Said(("vllm",), 0.0))
    try:
        assert asked(place, Report(1, member.said.run)).accepted
        member._companion = Patient(place, said.run, member._events, member.said)
        line = "Worker proc VllmWorker-1 died unexpectedly (exit code: -9) with hf_abcdef"
        member._decide(Stranded(line), Undying(), 1.0)
        lost = members.lost(1.0)
        assert lost is not None
        assert "rank 1 of this replica ended: WorkerLost" in lost.message
        assert "hf_abcdef" not in str(lost)
        member._decide(Over(Failure("GroupEnded", "this replica is over", "")), Undying(), 2.0)
        assert member.said.failure is not None
        assert member.said.failure.word == "WorkerLost"
    finally:
        side.close()


def pid_of(one: Started) -> int:
    """Of its engine."""
    return int(next(line for line in one.said().splitlines() if line.startswith("pid ")).split()[1])


def together(leader: Started, member: Started, *words: str) -> None:
    group = ("--nnodes=2", "--master-addr=127.0.0.1")
    leader.engine(*group, "--node-rank=0", own=("--grace=300",))
    leader.until("serving")
    joins(leader, member, *words)


def joins(leader: Started, member: Started, *words: str) -> None:
    port = (leader.folder / "port").read_text()
    group = ("--nnodes=2", "--master-addr=127.0.0.1", "--node-rank=1", "--headless")
    member.engine(*group, *words, own=("--grace=300", f"--leader-port={port}"))


def test_a_member_that_fails_takes_its_leader_along_with_its_reason(supervised_two):
    leader, member = supervised_two
    together(leader, member, "--say=ValueError: No available memory for the cache blocks.", "--exit=1")
    assert member.end() == 1
    assert leader.end() == 1
    assert leader.failure()["word"] == "MemberLost"
    assert leader.failure()["message"].startswith("rank 1 of this replica ended: NoKvRoom")
    assert "No available memory for the cache blocks" in "".join(leader.failure()["evidence"])


def test_a_member_whose_engine_stays_without_its_worker_ends_the_group(supervised_two):
    leader, member = supervised_two
    line = "ERROR [multiproc_executor.py:315] Worker proc VllmWorker-1 died unexpectedly (exit code: -9), shutting down executor."
    together(leader, member, f"--say={line}")
    assert member.end() == 1
    assert leader.end() == 1
    assert "rank 1 of this replica ended: WorkerLost" in leader.failure()["message"]
    assert "exit code: -9" in leader.failure()["message"]
    assert leader.failure()["evidence"] == member.failure()["evidence"]
    assert "VllmWorker-1 died unexpectedly" in "".join(member.failure()["evidence"])


def test_a_leader_that_fails_because_of_a_member_names_the_member(supervised_two):
    leader, member = supervised_two
    together(leader, member)
    member.until("serving")
    for one in (leader, member):  # both at once, as when a connection between them breaks
        os.kill(pid_of(one), signal.SIGKILL)
    assert leader.end() == 1
    assert member.end() == 1
    assert leader.failure()["word"] == "MemberLost"


def test_a_member_that_comes_back_while_its_group_serves_ends_it_with_that_reason(supervised_two, supervised):
    leader, member = supervised_two
    together(leader, member)
    member.until("serving")
    joins(leader, supervised)  # as its container does that was killed with all that was in it
    assert leader.end() == 1
    assert member.end() == 1
    assert leader.failure()["word"] == "MemberLost"
    assert leader.failure()["message"] == "rank 1 of this replica was started again"
    assert "shows the node of that rank" in leader.failure()["remedy"]
    assert supervised.process is not None
    assert supervised.process.poll() is None, "the next group's, so it waits"


def test_members_that_a_frozen_node_parts_each_end_with_the_silence_of_the_other(supervised_two):
    leader, member = supervised_two
    together(leader, member)
    member.until("serving")
    member.send(signal.SIGSTOP)
    try:
        assert leader.end() == 1
    finally:
        member.send(signal.SIGCONT)
    assert leader.failure()["word"] == "MemberLost"
    assert leader.failure()["message"].startswith("rank 1 of this replica has not been heard of for ")
    assert member.end() == 1
    assert member.failure()["word"] == "LeaderLost"
    assert member.failure()["message"].startswith("rank 0 of this replica has not answered for ")
    assert "shows the node of rank 0" in member.failure()["remedy"]


def test_a_leader_that_fails_takes_its_members_along_with_its_reason(supervised_two):
    leader, member = supervised_two
    together(leader, member)
    member.until_said("Application startup complete")
    os.kill(pid_of(leader), signal.SIGKILL)
    assert leader.end() == 1
    assert member.end() == 1
    failure = member.failure()
    assert failure["word"] == "GroupEnded"
    assert "killed by signal 9" in failure["message"]


def test_a_member_ends_after_its_leader_whose_answers_it_computes(supervised_two):
    leader, member = supervised_two
    leader.requests.write_text("1")
    together(leader, member)
    member.until("serving")
    member.send(signal.SIGTERM)
    leader.send(signal.SIGTERM)
    member.until("draining")
    leader.until("draining")
    assert "told to end by 15" not in member.said()
    leader.requests.write_text("0")
    assert leader.end() == 0
    assert member.end() == 0
    assert not member.message.exists()
    assert not leader.message.exists()
