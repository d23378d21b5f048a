"""A plan in several worlds, each drawn by its seed: what each policy came to in each, and what that says of the plan.

One world may be kind by chance: a policy that keeps the goal in it may miss it in the next.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import median
from typing import Any

from plimsoll.load.slo import percent
from plimsoll.simulate.compare import GOAL_PCT, Result
from plimsoll.simulate.router import Routing

Three = tuple[float, float, float]
"""The least, the middle and the most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A policy behind a router in the world of a seed."""

    seed: int
    routing: Routing
    policy: str

    def data(self, *, several: bool) -> dict[str, Any]:
        seed = {"seed": self.seed} if several else {}
        return {**seed, "routing": str(self.routing), "policy": self.policy}


@dataclass(frozen=True, slots=True, kw_only=True)
class InWorld:
    """What a case came to."""

    case: Case
    slo_pct: float | None
    """None: nothing was promised."""
    kept_pct: float
    """The same; where nothing was promised, who was answered."""
    gpu_hours: float

    @property
    def keeps(self) -> bool:
        return self.kept_pct >= GOAL_PCT

    @property
    def data(self) -> dict[str, Any]:
        return {**self.case.data(several=True), "sloPct": self.slo_pct, "gpuHours": self.gpu_hours}


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """What a policy behind a router came to over all worlds."""

    routing: Routing
    policy: str
    kept: int
    """In how many of them it kept the goal."""
    worlds: int
    slo_pct: Three | None
    gpu_hours: Three


def in_world(case: Case, result: Result) -> InWorld:
    return InWorld(
        case=case,
        slo_pct=result.outcome.figures.slo_pct,
        kept_pct=result.slo_pct,
        gpu_hours=result.gpu_hours,
    )


def spreads(found: Iterable[InWorld]) -> Iterator[Spread]:
    """In the order in which they came first."""
    each: dict[tuple[Routing, str], list[InWorld]] = {}
    for one in found:
        each.setdefault((one.case.routing, one.case.policy), []).append(one)
    for (routing, policy), worlds in each.items():
        kept = [one.slo_pct for one in worlds if one.slo_pct is not None]
        yield Spread(
            routing=routing,
            policy=policy,
            kept=sum(one.keeps for one in worlds),
            worlds=len(worlds),
            slo_pct=_three(kept) if kept else None,
            gpu_hours=_three([one.gpu_hours for one in worlds]),
        )


def _three(values: Sequence[float]) -> Three:
    return min(values), median(values), max(values)


def in_all_worlds(found: Sequence[InWorld], routing: Routing, *, first: int, alike: bool) -> str | None:
    """The answer for plimsoll, where more than one world is done; hours of GPUs that are not alike are not compared. `first` is the seed of the
    world that the report is of."""

    def of(policy: str) -> dict[int, InWorld]:
        return {
            one.case.seed: one for one in found if one.case.policy == policy and one.case.routing is routing
        }

    ours, constant = of("plimsoll"), of("static_peak")
    if len(ours) < 2:
        return None
    kept, least = sum(one.keeps for one in ours.values()), min(ours.values(), key=lambda one: one.kept_pct)
    share = "all" if kept == len(ours) else f"{kept or 'none'} of"
    keeps = "answers" if least.slo_pct is None else "keeps"
    told = {f"{percent(one.kept_pct)}%" for one in ours.values()}
    # What holds a policy back is told of the first world alone, which the worst may not be.
    hidden = not least.keeps and least.case.seed != first
    why = ", which says why when it is given first" if hidden else ""
    reached = f"at the least {percent(least.kept_pct)}% (with seed {least.case.seed}{why})"
    if len(told) == 1:
        reached = f"{told.pop()} in each"
    compared = _compared(ours, {seed: one for seed, one in constant.items() if seed in ours}) if alike else ""
    return f"in {share} {len(ours)} worlds plimsoll {keeps} {GOAL_PCT:g}%, {reached}{compared}"


def _compared(ours: dict[int, InWorld], constant: dict[int, InWorld]) -> str:
    """World by world: a constant number of one world says nothing of another."""
    enough = {seed: one for seed, one in constant.items() if one.keeps and one.gpu_hours}
    if not enough:
        return ""
    more = sorted(100 * (ours[seed].gpu_hours / one.gpu_hours - 1) for seed, one in enough.items())
    told = dict.fromkeys((_said(more[0]), _said(more[-1])))
    short = len(constant) - len(enough)
    none = f" (in {short} none does)" if short else ""
    return f"; in each, beside the smallest constant number that keeps it there{none}, it takes {' to '.join(told)} GPU-hours"


def _said(more_pct: float) -> str:
    if abs(more_pct) < 0.5:
        return "as many"
    return f"{abs(more_pct):.0f}% {'more' if more_pct > 0 else 'fewer'}"


def listed(missing: Sequence[Case], begun: Collection[int], *, several: bool) -> str:
    """One by one in worlds of which something is done; of the others everything is missing."""
    part, whole = [], []
    for seed, cases in groupby(missing, key=lambda one: one.seed):
        if several and seed not in begun:
            whole.append(seed)
            continue
        one_by_one = ", ".join(f"{one.policy} behind {one.routing}" for one in cases)
        part.append(f"{one_by_one} with seed {seed}" if several else one_by_one)
    return "; ".join((*part, *([f"everything with {seeds_said(whole)}"] if whole else ())))


def seeds_said(seeds: Sequence[int]) -> str:
    """Seed 1; seeds 1, 2 and 3."""
    *most, last = map(str, seeds)
    return f"seeds {', '.join(most)} and {last}" if most else f"seed {last}"
