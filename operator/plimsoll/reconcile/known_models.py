"""What is known of a deployment's models to those who only ask, as the webhook and the command line do.

They make no pods; what pods of the owner's told turns before holds for them as it does for a turn, or they would judge another
resource than the one that is planned.
"""

from __future__ import annotations

from collections.abc import Mapping

from plimsoll import names
from plimsoll.api.config import OperatorConfig
from plimsoll.api.defaults import effective
from plimsoll.api.problems import SpecError
from plimsoll.api.v1alpha1.deployment import LLMDeployment
from plimsoll.planning.planner import PlanFacts
from plimsoll.reconcile.kept import KeptModel
from plimsoll.reconcile.models import Found, plan_facts
from plimsoll.reconcile.told_models import told_models
from plimsoll.render.facts_pod import asked_of


def known_models(
    deployment: LLMDeployment,
    found: Mapping[str, Found],
    kept: tuple[KeptModel, ...],
    config: OperatorConfig,
) -> PlanFacts:
    """`found` is what one knows oneself, by field; `kept` what pods told. A model that neither knows is as missing as before."""
    alone = plan_facts(found)
    if alone.problem is None or not kept:
        return alone
    try:
        readable = asked_of(effective(deployment.spec, deployment.namespace, config).spec, config)
    except SpecError:
        return alone
    replan = deployment.metadata.annotations.get(names.ANNOTATION_REPLAN, "")
    told = told_models(found, readable, kept=kept, pods=(), replan=replan, paused=True, now=0.0).facts
    return alone if told.model is None or told.problem is not None or told.reading is not None else told
