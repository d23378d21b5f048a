"""A replica of several pods: which pod is which member, and how the loss of one member ends all of them, so that they start again together.

Members report to rank 0's side port, and learn about rank 0 from its answers. They look its name up only when they join, so a name service that
fails later does no harm. A run is the life of one supervisor process. A group consists of the same runs from its start to its end: a member
that comes back as another run finds the group over, and waits for the next one.
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
"""After this time without a report a member counts as lost. It is longer than a busy machine delays a thread, and shorter than the timeout of
collective operations."""
UNANSWERED_SECONDS = 1800.0
"""How long a leader that does not answer is waited for, where no plan says it: its node and its image may have to come first."""
MOST_REPORT = 16384
MOST_ADAPTERS = 256


class Place(NamedTuple):
    """The place of a pod in its replica."""

    rank: int
    size: int
    leader: str
    port: int
    """Port of the leader's supervisor."""

    @property
    def leads(self) -> bool:
        return self.rank == 0


def place_of(argv: Sequence[str], port: int) -> Place | None:
    """The place by the engine's own arguments; None where a replica is one pod."""
    size, leader = number_of(argv, "--nnodes", "-n") or 1, value_of(argv, "--master-addr")
    rank = number_of(argv, "--node-rank", "-r")
    if size == 1 or leader is None or rank is None:
        return None
    return Place(rank=rank, size=size, leader=leader, port=port)


def place_told(rank: int, size: int, leader: str, port: int) -> Place | None:
    """The place by the supervisor's own arguments."""
    if not 0 <= rank < size:
        raise ValueError(f"rank {rank} is none of {size}: RANK must be from 0 to SIZE - 1")
    return None if size == 1 else Place(rank=rank, size=size, leader=leader, port=port)


class Report(NamedTuple):
    """What a member reports of itself."""

    rank: int
    run: str
    failure: Failure | None = None
    leader: str = ""
    """The leader's run when it admitted the member; empty for a member that asks to be admitted."""
    adapters: tuple[str, ...] | None = None
    """Ids of the adapters whose files it has; None where it keeps no adapters."""


class Members:
    """The members that report to this leader. Several threads use it."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._lock = threading.Lock()
        self._runs: dict[int, tuple[str, str]] = {}
        """Run and address of each member, by rank."""
        self._heard: dict[int, float] = {}
        self._adapters: dict[int, tuple[str, ...]] = {}
        self._broken: Failure | None = None

    def take(self, report: Report, sender: str, now: float) -> bool:
        """Takes a report. Returns whether the member is of this group. A report from an address that is not the member's does not end the group."""
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
        """Why the group is over; None while it is not."""
        with self._lock:
            if self._broken is None:
                for rank in sorted(self._heard):
                    if now - self._heard[rank] > SILENT_SECONDS:
                        self._broken = _lost(rank, f"has not been heard of for {SILENT_SECONDS:.0f} seconds")
                        break
            return self._broken

    def lacking(self, adapter: str) -> list[int]:
        """Ranks that keep adapters and do not have the files of this one yet."""
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
    """The leader's answer to a member."""

    accepted: bool
    run: str
    failure: Failure | None
    serves: bool = False
    address: str = ""
    """The address from which it came."""


def ask_leader(place: Place, report: Report, timeout: float = 5.0) -> Answer | None:
    """The leader's answer to a report; None where no supervisor answers."""
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
    """Why a leader does not answer, and what usually causes that."""

    how: str
    remedy: str


_WHERE = "kubectl get pods -o wide shows rank 0 and its node"


def silence_of(place: Place, timeout: float = 5.0) -> Silence | None:
    """Why there is no answer at the leader's side port; None where there is one, whatever it says."""
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
    """How long a member waits for a leader, as a function of answers and times."""

    def __init__(self, place: Place, now: float, most: float) -> None:
        self._place, self._heard, self._most = place, now, most

    def take(self, silence: Silence | None, now: float) -> Failure | None:
        """Why it waits no longer; None while it waits. For a leader that answers the limit is another one."""
        if silence is None:
            self._heard = now
        elif now - self._heard >= self._most:
            who = f"rank 0 of this replica, {self._place.leader},"
            message = f"{who} has not answered for {self._most:.0f} seconds: {silence.how}"
            return Failure("LeaderLost", message, silence.remedy)
        return None

    def text(self, silence: Silence | None) -> str:
        """What the member waits for, in words for people."""
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
    """A failure that another pod reports, with its texts bounded."""
    if not body:
        return None
    evidence = tuple(str(line)[:300] for line in list(body.get("evidence") or ())[:5])
    return Failure(str(body["word"])[:64], str(body["message"])[:600], str(body["remedy"])[:600], evidence)


class Leader:
    """What a member knows of its leader, as a function of answers and times."""

    def __init__(self, now: float, run: str) -> None:
        self._run, self._heard = run, now

    def take(self, answer: Answer | None, now: float) -> Failure | None:
        """Why this member has to end; None where it need not."""
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
