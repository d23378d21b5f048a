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
OPERATOR: Final = f"plimsoll:{__version__}"
"""As the chart's values name it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    name: str
    pull_policy: PullPolicy | None
    pull_secrets: tuple[str, ...]
    own: bool
    """Whether the user named it."""
    binding: str
    """What of it makes a set another one: an image that a person chose for this deployment. Published images and mirrors
    are the operator's and the admin's matter, and change no set that is there."""
    admins: str = ""
    """As the admin names it for the version, before a mirror takes its registry's place; empty where it is not the admin's."""
    supervised: bool = False
    """Whether the admin says that this release's supervisor is in it. Another release's reads other words."""


def image_of(spec: LLMDeploymentSpec, chosen: PlanSet, facts: EngineFacts, config: OperatorConfig) -> Image:
    """`spec` with presets and defaults merged in. Raises SpecError where no image is known for the hardware."""
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
    """Vendors, and the image of the engine that their pods run; before a mirror takes its registry's place."""
    for vendor in ADMIN_FIELDS:
        named = listed(facts.version, vendor, config)
        if named is not None or published(facts, vendor):
            yield vendor, named or _published(facts, vendor)


def rolled_by_operator(spec: LLMDeploymentSpec, config: OperatorConfig) -> bool:
    """Whether a newer image of the admin's may reach the deployment without its owner's doing."""
    if spec.engine.upgrade is not None:
        return spec.engine.upgrade == "operator"
    return spec.engine.version is None and spec.engine.image is None and config.engines.upgrade == "operator"


def runtime_image(config: OperatorConfig) -> str:
    """The image that brings the supervisor into engine pods, as they ask for it."""
    return config.registry.runtime_image or mirrored(OPERATOR, config.registry)


def mirrored(name: str, registry: Registry) -> str:
    """The image at the admin's mirror: its own registry's place taken, the rest of its name kept."""
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
