"""The minutes of a simulation: every policy behind every router in every world, until somebody stops it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Final

from plimsoll.cli.errors import BadInput, note
from plimsoll.cli.simulate_bar import Bar
from plimsoll.cli.simulate_side import Ended, Part, Tell, freed, parts_of, side_by_side
from plimsoll.simulate.arrivals import Arrivals
from plimsoll.simulate.compare import Comparison, Result
from plimsoll.simulate.router import Routing
from plimsoll.simulate.seeds import Case, InWorld, in_world
from plimsoll.simulate.stages import Stages

LIGHT: Final = 500_000
"""Requests, over all that is played, that take some ten seconds: with fewer, processes gain less than it takes to begin them."""
HELD_MOST: Final = 20_000_000
"""Requests that all processes together hold unless somebody asks for more: each has its own copy of the trace, and of its world's requests."""
CPU_LIMIT: Final = Path("/sys/fs/cgroup/cpu.max")
"""Of a container that has one: microseconds in each period of so many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    results: Mapping[Routing, tuple[Result, ...]]
    """Of the first world."""
    worlds: tuple[InWorld, ...]
    """Of all of them, the first one's too."""
    missing: tuple[Case, ...]


def play(cases: Sequence[Case], stages: Stages, first: Arrivals, jobs: int | None) -> Done:
    """What each case came to; where somebody stops it, what was done by then, and the rest. `first` are the arrivals of the first world, and
    `jobs` how many processes may play; None: as many as are worth it."""
    whole: dict[Case, Result] = {}
    worlds: dict[Case, InWorld] = {}

    def tell(case: Case, result: Result) -> None:
        worlds[case] = in_world(case, result)
        # Of further worlds the figures are enough, and stories are long.
        if case.seed == cases[0].seed:
            whole[case] = result

    parts = parts_of(cases)
    processes = min(len(parts), usual_jobs(len(first), len(cases)) if jobs is None else jobs)
    try:
        if processes > 1:
            side_by_side(parts, stages, processes, tell)
        else:
            _one_by_one(parts, stages, first, tell)
    except (KeyboardInterrupt, Ended, MemoryError) as stopped:
        # The report is of the first world.
        if isinstance(stopped, KeyboardInterrupt):
            if not whole:
                raise
        else:
            why = str(stopped) if isinstance(stopped, Ended) else beyond_memory(len(first), processes)
            if not whole:
                raise BadInput(why) from None
            note([why])
    results: dict[Routing, tuple[Result, ...]] = {}
    for case in cases:
        if case in whole:
            results[case.routing] = (*results.get(case.routing, ()), whole[case])
    return Done(
        results=results,
        worlds=tuple(worlds[case] for case in cases if case in worlds),
        missing=tuple(case for case in cases if case not in worlds),
    )


def beyond_memory(requests: float, processes: int = 1) -> str:
    """That so many requests cannot be held, in a sentence."""
    less = "; --jobs 1 needs the least" if processes > 1 else ""
    return f"--trace: some {requests:,.0f} requests need more memory than there is; take a part with --days, or less with --scale{less}"


def usual_jobs(requests: int, cases: int) -> int:
    """How many processes are worth it for so many cases of so many requests each."""
    if requests * cases < LIGHT:
        return 1
    return max(1, min(_cores(), HELD_MOST // requests))


def _cores() -> int:
    """Those that this process may use, which may be fewer than the machine has."""
    found = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = CPU_LIMIT.read_text().split()
        return max(1, min(found, int(quota) // int(period)))
    except (OSError, ValueError):
        return found  # no container, or one without a limit


def _one_by_one(parts: Sequence[Part], stages: Stages, first: Arrivals, tell: Tell) -> None:
    """One world after the other is made and left again, so that several need no more memory than one."""
    done, of = 0, sum(map(len, parts))
    several = parts[0][0].seed != parts[-1][0].seed
    with Bar(first.span_s) as bar:
        for place, (seed, of_seed) in enumerate(groupby(parts, key=lambda part: part[0].seed)):
            stage = freed(partial(stages.stage, seed, None if place else first))
            for part in of_seed:
                comparison = Comparison(stage, routing=part[0].routing, progress=bar)
                for case in part:
                    done += 1
                    bar.begin(_said(case, done, of, several=several))
                    tell(case, freed(partial(comparison.best, case.policy)))


def _said(case: Case, place: int, of: int, *, several: bool) -> str:
    seed = f" with seed {case.seed}" if several else ""
    return f"{case.policy} behind {case.routing}{seed} ({place} of {of})"
