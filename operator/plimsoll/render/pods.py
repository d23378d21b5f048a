"""The pod template of a set. It spells out everything, so that no default of a later Kubernetes version changes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from plimsoll import names
from plimsoll.api.config import OperatorConfig
from plimsoll.api.problems import Problem, SpecError
from plimsoll.api.v1alpha1.spec import LLMDeploymentSpec
from plimsoll.engines.command import PORT, EngineCommand
from plimsoll.engines.sources import fetched_first
from plimsoll.engines.timing import PULL_SECONDS, drain_seconds
from plimsoll.engines.vllm import served_names
from plimsoll.objects import Owner
from plimsoll.planning.plan import PlanSet
from plimsoll.render import placing
from plimsoll.render.adapters import adapter_words, keeps_adapters, list_name
from plimsoll.render.environment import environment
from plimsoll.render.images import Image, runtime_image
from plimsoll.render.owned import labels_of
from plimsoll.render.patching import patched
from plimsoll.render.probes import PORT_NAME, grace_seconds, hold_seconds, probes
from plimsoll.render.spreading import closing_words
from plimsoll.render.start import start_of, verbatim
from plimsoll.render.templating import NotAsMeant, fill, images_of
from plimsoll.render.volumes import volumes
from plimsoll.render.wrapping import member_words, plan_words, wrapped

CLAIM_TEMPLATE: Final = "resourceClaimTemplateName"
OUR_PREFIX: Final = "PLIMSOLL_"
"""Prefix of the variables that only we set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetTold:
    """Everything that the pods of one set are made from."""

    owner: Owner
    name: str
    digest: str
    spec: LLMDeploymentSpec
    """With presets and defaults merged in."""
    chosen: PlanSet
    image: Image
    config: OperatorConfig
    weight_bytes: int
    start_seconds: int
    group_label: str
    """The label whose value is the same on all pods of one group."""


def pod_template(
    told: SetTold, engine: EngineCommand, *, leads: bool, whoami: list[dict[str, Any]]
) -> dict[str, Any]:
    """The template. `leads`: its pods answer requests. `whoami`: the variables that tell a pod its place in its group; empty where a
    replica is one pod."""
    spec, chosen, grouped = told.spec, told.chosen, told.chosen.pods_per_replica > 1
    start, drain = start_of(engine), drain_seconds(told.spec, told.chosen)
    kept = volumes(
        spec,
        chosen,
        told.config.network,
        deployment=told.owner.name,
        set_name=told.name,
        weight_bytes=told.weight_bytes,
        adapter_list=list_name(told.owner) if keeps_adapters(spec, told.config) else None,
    )
    account = spec.scheduling.service_account
    rdma = grouped and bool(told.config.trust.rdma) and spec.topology.interconnect == "rdma"
    variables = environment(
        spec, chosen, engine, told.config.network, start_seconds=told.start_seconds, grouped=grouped
    )
    pod = fill(
        "pod",
        labels=_labels(told, leads=leads),
        annotations=placing.undisturbed(spec.pod_annotations, grouped=grouped),
        command=start.command,
        args=start.args,
        env=[*whoami, *(one for one in variables if not one["name"].startswith(OUR_PREFIX))],
        image=told.image,
        pull_secrets=[{"name": name} for name in told.image.pull_secrets],
        hold_seconds=hold_seconds(drain, leads=leads),
        grace_seconds=grace_seconds(drain),
        probes=_probes(told) if leads else {},
        ports=[{"name": PORT_NAME, "containerPort": PORT, "protocol": "TCP"}] if leads else [],
        resources=placing.resources(chosen),
        # RDMA needs memory that is locked, as the network card reads it directly.
        capabilities={"drop": ["ALL"], **({"add": ["IPC_LOCK"]} if rdma else {})},
        mounts=[mount for one in kept for mount in one.mounts],
        volumes=[one.volume for one in kept],
        affinity=placing.affinity(chosen, told.owner.name, told.group_label),
        spread=placing.spread(chosen, told.owner.name),
        tolerations=placing.tolerations(spec, chosen.hardware),
        claims=[{"name": placing.CLAIM, CLAIM_TEMPLATE: told.name}] if chosen.hardware.via_dra else [],
        priority_class=spec.scheduling.priority_class,
        scheduler=spec.scheduling.scheduler_name,
        service_account=told.owner.name if account is None else account,
    )
    if [*images_of(pod)] != [told.image.name]:
        raise NotAsMeant(f"the pod runs {sorted(images_of(pod))} instead of {told.image.name}")
    pod = patched(pod, spec.pod_patches, told.config)
    placing.leave_to_patches(pod, spec.pod_patches)
    return _supervised(pod, told, engine, drain) if told.config.runtime.enabled else pod


def _supervised(
    pod: dict[str, Any], told: SetTold, engine: EngineCommand, drain_seconds: int
) -> dict[str, Any]:
    """The pod, with its engine under our supervisor."""
    more = (
        *plan_words(told.chosen, pod, told.config, told.start_seconds + PULL_SECONDS),
        *member_words(engine.member),
        *_fetch_words(told.spec),
        *adapter_words(told.spec, told.config),
        *closing_words(told.spec, told.config, engine),
    )
    brings = None if told.image.supervised else runtime_image(told.config)
    return wrapped(pod, brings, drain_seconds, more)


def _fetch_words(spec: LLMDeploymentSpec) -> tuple[str, ...]:
    """Arguments that tell the supervisor what to fetch before it starts the engine."""
    return tuple(word for source in fetched_first(spec) for word in ("--fetch", verbatim(source)))


def _labels(told: SetTold, *, leads: bool) -> dict[str, str]:
    """The pod's labels: the user's, overridden by ours. Raises SpecError where a user's label has our prefix."""
    for key in sorted(told.spec.pod_labels):
        if key.startswith(f"{names.GROUP}/"):
            message = f"labels under {names.GROUP}/ are Plimsoll's own; choose another prefix"
            raise SpecError(Problem("spec.podLabels", key, message))
    labels = {
        **told.spec.pod_labels,
        **labels_of(told.owner),
        names.LABEL_SET: told.digest[: names.SET_HASH_LENGTH],
        names.LABEL_ROLE: names.SERVING,
    }
    labels[names.LABEL_LEADER] = "true" if leads else "false"
    if told.spec.scheduling.queue is not None:
        labels[names.LABEL_QUEUE] = told.spec.scheduling.queue
    return labels


def _probes(told: SetTold) -> dict[str, Any]:
    return probes(
        start_seconds=told.start_seconds,
        scheme=told.spec.networking.scheme,
        served_name=served_names(told.spec.model)[0],
    )
