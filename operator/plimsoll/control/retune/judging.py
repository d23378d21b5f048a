"""Was the change good? Replicas with it beside replicas without it, in the same minutes, so that the load of the hour judges neither.

A gain must be seen, and nothing that users feel may be worse by more than chance: gaps between tokens, the longest ones above
all, errors, the time of a whole answer, how many first tokens and gaps come later than promised. Waiting may move in front of
the first token, within what is promised. Output is compared only where the changed replica has a queue of its own: one that keeps up
is not slower for being given less.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from plimsoll.control.retune.chance import Share, rare
from plimsoll.control.retune.figures import Figures, Tally
from plimsoll.control.retune.symptoms import ACT, CALM, Symptom
from plimsoll.control.situation import Slo

WORSE: Final = 1.10
"""Times the p99 between tokens without the change, beyond which it is worse with it."""
LONGER: Final = 1.05
"""The same of the p99 of whole answers."""
SLOWER: Final = 0.95
"""The same of output tokens a second, below which it is worse."""
ERRORS: Final = 0.005
"""By how much the share of requests that fail may grow. What is more and may be chance is neither good nor bad."""
GAIN: Final = 0.5
"""Times the preemptions without the change, up to which fewer of them are a gain."""
QUICKER: Final = 0.9
"""Times a latency without the change, up to which a shorter one is a gain."""
FEWER_WAIT: Final = 0.8
"""Times the waiting requests without the change, up to which fewer of them are a gain."""
LOAD_APART: Final = 0.2
"""By which share the requests that two replicas finish may differ for both to count as asked for equally much."""
AS_MAY: Final = Share(1000 * ERRORS, 1000)
"""What the others are taken for where nobody says how many of their requests failed: as many as may."""


class Answer(Enum):
    GOOD = "good"
    BAD = "bad"
    OPEN = "open"
    """Too little is known to say."""


@dataclass(frozen=True, slots=True)
class Verdict:
    answer: Answer
    why: str
    given_less: bool = False
    """The answer is open since the replica with the change is sent fewer requests than the others."""
    passing: bool = False
    """Bad only by what one slow minute of the machine would do too, so it has to last before anybody acts on it."""
    unkept: bool = False
    """The answer is open although something is worse than it may be, since it may be the load or chance that makes it so, and not the change."""
    unknown: bool = False
    """The answer is open since nobody says how something is with the change, which no change is good by."""


def judge(symptom: str, new: Figures, old: Figures, slo: Slo, *, gpus: float = 1.0) -> Verdict:
    """`gpus`: GPUs of a changed replica beside those of an unchanged one."""
    worse = _harm(new, old, slo, gpus)
    if worse is not None:
        return Verdict(Answer.BAD, worse)
    if (longer := _longer_gaps(new, old)) is not None:
        return Verdict(Answer.BAD, longer, passing=True)
    untold = _uncounted(new, old)
    if untold is None:
        verdict = _gain(symptom, new, old, slo)
        if verdict.answer is not Answer.GOOD:
            return verdict
        if (unsure := _perhaps_failing(new, old)) is not None:
            return unsure
        untold = _unseen(new, old)
        if untold is None:
            return verdict
    if _given_less(new, old):
        return _unproven(new, old, "of one that is given too little nothing is known")
    return _unknown(untold)


def comparable(new: Figures, baseline: Figures) -> bool:
    """Whether replicas are under about the same load now as when the baseline was taken: only then do the two compare.

    Where requests wait, what is finished shows what a replica can do and not what it is asked for. So finishing less is no smaller
    load while requests wait now, nor is finishing more a larger one where they waited then too.
    """
    if not new.finished or not baseline.finished:
        return False
    apart = new.finished / baseline.finished - 1
    return abs(apart) <= LOAD_APART or (new.queues and (apart < 0 or baseline.queues))


def under_another_load(new: Figures, old: Figures, slo: Slo, gpus: float) -> Verdict:
    """The verdict beside a baseline of another load.

    Under a smaller load nothing becomes worse by itself, so whatever is worse speaks against the change. Under a larger one
    everything may, except for failures, and for preemptions that are still as many as the change was to take away.
    """
    larger = (new.finished or 0.0) > (old.finished or 0.0)
    worse = _failing(new.failing, old.failing) if larger else _harm(new, old, slo, gpus)
    if (
        worse is None
        and new.preempted is not None
        and new.preempted >= max(ACT, GAIN * (old.preempted or 0.0))
    ):
        worse = f"{new.preempted:.1%} of requests are preempted still"
    if worse is not None:
        return Verdict(Answer.BAD, worse)
    if not larger and (longer := _longer_gaps(new, old)) is not None:
        return Verdict(Answer.BAD, longer, passing=True)
    if (unsure := _perhaps_failing(new, old)) is not None:
        return unsure
    if (late := _late_first(new, old, slo)) is not None:
        return Verdict(Answer.OPEN, f"{late}, under a larger load than when it began", unkept=True)
    if (untold := _uncounted(new, old) or _unseen(new, old)) is not None:
        return _unknown(untold)
    return Verdict(Answer.OPEN, "the load is another than when it began, so the two do not compare")


def fails(new: Tally, old: Tally, before: Figures) -> str | None:
    """That more requests fail with the change than without it, beyond chance and what is allowed: then nobody waits for more of them.

    Held against replicas without the change in the same minutes, or against the baseline where no such replica is left.
    """
    return _failing(new.failing, old.failing or before.failing)


def _harm(new: Figures, old: Figures, slo: Slo, gpus: float) -> str | None:
    early = _failing(new.failing, old.failing) or _late_first(new, old, slo)
    if early is not None:
        return early
    if _beyond(new.e2e_least, old.e2e_p99, LONGER):
        mine = f"at least {_ms(new.e2e_least)}" if new.e2e_p99 is None else _ms(new.e2e_p99)
        return f"p99 of a whole answer is {mine}, {_ms(old.e2e_p99)} without the change"
    if new.breaking is not None and old.breaking is not None and rare(new.breaking, old.breaking):
        return (
            f"the shares of first tokens and of gaps between tokens that are later than promised come to {new.breaking.part:.1%} together, "
            f"{old.breaking.part:.1%} without the change"
        )
    if new.queues and new.tokens is not None and old.tokens and new.tokens < SLOWER * old.tokens * gpus:
        return f"{new.tokens:,.0f} tokens/s a replica, {old.tokens:,.0f} without the change"
    return None


def _uncounted(new: Figures, old: Figures) -> str | None:
    """That something is counted without the change and not with it, in a clause."""
    counts = (("fail", new.errors, old.errors), ("are preempted", new.preempted, old.preempted))
    missing = (what for what, mine, theirs in counts if mine is None and theirs is not None)
    return next((f"how many requests {what}" for what in missing), None)


def _unseen(new: Figures, old: Figures) -> str | None:
    """That a latency is known without the change and not with it, in a clause: its question to the metrics had no answer, or nothing has ended
    yet."""
    known = (
        ("gaps between tokens", new.itl_p99, old.itl_p99),
        ("whole answers", new.e2e_least, old.e2e_p99),
        ("first tokens", new.samples or None, old.samples or None),
    )
    missing = (what for what, mine, theirs in known if mine is None and theirs is not None)
    return next((f"how long {what} take" for what in missing), None)


def _unknown(clause: str) -> Verdict:
    return Verdict(Answer.OPEN, f"it is not known {clause} with the change", unknown=True)


def _failing(mine: Share | None, theirs: Share | None) -> str | None:
    """That surely more requests fail with the change than may."""
    more = _failing_more(mine, theirs)
    return more if mine is not None and rare(mine, theirs or AS_MAY) else None


def _perhaps_failing(new: Figures, old: Figures) -> Verdict | None:
    """The verdict where more requests fail than may, and few enough for that to be chance: more of them will tell."""
    more = _failing_more(new.failing, old.failing)
    return None if more is None else Verdict(Answer.OPEN, f"{more}, which may be chance", unkept=True)


def _failing_more(mine: Share | None, theirs: Share | None) -> str | None:
    if mine is None or mine.part <= (theirs.part if theirs else 0.0) + ERRORS:
        return None
    before = f"{theirs} without it" if theirs else "without it nobody says how many"
    return f"{mine} requests fail with the change, {before}"


def _late_first(new: Figures, old: Figures, slo: Slo) -> str | None:
    promised = slo.ttft_p99_s
    if promised is None or not _beyond(new.ttft_p99, _latest(promised, old.ttft_p99), 1.0):
        return None
    return f"p99 of the first token is {_ms(new.ttft_p99)}, above the {_ms(promised)} promised"


def _longer_gaps(new: Figures, old: Figures) -> str | None:
    """That gaps between tokens are longer with the change.

    One step of the engine is a gap of every request that runs: a few slow steps are thousands of long gaps, so that a p99 of
    thousands of gaps is no surer than one of the few steps behind them.
    """
    if _beyond(new.itl_p99, old.itl_p99, WORSE):
        return f"p99 between tokens is {_ms(new.itl_p99)}, {_ms(old.itl_p99)} without the change"
    if new.gap is None or old.gap is None or new.gap <= old.gap:
        return None
    beyond, mine, theirs = new.gaps_beyond(old.gap), new.gaps, old.gaps
    if beyond is None or mine is None or theirs is None:
        return None
    # Of two kinds that are alike each has the longest gap as often as the other, so that gap alone says nothing. But that many
    # gaps are longer than any of the other kind, and all on one side, is hardly ever chance.
    if not rare(Share(beyond, mine), Share(0, theirs)):
        return None
    told = f"the longest gap between tokens is {_ms(new.gap)}, {_ms(old.gap)} without the change"
    return f"{told}, and {beyond:,.0f} gaps are longer than that"


def _latest(promised: float, before: float | None) -> float:
    """Where first tokens came too late already, they may come as late."""
    return promised if before is None or before <= promised else max(promised, WORSE * before)


def _gain(symptom: str, new: Figures, old: Figures, slo: Slo) -> Verdict:
    match symptom:
        case Symptom.SLOW_TOKENS | Symptom.CUT_IN:
            if new.itl_p99 is None or old.itl_p99 is None:
                return Verdict(Answer.OPEN, "too few gaps between tokens were seen", unknown=True)
            if symptom == Symptom.CUT_IN and _given_less(new, old):
                return _unproven(new, old, "fewer prompts cut into whoever is given less")
            good = new.itl_p99 <= QUICKER * old.itl_p99 or (
                slo.itl_p99_s is not None and new.itl_p99 <= slo.itl_p99_s
            )
            return _said(good, f"p99 between tokens {_ms(old.itl_p99)} to {_ms(new.itl_p99)}")
        case Symptom.LATE_FIRST:
            if new.ttft_p99 is None or old.ttft_p99 is None:
                return Verdict(Answer.OPEN, "too few first tokens were seen", unknown=True)
            if _given_less(new, old):
                return _unproven(new, old, "who is given less answers sooner")
            good = new.ttft_p99 <= QUICKER * old.ttft_p99
            return _said(good, f"p99 of the first token {_ms(old.ttft_p99)} to {_ms(new.ttft_p99)}")
        case Symptom.CAPPED:
            if new.waiting is None or old.waiting is None:
                return Verdict(Answer.OPEN, "nobody says how many requests wait", unknown=True)
            good = new.waiting <= FEWER_WAIT * old.waiting and (new.preempted or 0.0) < CALM
            return _said(good, f"{old.waiting:.1f} waiting requests a replica to {new.waiting:.1f}")
    if new.preempted is None:
        return Verdict(Answer.OPEN, "too few requests finished", unknown=True)
    if symptom == Symptom.RELAXED:
        return _said(new.preempted < CALM, f"{new.preempted:.1%} of requests are preempted")
    if _given_less(new, old):
        return _unproven(new, old, "whoever is given less preempts less")
    good = new.preempted < CALM or (old.preempted is not None and new.preempted <= GAIN * old.preempted)
    before = "" if old.preempted is None else f"{old.preempted:.1%} to "
    return _said(good, f"preempted requests {before}{new.preempted:.1%}")


def _given_less(new: Figures, old: Figures) -> bool:
    """Whether the replica with the change is sent too few requests, as one that has just come is. With a queue of its own it has enough."""
    if new.queues or new.finished is None or old.finished is None:
        return False
    return new.finished < (1 - LOAD_APART) * old.finished


def _unproven(new: Figures, old: Figures, why: str) -> Verdict:
    pace = f"{new.finished:.2g} requests/s finish, {old.finished:.2g} without the change"
    return Verdict(Answer.OPEN, f"{pace}: {why}", given_less=True)


def _said(good: bool, figures: str) -> Verdict:
    return Verdict(Answer.GOOD if good else Answer.BAD, figures if good else f"no gain: {figures}")


def _beyond(new: float | None, limit: float | None, factor: float) -> bool:
    return new is not None and limit is not None and new > factor * limit + 1e-9


def _ms(seconds: float | None) -> str:
    return "unknown" if seconds is None else f"{seconds * 1000:,.0f} ms"
