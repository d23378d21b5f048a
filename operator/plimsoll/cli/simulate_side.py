"""Parts of a simulation side by side, each in a process of its own.

Processes are spawned, not forked: a fork copies locks that other threads of this one hold (the bar's, a client's), and is not to be had everywhere.
Each gets the plan and the trace once, and draws the worlds that it plays.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Mapping, MutableSequence, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from multiprocessing.reduction import ForkingPickler
from threading import Thread
from types import MappingProxyType
from typing import Final, TypeVar

from plimsoll.cli.simulate_bar import Bar
from plimsoll.simulate.compare import Comparison, Result
from plimsoll.simulate.policies.registry import KINDS, STATIC, Stage
from plimsoll.simulate.seeds import Case
from plimsoll.simulate.stages import Stages

LOOK_S: Final = 0.2
"""Between two looks at how far the processes are."""

Part = tuple[Case, ...]
"""Cases of one world and router that are played one after the other, as the runs of one serve the next."""
Tell = Callable[[Case, Result], None]
Over = list[tuple[Case, Result]]


Made = TypeVar("Made")
Held = Mapping[object, object]


def _held(items: dict[object, object]) -> Held:
    return MappingProxyType(items)


def _sent(held: Held) -> tuple[Callable[[dict[object, object]], Held], tuple[dict[object, object]]]:
    return _held, (dict(held),)


# Facts of engines hold such, which Python hands to no other process by itself.
ForkingPickler.register(MappingProxyType, _sent)


class Ended(Exception):
    """Something beside us ended a process: a sentence for the user."""


def freed(work: Callable[[], Made]) -> Made:
    """What the work gives. Where memory does not do for it, all that it held is let go of before anybody hears of it: with not a byte left
    the interpreter cannot leave a `with`, and tries for ever."""
    try:
        return work()
    except MemoryError:
        pass
    raise MemoryError


def parts_of(cases: Sequence[Case]) -> tuple[Part, ...]:
    """Constant numbers are found by the same runs; of all others each stands alone."""

    def alike(case: Case) -> tuple[object, ...]:
        return case.seed, case.routing, "static" if case.policy in STATIC else case.policy

    return tuple(tuple(part) for _, part in groupby(cases, key=alike))


def side_by_side(parts: Sequence[Part], stages: Stages, processes: int, tell: Tell) -> None:
    """Tells what each case came to as soon as its part is over. However it ends, no process stays."""
    context = multiprocessing.get_context("spawn")
    shares = context.RawArray("d", len(parts))
    pool = ProcessPoolExecutor(processes, context, _begin, (stages, shares))
    try:
        with _undisturbed():
            futures = {pool.submit(_play, place, part): place for place, part in enumerate(parts)}
        _wait_for(futures, parts, shares, processes, tell)
    except (BrokenProcessPool, BrokenPipeError):
        raise Ended(
            "a process that played a part of it was ended from outside, as on a machine that runs out of memory; --jobs 1 needs the least"
        ) from None
    except BaseException:
        for process in multiprocessing.active_children():
            process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _wait_for(
    futures: dict[Future[Over], int],
    parts: Sequence[Part],
    shares: MutableSequence[float],
    processes: int,
    tell: Tell,
) -> None:
    waiting, of, done = set(futures), sum(map(len, parts)), 0
    with Bar(of) as bar:
        while waiting:
            over, waiting = wait(waiting, timeout=LOOK_S, return_when=FIRST_COMPLETED)
            for future in over:
                for case, result in future.result():
                    tell(case, result)
                    done += 1
                shares[futures[future]] = 0.0
            bar.name(f"{done} of {of} done, {min(processes, len(waiting))} under way")
            bar(done + sum(shares))


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Ctrl-C reaches all processes of a terminal. Those that begin in here inherit that they do not hear it, so that it is this one that ends
    them; here it is heard after that."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@dataclass(slots=True)
class _Own:
    """What one of the processes has."""

    stages: Stages
    shares: MutableSequence[float]
    """Of each part, how far it is."""
    stage: tuple[int, Stage] | None = None
    """The last that was played, by its seed: mostly the next part is of the same."""

    def of(self, seed: int) -> Stage:
        if self.stage is None or self.stage[0] != seed:
            self.stage = None  # no two at once
            self.stage = seed, self.stages.stage(seed)
        return self.stage[1]


_own: list[_Own] = []
"""One, in a process that plays."""


def _begin(stages: Stages, shares: MutableSequence[float]) -> None:
    _own.append(_Own(stages, shares))
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """Who is killed can end nobody: without this the rest would go on for hours, and for nobody."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _play(place: int, part: Part) -> Over:
    own, span_s = _own[0], 0.0

    def progress(now: float) -> None:
        own.shares[place] = min(1.0, now / span_s)

    stage = freed(partial(own.of, part[0].seed))
    span_s = stage.arrivals.span_s
    # How many runs a search takes nobody knows before: it counts once it is over.
    searches = any(KINDS[case.policy].hindsight for case in part)
    comparison = Comparison(stage, routing=part[0].routing, progress=None if searches else progress)
    return [(case, freed(partial(comparison.best, case.policy))) for case in part]
