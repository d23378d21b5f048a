"""What was decided but the planned version of the engine has no flag for, told before anything serves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain

from plimsoll.api.problems import SpecError
from plimsoll.api.v1alpha1.deployment import LLMDeployment
from plimsoll.cli import asking
from plimsoll.facts.engines import engine_facts
from plimsoll.planning.plan import FleetPlan, Plan


def untold(question: asking.Question, plans: FleetPlan) -> Iterator[str]:
    """A line for each such decision, with its deployment where there are several."""
    made = {(plan.namespace, plan.name): plan for plan in plans.plans}
    for deployment in question.deployments:
        whose = f"{deployment.namespace}/{deployment.name}: " if len(made) > 1 else ""
        for one in _of(deployment, made[deployment.namespace, deployment.name], question):
            yield f"{whose}the engine is not told {one}"


def _of(deployment: LLMDeployment, plan: Plan, question: asking.Question) -> Mapping[str, None]:
    if not plan.sets:
        return {}
    from plimsoll.render.sets import freeze  # noqa: PLC0415 - templates take longer to load than most plans to be made

    known, config = asking.facts_of(deployment, question), question.snapshot.config
    facts = known.engine or engine_facts(plan.engine, plan.engine_version)
    try:
        sets = [freeze(deployment, one, facts=facts, config=config, model=known.model) for one in plan.sets]
    except SpecError:
        # Where no pod can be rendered, `render` says why.
        return {}
    return dict.fromkeys(chain.from_iterable(one.unsaid for one in sets))
