"""Whether a plan for the traffic as it is seen would be another one. The user is then told what to declare; nothing is changed."""

from __future__ import annotations

from collections.abc import Callable

from plimsoll.api.v1alpha1.deployment import LLMDeployment
from plimsoll.api.v1alpha1.spec import LLMDeploymentSpec
from plimsoll.api.v1alpha1.workload import Workload
from plimsoll.control.decision import Told
from plimsoll.control.record import Record
from plimsoll.control.workload import better_declaration
from plimsoll.planning.plan import Plan


def better(
    deployment: LLMDeployment,
    asked: LLMDeploymentSpec,
    record: Record | None,
    pinned: Plan,
    plan: Callable[[LLMDeployment], Plan],
) -> Told | None:
    """`asked` is its spec with presets and defaults, and `plan` plans a deployment anew, as if nothing ran yet.

    None where the pinned plan already tells that another one is better even for the declared traffic.
    """
    if (
        record is None
        or pinned.pinning is None
        or not pinned.pinning.kept
        or pinned.pinning.better is not None
    ):
        return None

    def replan(workload: Workload) -> Plan:
        spec = deployment.spec.model_copy(update={"workload": workload})
        return plan(deployment.model_copy(update={"spec": spec}))

    numbered = asked.replicas is None and asked.scaling.max is None
    return better_declaration(record.observed, asked.workload, pinned, replan, numbered=numbered)
