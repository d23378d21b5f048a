"""The pod that reads a model for the operator, where that takes a Secret or a volume of the owner's (it runs `plimsoll-runtime facts`).

What the pod is asked is a value with a digest, under which its answer is kept: the source, the revision, and what gives access to
them. The pod runs the supervisor's image without an engine, sees the volume read-only and the Secret by reference.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from plimsoll import names
from plimsoll.api.config import OperatorConfig
from plimsoll.api.v1alpha1.model import ModelSpec, SecretKey
from plimsoll.api.v1alpha1.source import HUBS, scheme_of, with_scheme
from plimsoll.api.v1alpha1.spec import LLMDeploymentSpec
from plimsoll.engines.sources import TOKENS, Named, hub_of, sources, word_of
from plimsoll.objects import Manifest, Owner, canonical
from plimsoll.render.environment import from_secret, outside
from plimsoll.render.images import runtime_image
from plimsoll.render.owned import owned
from plimsoll.render.start import SUPERVISOR, verbatim
from plimsoll.render.volumes import CA_FOLDER, CACHE, MODELS, mounted_source, read_only

DEADLINE_SECONDS: Final = 3600
"""How long a pod may live. Its kubelet starts it as soon as a missing Secret or claim is there, so it is given time to wait for that."""
CREDENTIALS: Final = ("AWS_", "RUNAI_STREAMER_S3_")
"""Prefixes of the variables that give access to buckets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedModel:
    """One model that a pod is to read."""

    field: str
    """The field of the spec that names the model, without the `spec.`."""
    source: str
    revision: str | None = None
    """For a model on a volume the pod is not told it; there it only marks what lies on the volume now."""
    word: str
    """What the pod is told to read: a folder that it sees, or the source itself."""
    env: tuple[Mapping[str, Any], ...] = ()
    volumes: tuple[Mapping[str, Any], ...] = ()
    mounts: tuple[Mapping[str, Any], ...] = ()
    pull_secrets: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """It differs wherever the answer may differ."""
        said = [self.source, self.revision or "", list(self.env), list(self.volumes), list(self.mounts)]
        return hashlib.sha256(canonical({"asked": said}).encode()).hexdigest()[:16]


def asked_of(spec: LLMDeploymentSpec, config: OperatorConfig) -> Mapping[str, AskedModel]:
    """The models of a spec, by field, that a pod in its owner's namespace could read. `spec` with presets and defaults merged in."""
    found = {}
    for one in sources(spec):
        if one.name not in ("model", "draft"):
            continue
        asked = _asked(spec, config, spec.model if one.name == "model" else _draft(spec, one.source), one)
        if asked is not None:
            found[asked.field] = asked
    return found


def _draft(spec: LLMDeploymentSpec, source: str) -> ModelSpec:
    """The draft model. It has the model's token only if it comes from the same hub, as another hub must not see the token."""
    return ModelSpec(
        source=source,
        revision=None if spec.speculative is None else spec.speculative.revision,
        token_secret=spec.model.token_secret if scheme_of(source) == hub_of(spec) else None,
    )


def _asked(
    spec: LLMDeploymentSpec, config: OperatorConfig, model: ModelSpec, named: Named
) -> AskedModel | None:
    """None where a pod could read no more than the operator can itself."""
    scheme, where = scheme_of(model.source), named.field.removeprefix("spec.")
    if scheme == "path":
        return _on_the_weights_claim(spec, model, where)
    mounted = mounted_source(named)
    if mounted is not None:
        return AskedModel(
            field=where,
            source=model.source,
            revision=model.revision,
            word=word_of(model.source, named.folder),
            volumes=(mounted.volume,),
            mounts=mounted.mounts,
            pull_secrets=spec.engine.image_pull_secrets if scheme == "oci" else (),
        )
    if config.network.offline or (scheme in HUBS and model.token_secret is None):
        return None
    return AskedModel(
        field=where,
        source=model.source,
        revision=model.revision,
        word=with_scheme(model.source),
        env=tuple(_credentials(spec, scheme, model.token_secret)),
    )


def _on_the_weights_claim(spec: LLMDeploymentSpec, model: ModelSpec, where: str) -> AskedModel | None:
    """A model at a path, where the claim for weights is mounted. Any other path is inside the engine's image, which this pod does not run."""
    claim = None if spec.storage.weights is None else spec.storage.weights.claim
    if claim is None:
        return None
    place = CACHE if spec.storage.cache is None and not claim.read_only else MODELS
    if not model.source.startswith(f"{place}/"):
        return None
    part = {} if claim.sub_path is None else {"subPath": claim.sub_path}
    return AskedModel(
        field=where,
        source=model.source,
        revision=model.revision,
        word=model.source,
        volumes=({"name": "weights", **read_only(claim.name)},),
        mounts=({"name": "weights", "mountPath": place, "readOnly": True, **part},),
    )


def _credentials(spec: LLMDeploymentSpec, scheme: str, secret: SecretKey | None) -> list[Mapping[str, Any]]:
    """Variables that give access to the model: those of the spec for buckets, the token for hubs."""
    if scheme == "s3":
        found = []
        for one in spec.engine.env:
            if one.name.startswith(CREDENTIALS):
                value: dict[str, Any] = {"value": verbatim(one.value or "")}
                if one.secret is not None:
                    value = from_secret(one.secret)
                found.append({"name": one.name, **value})
        return sorted(found, key=lambda one: str(one["name"]))
    return [] if secret is None else [{"name": TOKENS[scheme], **from_secret(secret)}]


def pod_name(owner: Owner, ticket: str, attempt: int) -> str:
    """A name of its own for each attempt, as the pod of the attempt before may still be there, and for each resource, by its uid."""
    digest = hashlib.sha256(f"{owner.uid} {ticket} {attempt}".encode()).hexdigest()
    return names.facts_pod_name(owner.name, digest)


def facts_pod(
    owner: Owner,
    spec: LLMDeploymentSpec,
    config: OperatorConfig,
    asked: AskedModel,
    *,
    ticket: str,
    attempt: int,
) -> Manifest:
    """The pod as an object. `ticket` names this reading; `spec` with presets and defaults merged in."""
    image, network = runtime_image(config), config.network
    volumes, mounts = [*asked.volumes], [*asked.mounts]
    if network.ca_bundle is not None:
        volumes.append({"name": "ca", "configMap": {"name": network.ca_bundle}})
        mounts.append({"name": "ca", "mountPath": CA_FOLDER, "readOnly": True})
    env = {name: {"name": name, "value": verbatim(value)} for name, value in outside(network).items()}
    env |= {str(one["name"]): dict(one) for one in asked.env}
    revision = () if asked.revision is None or asked.mounts else ("--revision", asked.revision)
    secrets = dict.fromkeys((*config.registry.pull_secrets, *asked.pull_secrets))
    return owned(
        "facts",
        owner,
        kind="Pod",
        name=pod_name(owner, ticket, attempt),
        labels={names.LABEL_ROLE: names.FACTS},
        annotations={
            names.ANNOTATION_TICKET: ticket,
            names.ANNOTATION_ATTEMPT: str(attempt),
        },
        images=(image,),
        args=[*map(verbatim, ("facts", asked.word, *revision))],
        command=SUPERVISOR,
        deadline_seconds=DEADLINE_SECONDS,
        env=[env[name] for name in sorted(env)],
        image=image,
        mounts=mounts,
        pull_secrets=[{"name": name} for name in secrets],
        scheduler=spec.scheduling.scheduler_name,
        service_account=spec.scheduling.service_account,
        tolerations=[one.to_dict() for one in spec.topology.tolerations],
        volumes=volumes,
    )
