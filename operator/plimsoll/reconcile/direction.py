"""What the control loop hands to a deployment's turns: how many replicas, which change is tried, and what is to be told.

A turn takes it as it takes everything else that it sees. It is made anew only when something that matters changed, so that a
quiet deployment is left alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from plimsoll.api.v1alpha1.spec import LLMDeploymentSpec
from plimsoll.control.decision import Told, finds_no_gpus
from plimsoll.control.record import EMPTY, Record
from plimsoll.planning.pinning import Wish
from plimsoll.reconcile.changing import adopted
from plimsoll.reconcile.kept import Kept


@dataclass(frozen=True, slots=True, kw_only=True)
class Direction:
    uid: str = ""
    """Of the resource that it is about, as another one may have its name by now. Empty: it is for whichever has the name."""
    record: Record = EMPTY
    """What control remembers, to be kept with the plan. The number of replicas and a retune's effect follow from it alone."""
    reason: str = ""
    """Why this number of replicas, in a sentence; empty where the plan decides."""
    told: tuple[Told, ...] = ()
    """Conditions, sorted by type."""
    awake: str = ""
    """Why it does not sleep, where it may and does not; not with a figure that changes all the time."""

    @property
    def full(self) -> bool:
        """Whether the sets find no more devices."""
        return finds_no_gpus(self.told)

    @property
    def mark(self) -> tuple[object, ...]:
        """What of it a turn acts on. Messages are not part of it, as figures in them change all the time."""
        return (
            self.record.replicas,
            self.record.shares,
            self.record.under_way,
            self.awake,
            tuple((one.type, one.status, one.reason, one.besides) for one in self.told),
        )


def kept_by(kept: Kept, direction: Direction | None) -> Kept:
    """With what control remembers now; and where a retune was found good, with its change as part of the pinned plan."""
    record = kept.control if direction is None else direction.record
    if record is None:
        return kept
    plan = kept.plan if kept.plan is None else adopted(kept.plan, record.retune)
    return replace(kept, control=record, plan=plan)


def wished(spec: LLMDeploymentSpec | None, kept: Kept, direction: Direction | None) -> Wish | None:
    """How many replicas live traffic asks for, where it decides their number; None where it does not.

    Before control has spoken it is what it asked for last, and where that is lost too, the replicas of the pinned plan: a restart
    never cuts what serves down to the declared load.
    """
    if spec is None or spec.replicas is not None or spec.scaling.max is None:
        return None
    if kept.control is not None and kept.control.replicas is not None:
        further = direction is not None and direction.full
        return Wish(replicas=kept.control.replicas, shares=kept.control.shares, further=further)
    count = kept.plan.replicas_wanted if kept.plan is not None else 0
    return Wish(replicas=count) if count else None
