"""Where an image of the engine is to be had: hardware that nobody has one for is left out, as long as other hardware remains.

Which image it is in the end, with mirrors and the user's own, is `render`'s.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from plimsoll.api.config import EngineVersion, OperatorConfig
from plimsoll.api.v1alpha1.spec import LLMDeploymentSpec
from plimsoll.facts.engines import EngineFacts
from plimsoll.planning.placing.placement import Slot
from plimsoll.planning.plan import Finding, Severity

PUBLISHED: Final[Mapping[str, str]] = {"nvidia": "", "amd": "-rocm", "cpu": "-cpu"}
"""By vendor, what the engine's project adds to its image's name; for the others it publishes none."""
ADMIN_FIELDS: Final[Mapping[str, str]] = {
    "nvidia": "image",
    "amd": "rocm_image",
    "habana": "gaudi_image",
    "intel": "xpu_image",
    "cpu": "cpu_image",
}
ADMIN_NAMES: Final[Mapping[str, str]] = {"habana": "gaudiImage", "intel": "xpuImage"}


def listed(version: str, vendor: str, config: OperatorConfig) -> str | None:
    """The admin's image for a version on a vendor's hardware."""
    entry = _entry(version, config)
    image: str | None = None if entry is None else getattr(entry, ADMIN_FIELDS[vendor])
    return image


def supervisor_in(version: str, config: OperatorConfig) -> str | None:
    """The release of Plimsoll whose supervisor the admin's images for a version have in them."""
    entry = _entry(version, config)
    return None if entry is None else entry.supervisor


def _entry(version: str, config: OperatorConfig) -> EngineVersion | None:
    return next((entry for entry in config.engines.versions if entry.version == version), None)


def published(facts: EngineFacts, vendor: str) -> bool:
    return vendor in PUBLISHED and facts.profile.image is not None


def with_images(
    slots: Sequence[Slot], spec: LLMDeploymentSpec, facts: EngineFacts, config: OperatorConfig
) -> tuple[tuple[Slot, ...], tuple[Finding, ...]]:
    """The slots that an image is known for, or all where there is none; and what was left out."""
    if spec.engine.image is not None:
        return tuple(slots), ()
    known = tuple(slot for slot in slots if _has(slot, facts, config))
    if not known or len(known) == len(slots):
        return tuple(slots), ()
    left = {slot.hardware.vendor: slot.hardware.gpu for slot in slots if slot not in known}
    return known, tuple(_left_out(vendor, gpu, facts) for vendor, gpu in sorted(left.items()))


def _has(slot: Slot, facts: EngineFacts, config: OperatorConfig) -> bool:
    vendor = slot.hardware.vendor
    return published(facts, vendor) or listed(facts.version, vendor, config) is not None


def _left_out(vendor: str, gpu: str, facts: EngineFacts) -> Finding:
    field = ADMIN_NAMES.get(vendor, "image")
    return Finding(
        severity=Severity.INFO,
        reason="NoImage",
        message=f"{gpu} is left out: no image of {facts.profile.title} {facts.version} for {vendor} is known",
        field="engine.image",
        remedy=f"name one here, or as {field} of the admin's engines.versions",
    )
