"""The minutes of a simulation: every policy behind every router in every world, until somebody stops it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from plimsoll.cli.simulate_bar import Bar
from plimsoll.simulate.compare import Comparison, Result
from plimsoll.simulate.policies.registry import Stage
from plimsoll.simulate.router import Routing
from plimsoll.simulate.seeds import Case, InWorld, in_world


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    results: Mapping[Routing, tuple[Result, ...]]
    """Of the first world."""
    worlds: tuple[InWorld, ...]
    """Of all of them, the first one's too."""
    missing: tuple[Case, ...]


def play(cases: Sequence[Case], stage_of: Callable[[int], Stage], span_s: float) -> Done:
    """What each came to; where somebody stops it, what was done by then, and the rest. One world after the other is made and left again, so that
    several need no more memory than one."""
    results: dict[Routing, tuple[Result, ...]] = {}
    worlds: list[InWorld] = []
    several = cases[0].seed != cases[-1].seed
    with Bar(span_s) as bar:
        try:
            for seed, of_seed in groupby(cases, key=lambda case: case.seed):
                stage = stage_of(seed)
                for routing, of_router in groupby(of_seed, key=lambda case: case.routing):
                    comparison = Comparison(stage, routing=routing, progress=bar)
                    for case in of_router:
                        bar.begin(_said(case, len(worlds) + 1, len(cases), several=several))
                        done = comparison.best(case.policy)
                        if seed == cases[0].seed:
                            results[routing] = (*results.get(routing, ()), done)
                        worlds.append(in_world(case, done))
        except KeyboardInterrupt:
            if not worlds:
                raise
    return Done(results=results, worlds=tuple(worlds), missing=tuple(cases[len(worlds) :]))


def _said(case: Case, place: int, of: int, *, several: bool) -> str:
    seed = f" with seed {case.seed}" if several else ""
    return f"{case.policy} behind {case.routing}{seed} ({place} of {of})"
