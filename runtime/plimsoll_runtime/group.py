"""A replica over several pods: who is who, and how one lost member ends them all, so that they start again as one.

Members report to rank 0's side port, whose answers tell them of it; they look its name up when they join and never again, so that
names may fail to resolve for a while. A run is one life of a supervisor: a group is made of the same runs
from its start to its end, and whoever comes back with another run finds the group over and waits for the next one.
"""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from plimsoll_runtime.address import number_of, value_of
from plimsoll_runtime.failure import Failure

REPORT_SECONDS = 2.0
SILENT_SECONDS = 20.0
"""Without a word a member is lost: longer than a busy machine keeps a thread waiting, shorter than collectives time out."""
UNANSWERED_SECONDS = 1800.0
"""How long a leader that nobody hears of is waited for, where no plan says it: its node may have to come, and its image."""
MOST_REPORT = 16384
MOST_ADAPTERS = 256


class Place(NamedTuple):
    """Of a pod in its replica."""

    rank: int
    size: int
    leader: str
    port: int
    """Of the leader's supervisor."""

    @property
    def leads(self) -> bool:
        return self.rank == 0


def place_of(argv: Sequence[str], port: int) -> Place | None:
    """By the engine's own words; None where a replica is one pod."""
    size, leader = number_of(argv, "--nnodes", "-n") or 1, value_of(argv, "--master-addr")
    rank = number_of(argv, "--node-rank", "-r")
    if size == 1 or leader is None or rank is None:
        return None
    return Place(rank=rank, size=size, leader=leader, port=port)


def place_told(rank: int, size: int, leader: str, port: int) -> Place | None:
    """By somebody else than the engine."""
    if not 0 <= rank < size:
        raise ValueError(f"rank {rank} is none of {size}: RANK must be from 0 to SIZE - 1")
    return None if size == 1 else Place(rank=rank, size=size, leader=leader, port=port)


class Report(NamedTuple):
    """What a member says of itself."""

    rank: int
    run: str
    failure: Failure | None = None
    leader: str = ""
    """Run of the leader that let it in; empty of one that asks to be."""
    adapters: tuple[str, ...] | None = None
    """Ids of those whose files it has; None where it keeps none."""


class Members:
    """Those that report to this leader. Used by several threads."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._lock = threading.Lock()
        self._runs: dict[int, tuple[str, str]] = {}
        """Run and address by rank."""
        self._heard: dict[int, float] = {}
        self._adapters: dict[int, tuple[str, ...]] = {}
        self._broken: Failure | None = None

    def take(self, report: Report, sender: str, now: float) -> bool:
        """Whether the member is of this group. An address that is not the member's own ends nobody's group."""
        with self._lock:
            if not 0 < report.rank < self._size:
                return False
            if self._broken is not None:
                return False
            known = self._runs.setdefault(report.rank, (report.run, sender))
            if known[1] != sender:
                return False
            if known[0] != report.run:
                self._broken = _lost(report.rank, "was started again")
                return False
            self._heard[report.rank] = now
            if report.adapters is not None:
                self._adapters[report.rank] = report.adapters
            if report.failure is not None:
                self._broken = _lost(report.rank, "ended", report.failure)
            return True

    def lost(self, now: float) -> Failure | None:
        """Why the group is over."""
        with self._lock:
            if self._broken is None:
                for rank in sorted(self._heard):
                    if now - self._heard[rank] > SILENT_SECONDS:
                        self._broken = _lost(rank, f"has not been heard of for {SILENT_SECONDS:.0f} seconds")
                        break
            return self._broken

    def lacking(self, adapter: str) -> list[int]:
        """Ranks that keep adapters and have not got the files of this one."""
        with self._lock:
            return [rank for rank, held in sorted(self._adapters.items()) if adapter not in held]

    @property
    def joined(self) -> int:
        with self._lock:
            return len(self._runs)


def _lost(rank: int, how: str, why: Failure | None = None) -> Failure:
    said = "" if why is None else f": {why.word}: {why.message}"
    remedy = "the replica starts again as one; kubectl get pods -o wide shows the node of that rank"
    return Failure(
        "MemberLost",
        f"rank {rank} of this replica {how}{said}",
        remedy if why is None else why.remedy,
        () if why is None else why.evidence,
    )


class Answer(NamedTuple):
    """Of the leader to a member."""

    accepted: bool
    run: str
    failure: Failure | None
    serves: bool = False
    address: str = ""
    """From where it came."""


def ask_leader(place: Place, report: Report, timeout: float = 5.0) -> Answer | None:
    """None where nobody answers as a supervisor does."""
    body: dict[str, object] = {"rank": report.rank, "run": report.run, "leader": report.leader}
    if report.adapters is not None:
        body["adapters"] = list(report.adapters)
    if report.failure is not None:
        body["failure"] = report.failure.told()
    connection = http.client.HTTPConnection(place.leader, place.port, timeout=timeout)
    try:
        connection.request("POST", "/member", json.dumps(body), {"Content-Type": "application/json"})
        address = str(connection.sock.getpeername()[0])
        answer = connection.getresponse()
        said = json.loads(answer.read())
        return Answer(
            bool(said["accepted"]),
            str(said["run"]),
            _failure(said.get("failure")),
            bool(said["serves"]),
            address,
        )
    except (
        OSError,
        http.client.HTTPException,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        RecursionError,
    ):
        return None
    finally:
        connection.close()


class Silence(NamedTuple):
    """Of a leader: that is not heard of, and what that comes from as a rule."""

    how: str
    remedy: str


_WHERE = "kubectl get pods -o wide shows rank 0 and its node"


def silence_of(place: Place, timeout: float = 5.0) -> Silence | None:
    """Why nobody answers at the leader's side port; None where somebody does, whatever the answer is."""
    connection = http.client.HTTPConnection(place.leader, place.port, timeout=timeout)
    try:
        connection.request("GET", "/healthz")
        connection.getresponse().read()
    except socket.gaierror as error:
        how = f"its name cannot be resolved ({error.strerror or error})"
        return Silence(how, f"rank 0 has no address yet, or the cluster's DNS does not answer here: {_WHERE}")
    except ConnectionRefusedError:
        how = f"port {place.port} of it refuses connections"
        return Silence(
            how, f"its supervisor does not run yet, or listens at another port (--leader-port): {_WHERE}"
        )
    except (OSError, http.client.HTTPException) as error:
        how = f"port {place.port} of it does not answer ({_short(error)})"
        return Silence(how, f"a NetworkPolicy or a firewall between the nodes, or its node is gone: {_WHERE}")
    finally:
        connection.close()
    return None


def _short(error: BaseException) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


class Wait:
    """How long a member waits for a leader. A function of what was heard and times."""

    def __init__(self, place: Place, now: float, most: float) -> None:
        self._place, self._heard, self._most = place, now, most

    def take(self, silence: Silence | None, now: float) -> Failure | None:
        """Why it waits no longer; one that answers has a deadline of its own."""
        if silence is None:
            self._heard = now
        elif now - self._heard >= self._most:
            who = f"rank 0 of this replica, {self._place.leader},"
            message = f"{who} has not answered for {self._most:.0f} seconds: {silence.how}"
            return Failure("LeaderLost", message, silence.remedy)
        return None

    def text(self, silence: Silence | None) -> str:
        """For people who ask what a member does."""
        how = "it answers, and has no engine yet" if silence is None else silence.how
        return f"waits for its leader {self._place.leader}: {how}"


def report_of(text: bytes) -> Report | None:
    try:
        body = json.loads(text)
        return Report(
            int(body["rank"]),
            str(body["run"])[:64],
            _failure(body.get("failure")),
            str(body.get("leader") or "")[:64],
            _ids(body.get("adapters")),
        )
    except (ValueError, OverflowError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _ids(body: object) -> tuple[str, ...] | None:
    return tuple(str(one)[:64] for one in body[:MOST_ADAPTERS]) if isinstance(body, list) else None


def _failure(body: Mapping[str, Any] | None) -> Failure | None:
    """Of another pod: text, and not too much of it."""
    if not body:
        return None
    evidence = tuple(str(line)[:300] for line in list(body.get("evidence") or ())[:5])
    return Failure(str(body["word"])[:64], str(body["message"])[:600], str(body["remedy"])[:600], evidence)


class Leader:
    """What a member knows of its leader. A function of answers and times."""

    def __init__(self, now: float, run: str) -> None:
        self._run, self._heard = run, now

    def take(self, answer: Answer | None, now: float) -> Failure | None:
        """Why this member has to end."""
        if answer is None:
            if now - self._heard <= SILENT_SECONDS:
                return None
            return Failure(
                "LeaderLost",
                f"rank 0 of this replica has not answered for {SILENT_SECONDS:.0f} seconds",
                "the replica starts again as one; kubectl get pods -o wide shows the node of rank 0",
            )
        self._heard = now
        if answer.failure is not None:
            why = answer.failure
            message = f"this replica is over: {why.word}: {why.message}"
            return Failure("GroupEnded", message, why.remedy, why.evidence)
        if answer.run != self._run or not answer.accepted:
            return Failure(
                "GroupEnded",
                "this replica is over: rank 0 started again or does not know this member",
                "the replica starts again as one; the reason is rank 0's: kubectl logs --previous",
            )
        return None
