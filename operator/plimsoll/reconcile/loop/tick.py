"""What one tick of control starts from and ends with, for the functions that share its work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from plimsoll.api.config import OperatorConfig
from plimsoll.control.decision import SAYS_NOTHING, Awake, Told
from plimsoll.control.latencies import Spreads, latencies_of
from plimsoll.control.law import Law
from plimsoll.control.record import Record
from plimsoll.control.samples import Window
from plimsoll.control.signals import Signals, signals_of
from plimsoll.facts.histograms import Histogram
from plimsoll.facts.inventory import Inventory
from plimsoll.facts.pod_sample import PodKey
from plimsoll.facts.serving import PodSeen, Serving
from plimsoll.planning.placing.budgets import Claim
from plimsoll.reconcile.loop.budgets import Budgets
from plimsoll.reconcile.loop.grounds import Grounds
from plimsoll.reconcile.loop.replicas import leaders, live
from plimsoll.reconcile.loop.situations import SetsSeen
from plimsoll.reconcile.loop.sources import Looked
from plimsoll.reconcile.loop.subject import Subject
from plimsoll.status.told import News
from plimsoll.values import light

ROLE: Final = "serve"
UNREAD: Final[Mapping[tuple[str, str], tuple[PodSeen, ...]]] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One deployment, as a tick finds it."""

    subject: Subject
    record: Record
    serving: Serving
    ready: Mapping[tuple[str, str], tuple[PodSeen, ...]] = field(
        default_factory=lambda: UNREAD, repr=False, compare=False
    )
    """Pods that take requests of the replicas that are ready, by set and replica. They follow from `serving` where they are not handed in."""

    def __post_init__(self) -> None:
        if self.ready is UNREAD:
            object.__setattr__(self, "ready", leaders(self.serving))

    @property
    def asked_before(self) -> int:
        """Replicas that were asked for before this tick."""
        before = self.record.replicas
        return self.subject.replicas if before is None else before

    def noting(self, record: Record) -> Case:
        """The same case with another record."""
        return Case(subject=self.subject, record=record, serving=self.serving, ready=self.ready)


@light
@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    record: Record
    told: tuple[Told, ...] = ()
    reason: str = ""
    """Why this number of replicas."""
    awake: Awake = SAYS_NOTHING
    """Why it does not sleep, where it may and does not."""
    why_not: str = ""
    """Why no setting is changed, though something is wrong."""
    news: tuple[News, ...] = ()
    """Decisions of this tick, each to be told once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    now: float
    number: int
    window: Window
    looked: Looked
    inventory: Inventory
    config: OperatorConfig
    law: Law
    spreads: Spreads = field(default_factory=Spreads)
    sets: SetsSeen = field(default_factory=SetsSeen)
    spends: Mapping[str, tuple[tuple[Claim, int], ...]] = field(default_factory=dict)
    """What each deployment takes of its namespace's budget by its last decision, those that control does not look at included."""
    retuning: Mapping[str, float] = field(default_factory=dict)
    """GPUs of sets in retunes, of deployments of which nothing can be decided now."""
    grounds: Grounds = field(init=False)
    budgets: Budgets = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "grounds", Grounds(self.inventory, self.config))
        object.__setattr__(self, "budgets", Budgets(self.config, self.spends))

    def waiting(self, case: Case) -> float | None:
        """How many requests wait at the gateway, by the wake query; None where there is no query or no answer."""
        return self.looked.woken.waiting.get(case.subject.key)

    def signals(self, case: Case, sets: Sequence[str] | None = None) -> Signals:
        """Signals of these sets' replicas; without `sets`, of all."""
        space = case.subject.key.partition("/")[0]
        ready = case.ready
        summed = None
        if self.looked.histograms is not None:
            chosen = sets if sets is not None else sorted({name for name, _ in ready})
            summed = latencies_of(_found(self.looked.histograms, space, chosen), self.spreads)
        return signals_of(
            self.window,
            now=self.now,
            live=live(ready, sets).values(),
            reachable=self.looked.reachable,
            gateway=self.waiting(case),
            latencies=summed,
        )


def _found(
    histograms: Mapping[PodKey, Mapping[str, Histogram]], space: str, sets: Sequence[str]
) -> list[Mapping[str, Histogram]]:
    return [histograms[space, name] for name in sets if (space, name) in histograms]
