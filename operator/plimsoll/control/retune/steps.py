"""What is written down of a retune before it is done, while it is done, and after: frozen, and small enough for a status."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from plimsoll.control.latencies import Latencies
from plimsoll.control.retune.figures import NOTHING, Figures, Tally
from plimsoll.control.retune.symptoms import Symptom

PAST_KEPT = 20
PAST_MOST = 100
"""Kept where as many still count: so many retunes a day may be allowed at most."""
OF_SET: Final = " on "
"""Between a setting or a symptom and the set that it is of."""
FAR = 2.0
"""Requests whose median is so many times another one's are another kind of traffic."""


class Phase(StrEnum):
    PLANNED = "Planned"
    """Written down; nothing was touched yet."""
    CANARY = "Canary"
    """One replica is to run with the change; it is not ready yet."""
    JUDGING = "Judging"
    ROLLING = "Rolling"
    VERIFYING = "Verifying"
    ROLLING_BACK = "RollingBack"
    DONE = "Done"
    FAILED = "Failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One retune in flight."""

    id: str
    set: str
    """The set whose replicas ran before."""
    setting: str
    """As spec.tuning.allow spells it."""
    before: str
    after: str
    symptom: str
    why: str
    """What asked for it, with the figures, in a sentence."""
    phase: Phase
    began: float
    since: float
    """When this phase began."""
    deadline: float
    """When this phase is given up."""
    replicas: int
    """Of the set, when it began."""
    surge: bool
    """A further replica finds GPUs, so that none has to go first."""
    spec: str
    """Digest of what planning reads of the spec that it belongs to: whoever edits it wins."""
    serves: str = ""
    """Name of that set: pods that are to be other ones are the user's edit too. Empty: the release before did not say."""
    baseline: Figures
    rolled: int = 0
    """Replicas that are to run with the change."""
    seen: float | None = None
    """Written by the release before, and not read: without it, what that one wrote of a retune in flight could not be."""
    new: Tally = NOTHING
    old: Tally = NOTHING
    """What both kinds of replicas did in the same minutes of this phase."""
    starved: bool = False
    """Nothing was shown of the change: the canary was given less than the others when that could last be said, it never had a place, or
    nobody could look. The end is then no failure."""
    worse: float | None = None
    """Since when each look at the canary has found it worse by what may pass; None: the last one did not."""
    said: str = ""
    """What the last judgement was."""

    def moved(self, seconds: float) -> Step:
        """As long under way, and with as long to go, by a clock that was put forward by so much, or back."""
        worse = None if self.worse is None else self.worse + seconds
        return replace(self, since=self.since + seconds, deadline=self.deadline + seconds, worse=worse)


@dataclass(frozen=True, slots=True, kw_only=True)
class Requests:
    """What requests were like: tokens of the median one. None: nobody said."""

    prompt: float | None = None
    output: float | None = None

    @classmethod
    def of(cls, latencies: Latencies) -> Requests:
        prompt, output = (
            spread.p50 if spread is not None and spread.trusted else None
            for spread in (latencies.prompt, latencies.output)
        )
        return cls(prompt=prompt, output=output)

    def like(self, other: Requests) -> bool:
        """Whether neither is known to be far from the other's."""
        pairs = ((self.prompt, other.prompt), (self.output, other.output))
        return all(not one or not two or max(one, two) <= FAR * min(one, two) for one, two in pairs)


UNKNOWN = Requests()


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """A retune that ended."""

    id: str
    setting: str
    before: str
    after: str
    symptom: str
    outcome: Phase
    began: float
    ended: float
    reason: str
    tried: bool = True
    """False where the user's edit dropped it: that is no failure."""
    requests: Requests = UNKNOWN
    """Those that it was judged with: with others the same change may do."""

    def no_later(self, now: float) -> Past:
        return replace(self, began=min(self.began, now), ended=min(self.ended, now))


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldBack:
    """Why nothing is begun though something lasts that a retune is for."""

    reason: str
    """One stable word."""
    message: str
    since: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RetuneMemory:
    """Of one deployment; it outlives the program."""

    step: Step | None = None
    past: tuple[Past, ...] = ()
    """Newest first."""
    since: Mapping[str, float] = field(default_factory=dict)
    """Symptoms, each with the set that it is of, and since when they have been there. The release before wrote them without the set."""
    failures: int = 0
    """Since the last success, or since a person cleared them. A canary that was given too little is none."""
    restarts: tuple[float, ...] = ()
    """When a serving replica was taken away for a retune, without another one before it; the last day's."""
    paused_at: float | None = None
    suggested: Past | None = None
    """In a dry run: what would have been done."""
    held: HeldBack | None = None
    count: int = 0
    """Retunes that were ever planned, for their identities."""
    planned: Mapping[str, str] = field(default_factory=dict)
    """Written by the release before, and not read: the plan itself says now what it had before the first retune."""

    @property
    def calm_since(self) -> float | None:
        """Since when an earlier change has been no longer needed; None: it is."""
        return next((at for what, at in self.since.items() if _is_calm(what)), None)

    def calm_again(self, since: float) -> RetuneMemory:
        """Where it was no longer needed: as long as of that moment, and nothing else is known to be there."""
        return replace(self, since={what: since for what in self.since if _is_calm(what)})

    def moved(self, seconds: float) -> RetuneMemory:
        """What is waited for goes on by the new clock; when something was done stays as it was told."""
        step = None if self.step is None else self.step.moved(seconds)
        return replace(self, step=step, since={what: at + seconds for what, at in self.since.items()})


def of_set(what: str, about: str) -> str:
    """What was changed or is seen, of the set that it is about where there are several."""
    return f"{what}{OF_SET}{about}" if about else what


def _is_calm(what: str) -> bool:
    return what.partition(OF_SET)[0] == Symptom.RELAXED
