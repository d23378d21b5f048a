"""What to run when no layout keeps all of the latency target: the layout that comes nearest to what cannot be kept, among those that keep
the rest, with a finding that says so."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Final

from plimsoll.planning.ask.intent import Intent
from plimsoll.planning.ask.task import Task
from plimsoll.planning.choice.candidate import Candidate, evaluate, predictor, room_for
from plimsoll.planning.choice.cheapest import Demand, Option, allowed, option_of
from plimsoll.planning.choice.steady import least_promise_ms
from plimsoll.planning.choice.weighing import Weighed, weigh
from plimsoll.planning.load import Performance
from plimsoll.planning.placing.placement import Slot
from plimsoll.planning.plan import Finding, Severity

UNATTAINABLE: Final = "Unattainable"
"""The reason of the finding, for whoever goes by it."""
TTFT: Final = "slo.ttftP99Ms"
ITL: Final = "slo.itlP99Ms"
DOUBLINGS: Final = 9
"""How often a gap between tokens is doubled until one is long enough beside a target of first tokens."""
PRECISION: Final = 20
"""Part of it to which the least is found then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Missed:
    """A target that is not kept: what is asked, and the most that a single request is predicted to take."""

    field: str
    asked: int
    predicted_ms: float

    @property
    def ratio(self) -> float:
        return self.predicted_ms / self.asked

    @property
    def figure(self) -> str:
        return f"{self.predicted_ms:,.{1 if self.field == ITL else 0}f} ms"

    @property
    def told(self) -> str:
        return f"{self.figure} for {self.field} {self.asked:,}"

    @property
    def least(self) -> int:
        """The least target that it would keep by itself."""
        return ceil(self.predicted_ms)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Way:
    """One layout that keeps what is left of the target."""

    task: Task
    """With only those targets that it keeps."""
    weighed: Weighed
    option: Option
    missed: tuple[_Missed, ...]

    @property
    def order(self) -> tuple[object, ...]:
        candidate = self.option.candidate
        return (
            not self.option.room,
            max(one.ratio for one in self.missed),
            candidate.gpu_hours,
            candidate.layout,
            candidate.slot.order,
        )


def nearest_to_target(
    task: Task, weighed: Weighed, slots: Sequence[Slot], demand: Demand, owner: str, *, money: bool
) -> tuple[Task, Weighed, tuple[Finding, ...]]:
    """Where no layout keeps the target even for one request: the nearest candidate, weighed again as if there were no target but what
    it keeps."""
    for left in _left_of(task.intent):
        ways = [
            way
            for intent in left
            for way in _ways(task, intent, weighed, slots, demand=demand, owner=owner, money=money)
        ]
        if ways:
            best = min(ways, key=lambda way: way.order)
            return (
                best.task,
                replace(best.weighed, options=(best.option,)),
                (_unattainable(best),),
            )
    return task, weighed, ()


def _left_of(intent: Intent) -> Iterator[tuple[Intent, ...]]:
    """What may be left of the target, most of it first: one of two, then nothing."""
    if intent.ttft_ms is not None and intent.itl_ms is not None:
        yield replace(intent, itl_ms=None), replace(intent, ttft_ms=None)
    yield (replace(intent, ttft_ms=None, itl_ms=None),)


def _ways(
    task: Task,
    left: Intent,
    weighed: Weighed,
    slots: Sequence[Slot],
    *,
    demand: Demand,
    owner: str,
    money: bool,
) -> Iterator[_Way]:
    """Layouts that keep what is left of the target."""
    eased = replace(task, intent=left)
    tried = weighed
    if left.has_target:
        # The cheapest that miss the whole target may keep nothing of it; those that keep this part were perhaps not looked at.
        tried = weigh(eased, slots, demand, owner, money=money)
    seen = {(one.slot.order, one.layout): one for one in (*weighed.candidates, *tried.candidates)}
    looked: Iterable[Candidate] = seen.values()
    if not left.has_target:
        # All of them keep nothing, so the nearest is known without another look at each.
        predicted = [(one, one.at_most) for one in looked if one.at_most is not None]
        predicted.sort(key=lambda pair: _nearness(pair[0], pair[1], task.intent, demand, owner))
        looked = [one for one, _ in predicted]
    for one in looked:
        again = evaluate(eased, one.slot, one.shape, one.layout)
        if not isinstance(again, Candidate) or again.at_most is None:
            continue
        option = option_of(eased, again, demand, room_for(again, owner), money=money)
        if option is not None:
            alone = predictor(eased, again.slot, again.layout, again.settings, again.ledger)(1)
            missed = tuple(_missed(task.intent, left, alone))
            yield _Way(task=eased, weighed=tried, option=option, missed=missed)
            if not left.has_target:
                return


def _nearness(
    candidate: Candidate, alone: Performance, asked: Intent, demand: Demand, owner: str
) -> tuple[object, ...]:
    """The key by which candidates come that keep nothing of the target, the nearest first."""
    nothing = replace(asked, ttft_ms=None, itl_ms=None)
    return (
        not min(allowed(candidate, demand), room_for(candidate, owner)),
        max(one.ratio for one in _missed(asked, nothing, alone)),
        candidate.gpu_hours,
        candidate.layout,
        candidate.slot.order,
    )


def _missed(asked: Intent, left: Intent, alone: Performance) -> Iterator[_Missed]:
    """The targets that are given up, as a request that is alone would take them."""
    if asked.ttft_ms is not None and left.ttft_ms is None:
        yield _Missed(field=TTFT, asked=asked.ttft_ms, predicted_ms=alone.ttft_ms.high)
    if asked.itl_ms is not None and left.itl_ms is None:
        yield _Missed(field=ITL, asked=asked.itl_ms, predicted_ms=alone.tpot_ms.high)


def _helping(best: _Way) -> dict[str, int | None]:
    """The least targets that the layout keeps, with those that it keeps already; None where no gap between tokens is long enough.

    By itself a request may keep a target that it misses beside another one: steps that are short enough for those who wait for their next token
    compute a long prompt too slowly. So gaps that are long enough are looked for."""
    missed, ttft_ms = {one.field: one for one in best.missed}, best.task.intent.ttft_ms
    found: dict[str, int | None] = {field: one.least for field, one in missed.items()}
    if TTFT in missed and best.option.steady is not None:
        # Of requests as users send them 99 of 100 are to keep it, and not only typical ones.
        of_all = least_promise_ms(best.task, best.option.candidate)
        found[TTFT] = None if of_all is None else max(of_all, missed[TTFT].least)
    if ITL not in missed or (ttft_ms is None and TTFT not in missed):
        return found
    first = ttft_ms if ttft_ms is not None else missed[TTFT].least
    asked, least = missed[ITL].asked, missed[ITL].least
    if least > asked and _keeps(best, first, least):
        return found
    low = max(asked, least)
    high = next(
        (gap for gap in (low << one for one in range(1, DOUBLINGS)) if _keeps(best, first, gap)), None
    )
    while high is not None and high - low > max(1, low // PRECISION):
        middle = (low + high) // 2
        low, high = (low, middle) if _keeps(best, first, middle) else (middle, high)
    return {**found, ITL: high}


def _keeps(best: _Way, ttft_ms: int, itl_ms: int) -> bool:
    candidate = best.option.candidate
    task = replace(best.task, intent=replace(best.task.intent, ttft_ms=ttft_ms, itl_ms=itl_ms))
    again = evaluate(task, candidate.slot, candidate.shape, candidate.layout)
    return isinstance(again, Candidate) and again.most > 0


def _unattainable(best: _Way) -> Finding:
    kept, missed, candidate, helping = best.task.intent, best.missed, best.option.candidate, _helping(best)
    alone = missed[0] if len(missed) == 1 else None
    no_layout, target, end = "no layout on these GPUs keeps", "the target", ""
    if alone is not None:
        target = f"{alone.field} {alone.asked:,}"
    for field, asked in ((TTFT, kept.ttft_ms), (ITL, kept.itl_ms)):
        if asked is not None:
            no_layout = f"no layout on these GPUs that keeps {field} {asked:,} also keeps"
            end = f", and keeps {field}"
    told = " and ".join(one.told for one in missed) if alone is None else alone.figure
    nearest = f"is predicted at up to {told}"
    if alone is not None and alone.predicted_ms <= alone.asked:
        nearest = f"would have to compute prompts in steps too short for {TTFT}"
    return Finding(
        severity=Severity.WARNING,
        reason=UNATTAINABLE,
        message=(
            f"{no_layout} {target} even for a single request; the nearest, {candidate.layout} on {candidate.slot.hardware}, "
            f"{nearest}. It is planned all the same{end}"
        ),
        field="slo" if alone is None else alone.field,
        value=None if alone is None else str(alone.asked),
        remedy=f"{' and '.join(_longer(field, least) for field, least in helping.items())}, faster GPUs, or a smaller or quantized model",
    )


def _longer(field: str, least: int | None) -> str:
    return f"a longer {field}" if least is None else f"{field} of {least:,} or more"
