"""`plimsoll images`: lists every image that a cluster pulls for Plimsoll, to fill a mirror where the cluster reaches nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Final

import click

from plimsoll.api.config import OperatorConfig
from plimsoll.api.defaults import effective
from plimsoll.api.v1alpha1.deployment import LLMDeployment
from plimsoll.api.v1alpha1.source import location_of, scheme_of
from plimsoll.cli import drawing, inputs
from plimsoll.cli.output import output_option, print_data
from plimsoll.engines.sources import sources
from plimsoll.render.images import OPERATOR_IMAGE, engine_images, mirrored, runtime_image

BUNDLED: Final = {
    ("nvidia", "0.33.0"): "runtime/images/cuda",
    ("amd", "0.33.0"): "runtime/images/rocm",
    ("cpu", "0.32.0"): "runtime/images/cpu-supervised",
}
"""Images that an admin may build from this repository instead: the folder of the Dockerfile by vendor and version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Needed:
    image: str
    pulled: str
    """The name that pods use, which differs where the admin names a mirror."""
    why: str


@click.command("images", cls=inputs.OfFiles)
@inputs.files_option
@inputs.config_option
@output_option
def images_command(*, files: tuple[str, ...], config_file: str | None, output: str) -> None:
    """List the operator's image, the engine's for each vendor, and those that resources name.

    Engine versions are those of the admin's file, else the default one. The operator's own image is named as in the
    chart's values; image.repository there says where it is pulled from.

    \b
    Examples:
      plimsoll images
      plimsoll images --config config.yaml -f llm.yaml -o json
    """
    admin = inputs.config(config_file)
    found = needed(admin, inputs.deployments(files) if files else ())
    if output != "text":
        print_data([asdict(one) for one in found], output)
        return
    rows = [(one.image, one.pulled if one.pulled != one.image else "-", one.why) for one in found]
    drawing.show([drawing.table(("IMAGE", "PULLED AS", "FOR"), rows, left=(0, 1, 2))])


def needed(admin: OperatorConfig, resources: Iterable[LLMDeployment]) -> tuple[Needed, ...]:
    """Each image once, in a fixed order: the operator's, the engine's, those that resources name."""
    found: dict[tuple[str, str], Needed] = {}
    own = (one for resource in resources for one in _own(resource, admin))
    for one in (*_shared(admin), *own):
        found.setdefault((one.image, one.pulled), one)
    return tuple(found.values())


def _shared(admin: OperatorConfig) -> Iterator[Needed]:
    yield Needed(image=OPERATOR_IMAGE, pulled=OPERATOR_IMAGE, why="the operator")
    if admin.runtime.enabled:
        # Pods of engines pull it from the mirror, and the operator's own pod from where the chart's values say.
        named = admin.registry.runtime_image or OPERATOR_IMAGE
        pulled = runtime_image(admin)
        if pulled != OPERATOR_IMAGE:
            yield Needed(image=named, pulled=pulled, why="the supervisor in engine pods")
    listed: list[str | None] = [one.version for one in admin.engines.versions]
    for each in listed or [admin.engines.default_version]:
        facts = inputs.engine(each)
        for vendor, image in engine_images(facts, admin):
            why = f"{facts.profile.title} {facts.version} on {vendor}"
            if own := BUNDLED.get((vendor, facts.version)):
                why += f"; or one built from {own}, named in engines.versions"
            yield Needed(image=image, pulled=mirrored(image, admin.registry), why=why)


def _own(resource: LLMDeployment, admin: OperatorConfig) -> Iterator[Needed]:
    """Images that a resource names, which are pulled by exactly that name."""
    spec = effective(resource.spec, resource.namespace, admin).spec
    who = f"{resource.namespace}/{resource.name}"
    if spec.engine.image is not None:
        yield Needed(image=spec.engine.image, pulled=spec.engine.image, why=f"engine of {who}")
    weights = spec.storage.weights
    kept = [] if weights is None or weights.image is None else [weights.image.reference]
    named = [location_of(one.source) for one in sources(spec) if scheme_of(one.source) == "oci"]
    for image in (*kept, *named):
        yield Needed(image=image, pulled=image, why=f"model of {who}")
