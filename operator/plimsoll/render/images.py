"""Which image a pod runs: the user's own, the admin's for the version, else the one that the engine's project publishes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from plimsoll import __version__
from plimsoll.api.config import OperatorConfig, Registry
from plimsoll.api.problems import Problem, SpecError
from plimsoll.api.v1alpha1.spec import LLMDeploymentSpec
from plimsoll.facts.engines import EngineFacts
from plimsoll.planning.placing.images import (
    ADMIN_FIELDS,
    ADMIN_NAMES,
    PUBLISHED,
    listed,
    published,
    supervisor_in,
)
from plimsoll.planning.plan import PlanSet

PullPolicy = Literal["Always", "IfNotPresent", "Never"]

DEFAULT_REGISTRY: Final = "docker.io"
OPERATOR_IMAGE: Final = f"plimsoll:{__version__}"
"""The operator's own image, as the chart's values name it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    name: str
    pull_policy: PullPolicy | None
    pull_secrets: tuple[str, ...]
    own: bool
    """Whether the user named it."""
    binding: str
    """The part of the set's identity that the image is. An image that was chosen for this deployment is its name; a published image or
    a mirror is empty, so that a change of it by operator or admin replaces no set."""
    admins: str = ""
    """The admin's name of the image for this version, before a mirror is put in; empty where the image is not the admin's."""
    supervised: bool = False
    """Whether the admin says that the image contains the supervisor of this very release. That of another one takes other arguments."""


def image_of(spec: LLMDeploymentSpec, chosen: PlanSet, facts: EngineFacts, config: OperatorConfig) -> Image:
    """The image of a set's engine. `spec` with presets and defaults merged in. Raises SpecError where none is known for the hardware."""
    engine, vendor = spec.engine, chosen.hardware.vendor
    policy = engine.image_pull_policy
    secrets = tuple(dict.fromkeys((*engine.image_pull_secrets, *config.registry.pull_secrets)))
    if engine.image is not None:
        return Image(
            name=engine.image, pull_policy=policy, pull_secrets=secrets, own=True, binding=engine.image
        )
    named = listed(facts.version, vendor, config)
    name = named or _published(facts, vendor)
    return Image(
        name=mirrored(name, config.registry),
        pull_policy=policy,
        pull_secrets=secrets,
        own=False,
        binding=named if named is not None and rolled_by_operator(spec, config) else "",
        admins=named or "",
        supervised=named is not None and supervisor_in(facts.version, config) == __version__,
    )


def engine_images(facts: EngineFacts, config: OperatorConfig) -> Iterator[tuple[str, str]]:
    """For each vendor of hardware the engine's image that its pods run, before a mirror is put in."""
    for vendor in ADMIN_FIELDS:
        named = listed(facts.version, vendor, config)
        if named is not None or published(facts, vendor):
            yield vendor, named or _published(facts, vendor)


def rolled_by_operator(spec: LLMDeploymentSpec, config: OperatorConfig) -> bool:
    """Whether a newer image of the admin's is rolled out without the owner doing anything."""
    if spec.engine.upgrade is not None:
        return spec.engine.upgrade == "operator"
    return spec.engine.version is None and spec.engine.image is None and config.engines.upgrade == "operator"


def runtime_image(config: OperatorConfig) -> str:
    """The image whose init container brings the supervisor into engine pods."""
    return config.registry.runtime_image or mirrored(OPERATOR_IMAGE, config.registry)


def mirrored(name: str, registry: Registry) -> str:
    """The image's name with the admin's mirror in place of its own registry."""
    if registry.mirror is None:
        return name
    head, slash, rest = name.partition("/")
    named = slash and ("." in head or ":" in head or head == "localhost")
    return f"{registry.mirror.rstrip('/')}/{rest if named else name}"


def _published(facts: EngineFacts, vendor: str) -> str:
    if not published(facts, vendor):
        field = ADMIN_NAMES.get(vendor, "image")
        raise SpecError(
            Problem(
                "spec.engine.image",
                "",
                f"no image of {facts.profile.title} for {vendor} is published; name one here, or as {field} of the admin's "
                f"engines.versions, version {facts.version}",
            )
        )
    return f"{DEFAULT_REGISTRY}/{facts.profile.image}{PUBLISHED[vendor]}:v{facts.version}"
