"""What should be there of a deployment by what is seen of it, as a turn carries it out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from plimsoll.api.problems import Problem
from plimsoll.control.decision import Told
from plimsoll.control.rollout import Rollout
from plimsoll.facts.groups import Reservation
from plimsoll.objects import Manifest
from plimsoll.planning.plan import Plan
from plimsoll.reconcile.kept import Kept
from plimsoll.render.revision import Revision


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    plan: Plan
    kept: Kept
    rollout: Rollout | None = None
    """None where nothing runs and nothing should."""
    revisions: Mapping[str, Revision] = field(default_factory=dict)
    """Of the sets that should exist."""
    manifests: tuple[Manifest, ...] = ()
    """All objects that should be there, the pinned plan last."""
    reservations: tuple[Reservation, ...] = ()
    """Devices that pods will take that are not on a node yet."""
    look_again_seconds: float | None = None
    lost: bool = False
    """Nothing could hold the pinned plan."""
    better: Told | None = None
    """What to declare, where the traffic that is seen would make another plan."""
    prune: bool = True
    """Whether what is not among the manifests is to go."""
    spared: frozenset[str] = frozenset()
    """Labels of sets that serve but whose revision cannot be read: nobody knows what they are, so nobody ends them."""
    unserved: tuple[Problem, ...] = ()
    """What the user asked for and cannot be made: mostly the cluster does not serve its kind."""
    frozen: bool = False
    """spec.paused: only status is written, and the PodDisruptionBudget."""
