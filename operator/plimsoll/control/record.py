"""What control keeps of one deployment, so that a restart forgets nothing: beside the pinned plan, in the same object.

Small and bounded. It is written when something was decided, and now and then for what was learned meanwhile; an effect on
replicas follows only from a record that is stored, so that a crash between two writes resumes or undoes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from plimsoll.control.law import Law
from plimsoll.control.learning import other_runs
from plimsoll.control.memory import Memory
from plimsoll.control.retune.steps import OF_SET, RetuneMemory, of_set
from plimsoll.control.retune.turned import Turned
from plimsoll.control.workload import Observed
from plimsoll.facts.spans import DAY_S

ACTS_KEPT: Final = 50
SCALE: Final = "scale"
CALM_MOST_S: Final = 7 * DAY_S
"""As much of a calm is kept as an admin may ask for (restarts.releaseAfterSeconds)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """One thing that was done, and why."""

    at: float
    what: str
    """`scale`, or the setting that a retune changed; with its set where the plan has several."""
    before: str
    after: str
    reason: str
    """One stable word."""
    message: str


@dataclass(frozen=True, slots=True)
class Noted:
    """The value of an annotation, and when it was seen to change."""

    value: str
    at: float
    """0 where it was there before anybody looked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    replicas: int | None = None
    """Last decided; None: nothing was, and the declared load stands."""
    shares: Mapping[str, int] = field(default_factory=dict)
    """How many of them each set has, by the digest of its entry in the plan; empty where the plan has one set, or that was not decided."""
    memory: Memory = field(default_factory=Memory)
    retune: RetuneMemory = field(default_factory=RetuneMemory)
    observed: Observed = field(default_factory=Observed)
    acts: tuple[Act, ...] = ()
    """Newest first."""
    noted: Mapping[str, Noted] = field(default_factory=dict)
    """By annotation: those that ask for something by changing."""
    runs: tuple[str, ...] = ()
    """What the plan's sets ran at the last look, by its digests; empty where nobody has looked, or no plan has said it."""
    busy_at: float | None = None
    """When somebody last asked, as far as gateway and engines say; None: nobody has looked."""

    def read(self, now: float) -> Record:
        """The record as a program that has just begun goes on from it, which knows nothing of the time since it was written."""
        roles = {
            name: role if role.begun is None else role.blinded(now)
            for name, role in self.memory.roles.items()
        }
        # A symptom that was there then may have gone and come back since, so it is watched anew. But calm has to last for a day, longer than
        # many programs run, so as much of it as was seen still counts.
        retune = self._put_back(now).calm_again(now - (self.calm_s or 0.0)).watched_anew(now)
        return replace(self._maybe_asked(now), memory=replace(self.memory, roles=roles), retune=retune)

    def unwatched(self, now: float, jump_s: float) -> Record:
        """The record after a time in which nobody looked. What was timed in a longer one needs nothing here: the next look takes it for a jump
        of the clock."""
        watched = (role.looked_before(now, jump_s) for role in self.memory.roles.values())
        return self.read(now) if any(watched) else self._maybe_asked(now)

    def _maybe_asked(self, now: float) -> Record:
        """The record after a time of which nobody knows whether somebody asked in it."""
        return replace(self, busy_at=None if self.busy_at is None else now)

    def running(self, runs: Iterable[str], law: Law) -> Record:
        """The record where the plan's sets run this. A release before this one did not note what ran, so what it learned stays."""
        now = tuple(sorted({one for one in runs if one}))
        if not now or now == self.runs:
            return self
        noted = replace(self, runs=now)
        if not self.runs or not set(now).isdisjoint(self.runs):
            return noted
        roles = {name: other_runs(role, law) for name, role in self.memory.roles.items()}
        return replace(noted, memory=replace(self.memory, roles=roles))

    @property
    def under_way(self) -> tuple[object, ...] | None:
        """How far the retune under way is, as far as a turn acts on it; None where none is."""
        step = self.retune.step
        return None if step is None else (step.id, step.phase, step.rolled)

    def _put_back(self, now: float) -> RetuneMemory:
        """The retune by a clock that was put back since it was last looked at: else its deadlines would be as much later."""
        ahead = 0.0 if self._seen is None else self._seen - now
        return self.retune.moved(-ahead) if ahead > 0 else self.retune

    @property
    def _seen(self) -> float | None:
        """The last look."""
        return max((role.seen for role in self.memory.roles.values() if role.seen is not None), default=None)

    @property
    def calm_s(self) -> float | None:
        """For how long, until the last look, it was seen that an earlier change is no longer needed; None where it is needed."""
        since, seen = self.retune.calm_since, self._seen
        return None if since is None or seen is None else min(CALM_MOST_S, max(0.0, seen - since))

    @property
    def about(self) -> str:
        """The set of the last retune, as its last act names it; empty where that names none, or is forgotten."""
        last = next((act.what for act in self.acts if act.what != SCALE), "")
        return last.partition(OF_SET)[2]

    def with_act(self, act: Act) -> Record:
        return replace(self, acts=_kept((act, *self.acts)))


EMPTY: Final = Record()


def _kept(acts: tuple[Act, ...]) -> tuple[Act, ...]:
    """As many as are kept. Whichever kind has more than half of the room gives up its oldest: replicas move many times a day, and settings a few
    times a week."""
    while len(acts) > ACTS_KEPT:
        moved = [act.what == SCALE for act in acts]
        going = 2 * sum(moved) > len(acts)
        place = max(place for place, each in enumerate(moved) if each is going)
        acts = acts[:place] + acts[place + 1 :]
    return acts


def acts_of(now: float, before: RetuneMemory, turned: Turned, about: str = "") -> tuple[Act, ...]:
    """What one look did about a retune, for people to read later. `about`: its set, where the plan has several."""
    after = turned.memory
    # By its name: times of all that ended are other ones once a clock was put back.
    ended = (
        after.past[0] if after.past and after.past[0].id not in {past.id for past in before.past} else None
    )
    change = ended or after.step or before.step or after.suggested
    if change is None:
        return ()
    return tuple(
        Act(
            at=now,
            what=of_set(change.setting, about),
            before=change.before,
            after=change.after,
            reason=event.reason,
            message=event.message,
        )
        for event in turned.events
    )
