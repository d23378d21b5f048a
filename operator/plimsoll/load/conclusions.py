"""What the steps of a ramp show together: the knee, what holds the engine back there, and how right a plan's figures were.

These are pure functions over the steps that `ramp` measures.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from plimsoll.load.bottleneck import Circumstances, Judgement, judge, named
from plimsoll.load.compare import Comparison, Expected, compare
from plimsoll.load.engine import EngineWindow
from plimsoll.load.knee import BAD, Knee, Point, Sign, find_knee
from plimsoll.load.result import Result
from plimsoll.load.slo import Slo

RAMP_SCHEMA: Final = 1
NOT_SENT: Final = 0.01
"""Share of the requests that were due above which a step shows what this client holds, and not what a server does with its load."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    load: float
    result: Result
    engine: EngineWindow | None
    """What the engines exported meanwhile; None where they export nothing that is known."""
    away: str | None = None
    """What kept the endpoint from answering at all after it: whether the load was too much, or the server ended for another reason, is open."""

    @property
    def tells(self) -> bool:
        """Whether anything may be concluded from it."""
        return not self.result.interrupted and self.away is None

    @property
    def held(self) -> bool:
        """Whether this client held back a part of the load. What went ill all the same would have with the whole; what went well tells nothing."""
        return self.result.counts.not_sent_share > NOT_SENT

    def point(self) -> Point:
        result = self.result
        sent = max(1, result.counts.sent)
        lag = result.lag_ms.p95 if result.lag_ms else 0.0
        # Where answers began and none ended, they take as long at the least as was looked.
        answer_s = result.seconds if result.ttft_ms else 0.0
        return Point(
            load=self.load,
            sent_per_second=result.counts.sent / result.seconds,
            done_per_second=result.rates.requests,
            itl_p99_ms=result.itl_ms.p99 if result.itl_ms else None,
            gaps=result.itl_ms.count if result.itl_ms else 0,
            resolution_ms=lag,
            bad_share=result.counts.bad / sent,
            answer_s=result.e2e_ms.mean / 1000 if result.e2e_ms else answer_s,
            seconds=result.seconds,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Ramp:
    """Everything that a ramp showed."""

    schema: int = RAMP_SCHEMA
    url: str
    model: str
    closed_loop: bool
    input_tokens: str
    output_tokens: str
    seed: int
    interrupted: bool
    steps: tuple[Step, ...]
    """The steps by rising load."""
    knee: Knee | None
    keeps_targets: float | None
    """The highest load up to which every step kept the targets; None without targets, or where no step kept them."""
    judged_at: float | None
    """The load at which it was judged what holds the engine back: one past the knee, or one that missed a target."""
    bottleneck: Judgement | None
    judgements: tuple[Judgement, ...]
    comparison: Comparison | None
    notes: tuple[str, ...]

    @property
    def tried(self) -> float | None:
        """The highest load of which something is concluded; None where there is none."""
        return max((one.load for one in self.steps if one.tells and not one.held), default=None)

    @property
    def away(self) -> str | None:
        """What kept the endpoint from answering in the end."""
        return next((one.away for one in self.steps if one.away is not None), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a ramp was to do."""

    url: str
    model: str
    closed_loop: bool
    input_tokens: str
    output_tokens: str
    seed: int
    slo: Slo | None = None
    expected: Expected | None = None


def conclude(asked: Asked, steps: Sequence[Step], *, interrupted: bool) -> Ramp:
    """Everything that the steps show. A step that was interrupted, or that its endpoint did not survive, is shown, but nothing is concluded
    from it."""
    ordered = sorted(steps, key=lambda one: one.load)
    whole = [one for one in ordered if one.tells]
    knee = knee_of(whole, closed_loop=asked.closed_loop)
    over = [
        one for one in whole if one.result.kept is False or (knee is not None and one.load >= knee.beyond)
    ]
    well = [one for one in whole if over and one.load < over[0].load]
    past, judgements = _judged_beyond(over, knee, asked)
    comparison = None
    if asked.expected is not None:
        comparison = compare(
            asked.expected,
            # A load of which much fails has few in flight, and says nothing of a lower one that has as many.
            [one.result for one in whole if one.point().bad_share <= BAD],
            good_in_flight=well[-1].result.rates.in_flight_mean if well else None,
        )
    return Ramp(
        url=asked.url,
        model=asked.model,
        closed_loop=asked.closed_loop,
        input_tokens=asked.input_tokens,
        output_tokens=asked.output_tokens,
        seed=asked.seed,
        interrupted=interrupted,
        steps=tuple(ordered),
        knee=knee,
        keeps_targets=_keeps(whole),
        judged_at=past.load if past is not None else None,
        bottleneck=named(judgements),
        judgements=judgements,
        comparison=comparison,
        notes=tuple(_notes(ordered, whole, knee, closed_loop=asked.closed_loop)),
    )


def _judged_beyond(
    over: Sequence[Step], knee: Knee | None, asked: Asked
) -> tuple[Step | None, tuple[Judgement, ...]]:
    """The step to judge by, and its judgements: the first that went badly, or where that shows no cause the first one past the knee."""
    past: Step | None = None
    judgements: tuple[Judgement, ...] = ()
    for step in over:
        past, judgements = step, judge(step.engine, _circumstances(step, asked))
        if named(judgements) is not None or knee is None or step.load >= knee.beyond:
            break
    return past, judgements


def knee_of(steps: Sequence[Step], *, closed_loop: bool) -> Knee | None:
    """By the steps whose load was sent whole; beyond them by the first that went ill though it was not."""
    ordered = sorted((one for one in steps if one.tells), key=lambda one: one.load)
    whole = [one.point() for one in ordered if not one.held]
    knee = find_knee(whole, closed_loop=closed_loop)
    for point in (one.point() for one in ordered if one.held and knee is None):
        found = find_knee([*whole, point], closed_loop=closed_loop)
        knee = found if found is not None and found.beyond == point.load else None
    return knee


def _circumstances(step: Step, asked: Asked) -> Circumstances:
    return Circumstances(
        finished=step.result.counts.ok,
        ttft_p99_ms=step.result.ttft_ms.p99 if step.result.ttft_ms else None,
        ttft_target_ms=asked.slo.ttft if asked.slo else None,
        seats=asked.expected.seats if asked.expected else None,
        planned_bound=asked.expected.bound if asked.expected else None,
    )


def _keeps(steps: Sequence[Step]) -> float | None:
    best = None
    for step in steps:
        if not step.result.kept:
            break
        best = step.load
    return best


def _notes(
    steps: Sequence[Step], whole: Sequence[Step], knee: Knee | None, *, closed_loop: bool
) -> Iterator[str]:
    unit = "at once" if closed_loop else "requests/s"
    for note in dict.fromkeys(note for step in steps for note in step.result.notes):
        loads = [f"{step.load:g}" for step in steps if note in step.result.notes]
        yield note if len(loads) == len(steps) else f"at {', '.join(loads)} {unit}: {note}"
    lost = [one for one in steps if one.away is not None]
    for gone in lost:
        yield (
            f"after {gone.load:g} {unit} {gone.away}; that load says nothing until it is known why: "
            "see whether an engine ended (kubectl describe pod), and measure again"
        )
    if not steps:
        yield "no request fell into a step: answers take longer than steps (--step-duration), or it was interrupted first"
    held = [one for one in whole if one.held]
    most = max((one.load for one in whole if not one.held), default=None)
    if knee is None and held:
        yield (
            f"at {held[0].load:g} {unit} this client holds no more ({held[0].result.rates.in_flight_max:,} in flight), so what the server does there "
            "stays open: for more, run several"
        )
    if knee is None and most is not None and not lost:
        yield f"no knee up to {most:g} {unit}, the most that was tried"
    if knee is not None and not knee.confirmed:
        yield "no step beyond the knee confirms it: it may be noise"
    if any(step.engine is not None and step.engine.several for step in steps):
        yield (
            "different engines answered for /metrics, so counts between looks mean nothing; "
            "give each pod's page with --metrics-url"
        )
    if knee is not None and Sign.ERRORS in knee.signs:
        yield "errors ended the curve: see the problems of that step"
