"""The built-in presets, read from the data file beside this module, and the admin's own beside them."""

from functools import cache
from importlib.resources import files
from typing import Annotated

from pydantic import Field

from plimsoll.api.base import ApiModel, LabelName
from plimsoll.api.config import OperatorConfig
from plimsoll.api.loading import parse_documents
from plimsoll.api.problems import Problem, SpecError
from plimsoll.api.v1alpha1.spec import ServingSpec


class Preset(ApiModel):
    """A starting point for one kind of traffic."""

    name: LabelName
    title: Annotated[str, Field(max_length=63)]
    description: Annotated[str, Field(max_length=1024)]
    spec: ServingSpec
    advice: tuple[Annotated[str, Field(max_length=256)], ...] = ()
    admin: bool = False


@cache
def built_in_presets() -> tuple[Preset, ...]:
    """The presets that ship with Plimsoll, in the order of their documentation."""
    text = (files(__package__) / "presets.yaml").read_text(encoding="utf-8")
    (document,) = parse_documents(text)
    return tuple(Preset.model_validate(entry) for entry in document["presets"])


def presets(config: OperatorConfig) -> tuple[Preset, ...]:
    """All presets that a deployment may name; the admin's take the place of built-in ones of the same name."""
    own = tuple(
        Preset(name=entry.name, title=entry.name, description=entry.description, spec=entry.spec, admin=True)
        for entry in config.presets
    )
    taken = {preset.name for preset in own}
    return tuple(preset for preset in built_in_presets() if preset.name not in taken) + own


def find_preset(name: str, config: OperatorConfig) -> Preset:
    """One preset by name; raises SpecError with the known names."""
    for preset in presets(config):
        if preset.name == name:
            return preset
    known = ", ".join(preset.name for preset in presets(config))
    raise SpecError(Problem("spec.workload.preset", repr(name), f"no such preset; known: {known}"))
