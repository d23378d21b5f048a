"""What is stored of a retune before it is done, while it is done, and after: frozen values, small enough for a status."""

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
"""How many are kept at most where they still count: more retunes a day cannot be allowed."""
OF_SET: Final = " on "
"""Between a setting or a symptom and the set that it is of."""
RUNNING: Final = " running "
"""Between the layout and hardware of a kind of set and what runs there."""
FAR = 2.0
"""Times by which the median lengths of two kinds of traffic differ."""


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


WATCHED: Final = frozenset({Phase.CANARY, Phase.JUDGING, Phase.ROLLING, Phase.VERIFYING})
"""Phases in which something is waited for, or counted, that may not have been there while nobody looked."""


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
    """Name of that set. It changes where an edit changes its pods alone, which ends the retune too. Empty where an older release wrote it."""
    baseline: Figures
    rolled: int = 0
    """Replicas that are to run with the change; on a surged way back those that still did at the last look."""
    seen: float | None = None
    """No longer used. Older releases wrote it, and a retune that they began could not be read without this field."""
    new: Tally = NOTHING
    old: Tally = NOTHING
    """What replicas with and without the change did in the same minutes of this phase."""
    starved: bool = False
    """Nothing was learned about the change: the canary was sent fewer requests than the others, found no place, or was not seen. An end is then
    no failure."""
    worse: float | None = None
    """Since when every look has found the canary worse in a way that may pass; None where the last look did not."""
    said: str = ""
    """What the last judgement was."""

    def moved(self, seconds: float) -> Step:
        """The step after a jump of the clock by so many seconds: as long under way as before it, and with as long to go."""
        worse = None if self.worse is None else self.worse + seconds
        return replace(self, since=self.since + seconds, deadline=self.deadline + seconds, worse=worse)

    def watched_anew(self, now: float, latest: float) -> Step:
        """The step after a time in which nobody looked. What was seen of the change before that is lost, so it is watched for as long as at
        first, and the time that was lost is given back; but not beyond the latest deadline, or each start of a program would prolong it."""
        deadline = max(self.deadline, min(latest, self.deadline + now - self.since))
        return replace(self, since=now, deadline=deadline, new=NOTHING, old=NOTHING, worse=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Requests:
    """What the requests were like, by tokens of the median one. None: not known."""

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
        """Whether the two are the same kind of traffic, as far as is known."""
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
    """The requests that it was judged under: under others the same change may help."""

    def no_later(self, now: float) -> Past:
        return replace(self, began=min(self.began, now), ended=min(self.ended, now))


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldBack:
    """Why no retune is begun, though a symptom lasts for which there is one."""

    reason: str
    """One stable word."""
    message: str
    since: float
    about: str = ""
    """The set that it is said of, in words; empty where the plan had one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetuneMemory:
    """What is remembered of one deployment's retunes; it outlives the program."""

    step: Step | None = None
    past: tuple[Past, ...] = ()
    """Newest first."""
    since: Mapping[str, float] = field(default_factory=dict)
    """By symptom and the set that it is of: since when it has been there. Older releases wrote the symptom without the set."""
    failures: int = 0
    """Since the last success, or since a person cleared them. A canary that was given too little is none."""
    failures_before: int = 0
    """As many as there were when the change that stays was done: they count on where it has to go after all."""
    restarts: tuple[float, ...] = ()
    """The moments of the last day at which a retune took a serving replica away without another one coming first."""
    paused_at: float | None = None
    suggested: Past | None = None
    """In a dry run: what would have been done, as it was said last."""
    suggested_before: tuple[Past, ...] = ()
    """The same of other kinds of sets and other settings, newest first."""
    kinds: Mapping[str, str] = field(default_factory=dict)
    """By identity of a retune or suggestion: the kind of set that it is of, as `kind_of` has it. It stands beside them since an older release, which passes over
    this, would read no past that had a word more. Of what that wrote it is not known."""
    held: HeldBack | None = None
    count: int = 0
    """Retunes that were ever planned, for their identities."""
    kept: Step | None = None
    """The change that stays, while engines that end with it still take it back: as it was done, without what it was judged by, and with the name
    of the set that serves with it once that is known. It stands beside the step, as `kinds` does."""
    latest: float | None = None
    """Until when programs that begin in it may prolong the phase under way; None where none did. It stands beside the step, as `kinds` does."""
    planned: Mapping[str, str] = field(default_factory=dict)
    """No longer used. Older releases wrote it; now the plan itself says what it had before the first retune."""

    @property
    def suggestions(self) -> tuple[Past, ...]:
        """Newest first."""
        return () if self.suggested is None else (self.suggested, *self.suggested_before)

    def concerns(self, past: Past, kind: str, *, whatever_runs: bool = False) -> bool:
        """Whether an earlier retune, or a suggestion, says something of this kind of set. One of which the kind, or what ran there, is not
        known does of all."""
        (before, _, ran), (here, _, runs) = (
            self.kinds.get(past.id, "").partition(RUNNING),
            kind.partition(RUNNING),
        )
        return _agree(before, here) and (whatever_runs or _agree(ran, runs))

    def of_kind(self, identity: str, kind: str) -> RetuneMemory:
        """The memory with the kind of set that a retune or suggestion is of, and without those of what is forgotten."""
        known = {identity, *(one.id for one in (*self.past, *self.suggestions))}
        kinds = {each: of for each, of in self.kinds.items() if each in known}
        return replace(self, kinds={**kinds, identity: kind} if kind else kinds)

    def suggesting(self, suggestions: tuple[Past, ...]) -> RetuneMemory:
        first, before = (suggestions[0], suggestions[1:]) if suggestions else (None, ())
        return replace(self, suggested=first, suggested_before=before)

    @property
    def calm_since(self) -> float | None:
        """Since when an earlier change has not been needed any more; None where it is needed."""
        return next((at for what, at in self.since.items() if _is_calm(what)), None)

    def calm_again(self, since: float) -> RetuneMemory:
        """The memory with calm counted from that moment, where there was any, and without all other symptoms."""
        return replace(self, since={what: since for what in self.since if _is_calm(what)})

    def watched_anew(self, now: float) -> RetuneMemory:
        """The memory after a time in which nobody looked. Such times together make a phase no more than twice as long."""
        step = self.step
        if step is None or step.phase not in WATCHED:
            return self
        latest = self.latest
        if latest is None:
            latest = step.deadline + max(0.0, step.deadline - step.since)
        return replace(self, step=step.watched_anew(now, latest), latest=latest)

    def moved(self, seconds: float) -> RetuneMemory:
        """The memory after a jump of the clock: what is being waited for moves with it, and what was done keeps its time."""
        return replace(
            self,
            step=None if self.step is None else self.step.moved(seconds),
            kept=None if self.kept is None else self.kept.moved(seconds),
            latest=None if self.latest is None else self.latest + seconds,
            since={what: at + seconds for what, at in self.since.items()},
        )


def kind_of(where: str, runs: str) -> str:
    """A kind of set: its layout and hardware, in words, and what runs there, as a digest that retunes do not change; empty where that is not
    known."""
    return f"{where}{RUNNING}{runs}" if runs else where


def place_of(kind: str) -> str:
    """The layout and hardware of a kind of set, in words."""
    return kind.partition(RUNNING)[0]


def _agree(one: str, other: str) -> bool:
    return not one or not other or one == other


def of_set(what: str, about: str) -> str:
    """A setting or a symptom with the name of its set, where the plan has several."""
    return f"{what}{OF_SET}{about}" if about else what


def _is_calm(what: str) -> bool:
    return what.partition(OF_SET)[0] == Symptom.RELAXED
