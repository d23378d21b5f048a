"""For which hardware an image of the engine is known. Other hardware is left out, as long as any remains.

Which image a pod gets in the end, with mirrors and the user's own, is decided in `render`.
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
"""By vendor: what the engine's project adds to the name of its image. It publishes none for other vendors."""
ADMIN_FIELDS: Final[Mapping[str, str]] = {
    "nvidia": "image",
    "amd": "rocm_image",
    "habana": "gaudi_image",
    "intel": "xpu_image",
    "cpu": "cpu_image",
}
"""By vendor: the attribute of the admin's entry for an engine version that names an image."""
ADMIN_NAMES: Final[Mapping[str, str]] = {"habana": "gaudiImage", "intel": "xpuImage"}
"""The same fields as the admin spells them, for vendors without published images."""


def listed(version: str, vendor: str, config: OperatorConfig) -> str | None:
    """The image that the admin names for a version on a vendor's hardware, or None."""
    entry = _entry(version, config)
    image: str | None = None if entry is None else getattr(entry, ADMIN_FIELDS[vendor])
    return image


def supervisor_in(version: str, config: OperatorConfig) -> str | None:
    """The release of Plimsoll whose supervisor is inside the admin's images for a version; None where none is."""
    entry = _entry(version, config)
    return None if entry is None else entry.supervisor


def _entry(version: str, config: OperatorConfig) -> EngineVersion | None:
    return next((entry for entry in config.engines.versions if entry.version == version), None)


def brought(facts: EngineFacts, config: OperatorConfig, *vendors: str) -> bool:
    """Whether users or the admin bring an image for one of these vendors' hardware, so that nobody knows what is in it."""
    return bool(facts.image) or any(listed(facts.version, vendor, config) for vendor in vendors)


def published(facts: EngineFacts, vendor: str) -> bool:
    """Whether the engine's project publishes an image for a vendor's hardware."""
    return vendor in PUBLISHED and facts.profile.image is not None


def with_images(
    slots: Sequence[Slot], spec: LLMDeploymentSpec, facts: EngineFacts, config: OperatorConfig
) -> tuple[tuple[Slot, ...], tuple[Finding, ...]]:
    """The slots for which an image is known, or all slots where none has one; and findings about those that are left out."""
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
