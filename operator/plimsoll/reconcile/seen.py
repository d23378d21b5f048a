"""What a turn starts from: everything that is seen of a deployment, and the one place where a plan is asked for with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from plimsoll.api.config import OperatorConfig
from plimsoll.api.v1alpha1.deployment import LLMDeployment
from plimsoll.facts.capabilities import NONE, Capabilities
from plimsoll.facts.inventory import Inventory
from plimsoll.facts.learned import NOTHING, Learned
from plimsoll.facts.serving import Serving
from plimsoll.planning.pinning import Event, Wish
from plimsoll.planning.placing.budgets import Limits
from plimsoll.planning.plan import Plan
from plimsoll.planning.planner import PlanFacts, plan
from plimsoll.reconcile.direction import Direction
from plimsoll.reconcile.kept import Kept
from plimsoll.render.revision import Revision


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    deployment: LLMDeployment
    inventory: Inventory
    facts: PlanFacts
    now: float
    """Seconds since the epoch."""
    serving: Serving = field(default_factory=Serving)
    revisions: Mapping[str, Revision] = field(default_factory=dict)
    """Of the sets that were made, by set name."""
    kept: Kept = field(default_factory=Kept)
    learned: Learned = NOTHING
    config: OperatorConfig = field(default_factory=OperatorConfig)
    capabilities: Capabilities = NONE
    limits: Limits | None = None
    mark: str = ""
    """Names the release and the admin's config: a change of either makes every turn look at everything again."""
    gone_since: float | None = None
    """Since when nothing could hold the pinned plan."""
    direction: Direction | None = None
    """What the control loop says; None: nothing yet, so that what it said last stands."""

    def plan(
        self,
        asked: LLMDeployment,
        *,
        pinned: Plan | None = None,
        event: Event | None = None,
        wish: Wish | None = None,
    ) -> Plan:
        """For the deployment, or for one that asks for something else in its place."""
        return plan(
            asked,
            self.inventory,
            self.facts,
            learned=self.learned,
            config=self.config,
            pinned=pinned,
            event=event,
            limits=self.limits,
            wish=wish,
        )
