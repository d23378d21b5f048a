"""The objects of which a deployment has one, whatever its sets: Service, PodDisruptionBudget, shared claims, routes, and its plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from plimsoll import names
from plimsoll.api.config import OperatorConfig
from plimsoll.api.defaults import effective
from plimsoll.api.v1alpha1.deployment import LLMDeployment
from plimsoll.api.v1alpha1.spec import LLMDeploymentSpec
from plimsoll.engines.adapters import come_and_go
from plimsoll.facts.capabilities import Capabilities
from plimsoll.objects import Manifest, Owner, Ref
from plimsoll.planning.plan import Plan
from plimsoll.render.adapters import adapter_object
from plimsoll.render.owned import leaders_of, members_of, owned
from plimsoll.render.revision import Revision, Workload
from plimsoll.render.routing import routes
from plimsoll.render.sets import owner_of
from plimsoll.render.volumes import shared_claims

PORTS: Final = {"http": 80, "https": 443}


def surroundings(
    deployment: LLMDeployment,
    revisions: Sequence[Revision],
    config: OperatorConfig,
    capabilities: Capabilities,
    *,
    stay: int,
) -> tuple[Manifest, ...]:
    """All these objects but the plan's ConfigMap. `revisions` are of all sets that have pods or are to have some; `stay` is the number of
    pods that evictions must leave."""
    spec = effective(deployment.spec, deployment.namespace, config).spec
    owner = owner_of(deployment)
    # Made even if the admin's config has no supervisors now: pods of sets that were made with one read the list as long as they live.
    listed = (adapter_object(spec, owner),) if come_and_go(spec) else ()
    return (*listed, *_objects(spec, owner, revisions, capabilities, stay))


def service_name(spec: LLMDeploymentSpec, owner: Owner) -> str:
    return spec.networking.service.name or owner.name


def service_host(spec: LLMDeploymentSpec, owner: Owner) -> str:
    return f"{service_name(spec, owner)}.{owner.namespace}.svc"


def endpoint(spec: LLMDeploymentSpec, owner: Owner) -> str:
    """The URL of the API inside the cluster. It has a port only where that is not the scheme's default."""
    scheme, port = spec.networking.scheme, spec.networking.service.port
    said = "" if port == PORTS[scheme] else f":{port}"
    return f"{scheme}://{service_host(spec, owner)}{said}"


def _objects(
    spec: LLMDeploymentSpec,
    owner: Owner,
    revisions: Sequence[Revision],
    capabilities: Capabilities,
    stay: int,
) -> Iterator[Manifest]:
    if spec.scheduling.service_account is None:
        yield owned("serviceaccount", owner, kind="ServiceAccount", name=owner.name)
    yield _service(spec, owner)
    if any(one.workload is Workload.STATEFUL_SET for one in revisions):
        yield owned(
            "headless",
            owner,
            kind="Service",
            name=names.child_name(owner.name, "headless"),
            selector=members_of(owner.name),
        )
    yield disruption_budget(owner, stay)
    weights = max((one.weight_bytes for one in revisions), default=0)
    for name, claim in shared_claims(spec, owner.name, weights) if revisions else ():
        yield owned("persistentvolumeclaim", owner, kind="PersistentVolumeClaim", name=name, spec=claim)
    yield from routes(spec, owner, service_name(spec, owner), revisions, capabilities)


def disruption_budget(owner: Owner, stay: int) -> Manifest:
    return owned(
        "poddisruptionbudget",
        owner,
        kind="PodDisruptionBudget",
        name=owner.name,
        stay=stay,
        selector=members_of(owner.name),
    )


def plan_ref(namespace: str, name: str) -> Ref:
    """The ConfigMap of a deployment's plan."""
    return Ref("v1", "ConfigMap", namespace, names.child_name(name, "plan"))


def plan_object(
    owner: Owner, plan: Plan, beside: Mapping[str, str] | None = None, turn: str = ""
) -> Manifest:
    """The ConfigMap with the whole plan, which later turns hold on to. `beside` is what else a turn keeps there, `turn` the digest of
    what it left behind."""
    annotations = {names.ANNOTATION_PLAN_DIGEST: plan.digest}
    if turn:
        annotations[names.ANNOTATION_TURN] = turn
    return owned(
        "configmap",
        owner,
        kind="ConfigMap",
        name=plan_ref(owner.namespace, owner.name).name,
        annotations=annotations,
        data={**(beside or {}), names.PLAN_KEY: plan.to_bytes().decode()},
        fixed=False,
    )


def _service(spec: LLMDeploymentSpec, owner: Owner) -> Manifest:
    asked = spec.networking.service
    return owned(
        "service",
        owner,
        kind="Service",
        name=service_name(spec, owner),
        labels=asked.labels,
        annotations=asked.annotations,
        protocol=spec.networking.scheme,
        port=asked.port,
        selector=leaders_of(owner.name),
        type=asked.type,
    )
