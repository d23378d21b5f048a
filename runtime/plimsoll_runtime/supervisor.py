"""Runs one engine from its start to its end, and explains the end. This is where all parts of the supervisor meet.

One thread decides, on events that others put into a queue: signals, readings of the engine, the end of a child.
"""

from __future__ import annotations

import queue
import signal
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType
from typing import NamedTuple

from plimsoll_runtime.address import address_of
from plimsoll_runtime.bringing import Wish
from plimsoll_runtime.child import Child, adopt_orphans, end_orphans
from plimsoll_runtime.drain import Drain, Step
from plimsoll_runtime.failure import Failure, scrubbed
from plimsoll_runtime.fetching import folder_of
from plimsoll_runtime.group import (
    REPORT_SECONDS,
    UNANSWERED_SECONDS,
    Members,
    Place,
    Report,
    Silence,
    Wait,
    ask_leader,
    silence_of,
)
from plimsoll_runtime.hang import Hang
from plimsoll_runtime.log import Log
from plimsoll_runtime.readings import Reading
from plimsoll_runtime.rules.rule import SERVING as WHILE_SERVING
from plimsoll_runtime.said import DRAINING, SERVING, Said
from plimsoll_runtime.taxonomy import explained
from plimsoll_runtime.watching import ChildEnded, Companion, Event, Over, Signal, Stranded, Told, Watch
from plimsoll_runtime.words import leave, tell

PASSED_ON = (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
ENDINGS = (signal.SIGTERM, signal.SIGINT)
RECENT_SECONDS = 120.0
"""Lines that are older than this at the end of an engine that served do not explain the end."""
LAST_OUTPUT_SECONDS = 2.0
STRANDED = "died unexpectedly"


class Options(NamedTuple):
    argv: tuple[str, ...]
    environment: Mapping[str, str]
    grace: float = 20.0
    """For running answers."""
    hang: float = 600.0
    message: Path | None = None
    """Where the kubelet looks for a container's last words."""
    place: Place | None = None
    unanswered: float = UNANSWERED_SECONDS
    """How long nobody may answer where the leader is."""
    wishes: tuple[Wish, ...] = ()
    """Models to fetch first."""


class Supervisor:
    def __init__(self, options: Options, said: Said, members: Members | None = None) -> None:
        self.options, self.said, self._members = options, said, members
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._address = address_of(options.argv)
        self._hang = Hang(options.hang)
        self._drain: Drain | None = None
        self._last_word: Reading | None = None
        """Since it was to end; what it said before is of another moment."""
        self._stopped = self._killed = False
        self._kills = memory_kills()
        self._companion: Companion | None = None

    def run(self) -> int:
        """Runs the engine. Returns the exit code: the engine's own, or 1 where it did not start or was ended for a failure."""
        adopt_orphans()
        if self.told_to_end() or not self._join():
            return 0 if self.said.failure is None else 1
        try:
            child = Child(self.options.argv, self.options.environment)
        except OSError as error:
            return self._never(error)
        self.said.begins(time.monotonic())
        log = Log(child.output, sys.stdout.fileno(), self._line)
        log.start()
        watch = Watch(
            self._address,
            folder_of(self.options.argv, self.options.environment),
            self._events,
            self.said,
            hang=self.options.hang,
        )
        watch.start()
        while child.code is None:
            self._turn(child)
        watch.end()
        if self._companion is not None:
            self._companion.end()
        child.kill_all()
        end_orphans(child)
        log.finish(LAST_OUTPUT_SECONDS)
        child.bury()
        return self._ended(child.code, log)

    def finds_leader(self) -> bool:
        """Before a model is brought for a group that nobody leads; False where it waits no longer: told to end, or for cause."""
        return self._waits_until(lambda place: (not (silence := silence_of(place)), silence))

    def _join(self) -> bool:
        """A member starts its engine when its leader has it; False as above."""
        return self._waits_until(self._joined)

    def _joined(self, place: Place) -> tuple[bool, Silence | None]:
        answer = ask_leader(place, Report(place.rank, self.said.run))
        if answer is None:
            return False, silence_of(place)
        if answer.accepted and answer.failure is None:
            self._companion = Companion(
                place._replace(leader=answer.address), answer.run, self._events, self.said
            )
            self._companion.start()
            return True, None
        return False, None

    def _waits_until(self, met: Callable[[Place], tuple[bool, Silence | None]]) -> bool:
        """`met` says whether the wait is over, else what the leader's silence is, if it is silent."""
        place = self.options.place
        if place is None or place.leads:
            return True
        wait, told = Wait(place, time.monotonic(), self.options.unanswered), ""
        while True:
            over, silence = met(place)
            if over:
                self.said.waits(None)
                return True
            failure = wait.take(silence, time.monotonic())
            if failure is not None:
                self._say(failure)
                return False
            text = wait.text(silence)
            self.said.waits(text)
            if text != told:
                tell(f"rank {place.rank} of {place.size} {text}")
            told = text
            try:
                event = self._events.get(timeout=1.0)
            except queue.Empty:
                continue
            if isinstance(event, Signal) and event.number in ENDINGS:
                return False

    def told_to_end(self) -> bool:
        """Before there was an engine to end."""
        while True:
            try:
                event = self._events.get_nowait()
            except queue.Empty:
                return False
            if isinstance(event, Signal) and event.number in ENDINGS:
                self._events.put(event)
                return True

    def refuse(self, failure: Failure) -> int:
        """Instead of a run."""
        self._say(failure)
        return 1

    def listen(self) -> None:
        """To signals; the first thing of all, since process 1 gets none that it does not ask for."""
        for number in (*PASSED_ON, *ENDINGS):
            signal.signal(number, self._signalled)
        signal.signal(signal.SIGCHLD, self._child_ended)

    def _signalled(self, number: int, _frame: FrameType | None) -> None:
        self._events.put(Signal(number))

    def _child_ended(self, _number: int, _frame: FrameType | None) -> None:
        self._events.put(ChildEnded())

    def _line(self, text: str, now: float) -> None:
        self.said.line(text, now)
        # Where there is a server, it ends; a headless rank of vLLM 0.32 was seen to stay for ever.
        if self._address is None and STRANDED in text:
            self._events.put(Stranded(text))

    def _turn(self, child: Child) -> None:
        try:
            event: Event | None = self._events.get(timeout=0.5)
        except queue.Empty:
            event = None
        child.bury()
        if child.code is not None:
            return
        try:
            self._decide(event, child, time.monotonic())
        except Exception as error:  # noqa: BLE001 - whatever is wrong here, the engine's answers are not to be cut for it
            tell(f"goes on after an error of its own: {error!r}")

    def _decide(self, event: Event | None, child: Child, now: float) -> None:
        if isinstance(event, Signal):
            self._heed(event.number, child, now)
        elif isinstance(event, Told):
            self._hear(event, child)
        elif isinstance(event, Over):
            self._end(event.failure, child)
        elif isinstance(event, Stranded):
            self._end(explained([event.line], WHILE_SERVING, 1), child)
        lost = None if self._members is None else self._members.lost(now)
        if lost is not None:
            self._end(lost, child)
        if self._drain is not None and child.code is None:
            self._go_on(self._drain, child, now)

    def _heed(self, number: int, child: Child, now: float) -> None:
        if number not in ENDINGS:
            child.send(number)
        elif self._drain is None:
            waits = (
                f": waits up to {self.options.grace:.0f} s for running answers" if self.said.served else ""
            )
            tell(f"told to end{waits}")
            self._drain = Drain(now, self.options.grace)
            self.said.enter(DRAINING)
        else:  # asked twice: whoever asks is in a hurry
            self._stop(child)

    def _hear(self, told: Told, child: Child) -> None:
        if told.reading is not None:
            self.said.serves(told.at)
        if self._drain is not None:
            self._last_word = told.reading
        if self.said.state != SERVING:
            return
        failure = self._hang.take(told.at, told.reading)
        if failure is not None:
            self._end(failure, child)

    def _end(self, failure: Failure, child: Child) -> None:
        """For cause, of which the first is told; none where it was to end anyway. The leader hears it before the engine is gone, as
        its own has lost a rank by then, and it waits only so long for a better reason than that."""
        if self._drain is not None or self.said.failure is not None:
            return
        failure = scrubbed(failure, self.options.environment)
        tell(f"ends the engine: {failure.message}")
        self.said.fails(failure)
        child.kill_all()
        if self._companion is not None:
            self._companion.report(failure, timeout=2.0)

    def _go_on(self, drain: Drain, child: Child, now: float) -> None:
        if self._companion is not None:
            step = drain.follow(now, leader_there=self._companion.leader_there)
        else:
            answers = self._address is not None and self.said.served
            step = drain.step(now, self._last_word, answers=answers)
        if step is Step.STOP and not self._stopped:
            self._stop(child)
        elif step is Step.KILL:
            if not self._killed:
                tell("the grace is over")
            self._killed = True
            child.kill_all()

    def _stop(self, child: Child) -> None:
        self._stopped = True
        child.send(signal.SIGTERM)

    def _never(self, error: OSError) -> int:
        program = self.options.argv[0]
        failure = Failure(
            "NoEngine",
            f"{program} cannot be started: {error.strerror or error}",
            "an image that has the engine (spec.engine.image), with the program on its PATH",
        )
        self._say(failure)
        return 127

    def _ended(self, code: int, log: Log) -> int:
        failure = self.said.failure
        if failure is None and self._drain is None:
            failure = self._member_lost() or self._why(code, log)
        if failure is None:
            return code
        self._say(failure)
        return code if 0 < code < 128 else 1

    def _member_lost(self) -> Failure | None:
        """An engine that lost a rank elsewhere knows of a broken connection only; whose it was, is about to be reported."""
        if self._members is None or not self._members.joined:
            return None
        until = time.monotonic() + 2 * REPORT_SECONDS
        while (lost := self._members.lost(time.monotonic())) is None and time.monotonic() < until:
            time.sleep(0.1)
        return lost

    def _why(self, code: int, log: Log) -> Failure:
        served = self.said.served
        last = time.monotonic() - RECENT_SECONDS if served else 0.0
        lines = [line.text for line in log.lines() if line.at >= last]
        phase = WHILE_SERVING if served else self.said.phase
        return explained(lines, phase, code, memory_kills=memory_kills() - self._kills)

    def _say(self, failure: Failure) -> None:
        failure = scrubbed(failure, self.options.environment)
        self.said.fails(failure)
        tell(f"{failure.word}: {failure.message}. Remedy: {failure.remedy}")
        if self.options.message is not None:
            leave(self.options.message, failure)
        if self._companion is not None:
            self._companion.report(failure, timeout=2.0)
        elif self._members is not None and self._members.joined:
            time.sleep(2 * REPORT_SECONDS)  # the side port tells all members why, when they next report


def memory_kills(root: Path = Path("/")) -> int:
    """How often the kernel has killed in this container for memory; 0 where that is not to be known."""
    for name in ("memory.events", "memory/memory.oom_control"):  # the older hierarchy counts in another file
        try:
            text = (root / "sys/fs/cgroup" / name).read_text(encoding="ascii")
        except OSError:
            continue
        found = [line.split()[1] for line in text.splitlines() if line.startswith("oom_kill ")]
        if found:
            return int(found[0])
    return 0
