"""The objects of serving sets: a set is rendered and frozen once, and after that only its number of replicas changes.

Where a replica is one pod, a Deployment runs the replicas. A replica of several pods is a StatefulSet for its leader and one for its
workers, because these differ in probes, open ports and command lines. Kubernetes itself tells both their rank and the leader's name, so
nothing has to run before the engine. Where the user asks for it, a LeaderWorkerSet is made instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from plimsoll import names
from plimsoll.api.config import OperatorConfig
from plimsoll.api.defaults import effective
from plimsoll.api.v1alpha1.deployment import LLMDeployment
from plimsoll.api.v1alpha1.spec import LLMDeploymentSpec
from plimsoll.engines import ENGINES
from plimsoll.engines.adapters import come_and_go
from plimsoll.engines.command import EngineCommand, Member
from plimsoll.engines.sources import check_sources
from plimsoll.engines.timing import PULL_SECONDS, drain_seconds, start_seconds
from plimsoll.engines.vllm import served_names
from plimsoll.engines.vllm_groups import data_mode
from plimsoll.facts.engines import EngineFacts
from plimsoll.facts.model import ModelFacts
from plimsoll.objects import Manifest, Owner
from plimsoll.planning.plan import PlanSet
from plimsoll.render import environment, placing
from plimsoll.render.adapters import reads_adapters
from plimsoll.render.identity import identity, identity_before
from plimsoll.render.images import Image, image_of, rolled_by_operator
from plimsoll.render.owned import owned
from plimsoll.render.pods import SetTold, pod_template
from plimsoll.render.revision import IN_PLACE, RECREATED, Data, Revision, Workload
from plimsoll.render.templating import images_of
from plimsoll.render.volumes import TEMPLATE_KEY
from plimsoll.render.wrapping import is_supervised

LWS_GROUP: Final = "leaderworkerset.sigs.k8s.io/group-key"
LWS_RANK, LWS_LEADER = "$(LWS_WORKER_INDEX)", "$(LWS_LEADER_ADDRESS)"


def owner_of(deployment: LLMDeployment) -> Owner:
    return Owner(namespace=deployment.namespace, name=deployment.name, uid=deployment.metadata.uid or "")


def set_name(
    deployment: LLMDeployment,
    chosen: PlanSet,
    *,
    facts: EngineFacts,
    config: OperatorConfig,
    there: Mapping[str, Revision],
) -> str:
    """The name that a set of the plan has, or would get. `there` are the revisions that exist, which are read and not rendered again.

    A set of the previous release keeps its name although adapters' claims count in names now: it serves, and its pods read no list of
    adapters, so they would not use the claims. A set also keeps its name where only the permission of the operator to replace its image
    was given or taken: that alone replaces nothing.
    """
    spec = effective(deployment.spec, deployment.namespace, config).spec
    image = image_of(spec, chosen, facts, config)
    name = names.set_name(deployment.name, identity(spec, chosen, image))
    if name in there:
        return name
    if come_and_go(spec):
        before = there.get(names.set_name(deployment.name, identity_before(spec, chosen, image)))
        if before is not None and not reads_adapters(before.leader):
            return before.name
    # Two match where the owner forbids upgrades by the operator while one is under way. The older set is taken, so that the upgrade ends.
    stands = sorted(
        (one.image == image.name, one.name)
        for one in there.values()
        if _stands(one, spec, chosen, image, config)
    )
    return stands[0][1] if stands else name


def _stands(
    one: Revision, spec: LLMDeploymentSpec, chosen: PlanSet, image: Image, config: OperatorConfig
) -> bool:
    """Whether a set differs from what would be made now only in whether the operator may replace its image, and need not be replaced: it
    runs the same image, or the operator may not replace it.

    Older releases did not write down how the admin named the image. Then it is tried whether the digest is that of the admin's present
    name, or of the name of the image that runs, which is the admin's where there was no mirror.
    """
    if image.own or one.entry.digest != chosen.digest:
        return False
    bounds = (
        ("",) if image.binding else (one.admins_image,) if one.admins_image else (image.admins, one.image)
    )
    for bound in bounds:
        if one.digest == identity(spec, chosen, replace(image, binding=bound)):
            kept = bound != "" and not rolled_by_operator(spec, config)
            return one.image == image.name or kept
    return False


def freeze(
    deployment: LLMDeployment,
    chosen: PlanSet,
    *,
    facts: EngineFacts,
    config: OperatorConfig,
    model: ModelFacts | None = None,
) -> Revision:
    """A new set, rendered. Raises SpecError where what the user wrote cannot be made (no image, a patch that does not fit).

    `model` is what is known of the model as it lies in storage; without it the model's size follows from the set's ledger.
    """
    spec = effective(deployment.spec, deployment.namespace, config).spec
    check_sources(spec)
    image = image_of(spec, chosen, facts, config)
    digest = identity(spec, chosen, image)
    spec = _at_known_commit(spec, model)
    weight_bytes = _weight_bytes(chosen, model)
    kind = _workload(spec, chosen)
    told = SetTold(
        owner=owner_of(deployment),
        name=names.set_name(deployment.name, digest),
        digest=digest,
        spec=spec,
        chosen=chosen,
        image=image,
        config=config,
        weight_bytes=weight_bytes,
        start_seconds=start_seconds(spec, weight_bytes),
        group_label=LWS_GROUP if kind is Workload.LEADER_WORKER_SET else names.LABEL_GROUP,
    )
    mixture = model is not None and model.architecture.is_moe
    leader, worker, unsaid = _templates(told, kind, facts, mixture=mixture)
    in_place = kind is Workload.LEADER_WORKER_SET and all(map(is_supervised, filter(None, (leader, worker))))
    inline = spec.chat_template.inline if spec.chat_template is not None else None
    return Revision(
        name=told.name,
        digest=digest,
        entry=chosen,
        workload=kind,
        image=image.name,
        engine_version=facts.version,
        leader=leader,
        worker=worker,
        files={TEMPLATE_KEY: inline} if inline is not None else {},
        claim=placing.claim_spec(chosen) if chosen.hardware.via_dra else None,
        labels={names.LABEL_QUEUE: spec.scheduling.queue} if spec.scheduling.queue is not None else {},
        served_names=served_names(spec.model),
        start_seconds=told.start_seconds,
        drain_seconds=drain_seconds(spec, chosen),
        weight_bytes=weight_bytes,
        admins_image="" if image.own else image.binding,
        group_restarts=IN_PLACE if in_place else RECREATED,
        unsaid=unsaid,
    )


def workload(
    revision: Revision, owner: Owner, replicas: int, groups: Sequence[int] | None = None
) -> tuple[Manifest, ...]:
    """A set's objects, without its revision. Where each replica has objects of its own, `groups` are the numbers of the replicas that
    there should be; without it they are numbered from 0."""
    found = list(_beside(revision, owner))
    match revision.workload:
        case Workload.DEPLOYMENT:
            found.append(_deployment(revision, owner, replicas))
        case Workload.LEADER_WORKER_SET:
            found.append(_leader_worker_set(revision, owner, replicas))
        case Workload.STATEFUL_SET:
            for number in range(replicas) if groups is None else sorted(groups):
                found += _group(revision, owner, number)
    return tuple(found)


def _workload(spec: LLMDeploymentSpec, chosen: PlanSet) -> Workload:
    if chosen.pods_per_replica == 1:
        return Workload.DEPLOYMENT
    asked = spec.topology.groups == "LeaderWorkerSet"
    return Workload.LEADER_WORKER_SET if asked else Workload.STATEFUL_SET


def _at_known_commit(spec: LLMDeploymentSpec, model: ModelFacts | None) -> LLMDeploymentSpec:
    """The spec with the model's revision set to the commit that was planned with, so that all replicas load the same one, whatever is
    pushed meanwhile. A claim that pods only read has the commit that somebody put there, which the hub's newest need not be."""
    weights = spec.storage.weights
    if (
        model is None
        or model.revision is None
        or spec.model.revision is not None
        or spec.model.scheme != "hf"
        or (weights is not None and weights.is_read_only)
    ):
        return spec
    return spec.model_copy(update={"model": spec.model.model_copy(update={"revision": model.revision})})


def _weight_bytes(chosen: PlanSet, model: ModelFacts | None) -> int:
    draft = chosen.settings.speculation.draft_weight_bytes if chosen.settings.speculation is not None else 0
    if model is not None:
        return model.weights.on_storage + draft
    layout = chosen.layout
    ranks = layout.gpus if layout.expert_parallel else layout.tensor * layout.pipeline
    each = next((term.bytes.high for term in chosen.ledger.terms if term.name == "weights"), 0.0)
    return int(each) * ranks + draft


def _templates(
    told: SetTold, kind: Workload, facts: EngineFacts, *, mixture: bool
) -> tuple[Data, Data | None, tuple[str, ...]]:
    """The leader's template, the workers' where there are any, and what this version of the engine has no flag for."""
    command, pods = ENGINES[facts.name], told.chosen.pods_per_replica
    if pods == 1:
        engine = command(told.spec, told.chosen, facts)
        return pod_template(told, engine, leads=True, whoami=[]), None, _unsaid(engine)
    everyone = data_mode(told.spec, told.chosen.layout, pods, mixture=mixture) != "internal"
    made: list[Data] = []
    unsaid: tuple[str, ...] = ()
    for leads in (True,) if everyone else (True, False):
        on_lws = kind is Workload.LEADER_WORKER_SET
        member = Member(
            pods=pods,
            rank=LWS_RANK if on_lws else f"$({environment.RANK})",
            leader=LWS_LEADER if on_lws else f"$({environment.LEADER})",
            leads=leads,
            mixture=mixture,
            start_seconds=told.start_seconds,
        )
        engine = command(told.spec, told.chosen, facts, member)
        headless = names.child_name(told.owner.name, "headless")
        ranked = everyone or not leads
        whoami = (
            []
            if on_lws
            else environment.member_variables(told.name, headless, told.owner.namespace, ranked=ranked)
        )
        made.append(pod_template(told, engine, leads=leads, whoami=whoami))
        unsaid = unsaid or _unsaid(engine)
    return made[0], made[1] if len(made) > 1 else None, unsaid


def _unsaid(engine: EngineCommand) -> tuple[str, ...]:
    return tuple(f"{one.flag}: {one.why}" for one in engine.unsaid)


def _beside(revision: Revision, owner: Owner) -> Iterator[Manifest]:
    if revision.files:
        yield owned(
            "configmap",
            owner,
            kind="ConfigMap",
            name=revision.name,
            labels=revision.set_labels,
            data=dict(revision.files),
            fixed=True,
        )
    if revision.claim is not None:
        yield owned(
            "resourceclaimtemplate",
            owner,
            kind="ResourceClaimTemplate",
            name=revision.name,
            labels=revision.set_labels,
            spec=revision.claim,
        )


def _deployment(revision: Revision, owner: Owner, replicas: int) -> Manifest:
    return owned(
        "deployment",
        owner,
        kind="Deployment",
        name=revision.name,
        labels={**revision.labels, **revision.set_labels},
        images=tuple(images_of(revision.leader)),
        progress_seconds=revision.start_seconds + PULL_SECONDS,
        replicas=replicas,
        selector=_selector(revision, owner),
        template=revision.leader,
    )


def _leader_worker_set(revision: Revision, owner: Owner, replicas: int) -> Manifest:
    alike = revision.worker is None
    return owned(
        "leaderworkerset",
        owner,
        kind="LeaderWorkerSet",
        name=revision.name,
        labels={**revision.labels, **revision.set_labels},
        images=tuple(images_of([revision.leader, revision.worker])),
        replicas=replicas,
        restarts=revision.group_restarts,
        size=revision.pods_per_replica,
        leader=None if alike else revision.leader,
        worker=revision.leader if alike else revision.worker,
    )


def _group(revision: Revision, owner: Owner, number: int) -> Iterator[Manifest]:
    """The StatefulSets of one replica: one of its leader, rank 0, and one of its workers, ranks from 1. Where all pods lead it is one."""
    together = revision.worker is None
    yield _stateful_set(
        revision,
        owner,
        number,
        name=names.group_name(revision.name, number),
        template=revision.leader,
        first=0,
        pods=revision.pods_per_replica if together else 1,
    )
    if revision.worker is not None:
        yield _stateful_set(
            revision,
            owner,
            number,
            name=names.workers_name(revision.name, number),
            template=revision.worker,
            first=1,
            pods=revision.pods_per_replica - 1,
        )


def _stateful_set(
    revision: Revision, owner: Owner, number: int, *, name: str, template: Data, first: int, pods: int
) -> Manifest:
    group = {names.LABEL_GROUP: str(number)}
    metadata = template["metadata"]
    numbered = {**template, "metadata": {**metadata, "labels": {**metadata["labels"], **group}}}
    leader = {names.LABEL_LEADER: metadata["labels"][names.LABEL_LEADER]}
    return owned(
        "statefulset",
        owner,
        kind="StatefulSet",
        name=name,
        labels={**revision.labels, **revision.set_labels, **group, **leader},
        images=tuple(images_of(template)),
        first=first,
        pods=pods,
        selector={**_selector(revision, owner), **group, **leader},
        service=names.child_name(owner.name, "headless"),
        template=numbered,
    )


def _selector(revision: Revision, owner: Owner) -> dict[str, str]:
    return {names.LABEL_DEPLOYMENT: owner.name, **revision.set_labels}
