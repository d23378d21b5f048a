"""What a deployment effectively says: the user's own values, and under them presets and defaults by namespace.

Layers are merged from the strongest to the weakest; every value remembers which layer it came from. A weaker value
that would break a rule together with stronger ones yields: a preset must never make a resource invalid.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final, Literal

from pydantic import BaseModel, ValidationError

from plimsoll.api.base import ApiModel
from plimsoll.api.config import OperatorConfig, matching
from plimsoll.api.presets import find_preset
from plimsoll.api.problems import model_of, problems_of
from plimsoll.api.same import Same
from plimsoll.api.v1alpha1.spec import LLMDeploymentSpec, ServingSpec

Path = tuple[str, ...]

REMEMBERED: Final = 64
"""Specs that turns under way ask about, each of them ten times."""


@dataclass(frozen=True, slots=True)
class Source:
    """Who said a value. "open" means nobody did: Plimsoll or the engine decides."""

    kind: Literal["user", "preset", "admin preset", "namespace default", "admin config", "open"]
    name: str = ""

    @property
    def binding(self) -> bool:
        """Whether a person said it for this deployment or namespace; a preset is a starting point to correct."""
        return self.kind in ("user", "namespace default", "admin config")

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}" if self.name else self.kind


USER: Final = Source("user")
OPEN: Final = Source("open")


@dataclass(frozen=True, slots=True, kw_only=True)
class Yielded:
    """A weaker value that was left out, because it contradicts stronger ones."""

    field: str
    value: Any
    source: Source
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Effective:
    """The merged spec, where each value came from, and what gave way."""

    spec: LLMDeploymentSpec
    sources: Mapping[str, Source]
    yielded: tuple[Yielded, ...]
    advice: tuple[str, ...]

    def source_of(self, field: str) -> Source:
        """Who said the field ("workload.contextTokens"), or the group of values that it belongs to."""
        parts = field.removeprefix("spec.").split(".")
        for length in range(len(parts), 0, -1):
            source = self.sources.get(".".join(parts[:length]))
            if source is not None:
                return source
        return OPEN

    def binds(self, field: str) -> bool:
        """Whether a person has set just this field, for the deployment or its namespace, so that nothing is put in its place."""
        return self.source_of(field).binding and self._is_said(field)

    def _is_said(self, field: str) -> bool:
        """Whether the field has a value, and not only the group that it belongs to."""
        inner: Any = self.spec.to_dict()
        for part in field.removeprefix("spec.").split("."):
            if not isinstance(inner, dict) or part not in inner:
                return False
            inner = inner[part]
        return True


def effective(spec: LLMDeploymentSpec, namespace: str, config: OperatorConfig) -> Effective:
    """Merge everything that bears on a deployment; raises SpecError when a named preset does not exist."""
    return _effective(Same(spec), namespace, Same(config))


@lru_cache(REMEMBERED)
def _effective(asked: Same[LLMDeploymentSpec], namespace: str, admin: Same[OperatorConfig]) -> Effective:
    spec, config = asked.value, admin.value
    merged = spec.to_dict()
    sources = {".".join(path): USER for path, _ in _leaves(merged, LLMDeploymentSpec)}
    current = spec
    advice: list[str] = []
    yielded: list[Yielded] = []
    for source, layer, hints in _layers(spec, namespace, config):
        advice += hints
        added, rejected = _add(merged, layer, source)
        current = LLMDeploymentSpec.model_validate(merged) if added else current
        sources.update(dict.fromkeys(added, source))
        yielded += rejected
    return Effective(
        spec=current,
        sources=MappingProxyType(dict(sorted(sources.items()))),
        yielded=tuple(yielded),
        advice=tuple(dict.fromkeys(advice)),
    )


def _layers(
    spec: LLMDeploymentSpec, namespace: str, config: OperatorConfig
) -> Iterator[tuple[Source, dict[str, Any], tuple[str, ...]]]:
    """What stands under the user's values, strongest first; each layer stands above the preset that it names."""
    preset = spec.workload.preset
    if preset is not None:
        yield _preset_layer(preset, config)
    for default in matching(namespace, config.defaults):
        yield Source("namespace default", default.namespace), default.spec.to_dict(defaults=False), ()
        if preset is None and default.spec.workload.preset is not None:
            preset = default.spec.workload.preset
            yield _preset_layer(preset, config)
    storage = config.storage.to_dict(defaults=False)
    if storage:
        yield Source("admin config", "storage"), {"storage": storage}, ()


def _preset_layer(name: str, config: OperatorConfig) -> tuple[Source, dict[str, Any], tuple[str, ...]]:
    preset = find_preset(name, config)
    source = Source("admin preset" if preset.admin else "preset", name)
    return source, preset.spec.to_dict(defaults=False), preset.advice


def _add(merged: dict[str, Any], layer: dict[str, Any], source: Source) -> tuple[list[str], list[Yielded]]:
    """Put a layer's values where nothing stands yet; those that would break a rule are left out and told."""
    added: list[str] = []
    yielded: list[Yielded] = []
    for path, value in _leaves(layer, ServingSpec):
        if not _put(merged, path, value):
            continue
        try:
            LLMDeploymentSpec.model_validate(merged)
        except ValidationError as error:
            _take_back(merged, path)
            reason = problems_of(error, LLMDeploymentSpec)[0].message
            yielded.append(Yielded(field=".".join(path), value=value, source=source, reason=reason))
        else:
            added.append(".".join(path))
    return added, yielded


def _leaves(values: dict[str, Any], model: type[BaseModel], above: Path = ()) -> Iterator[tuple[Path, Any]]:
    """The values that are merged one by one: everything but groups whose parts may come from different layers."""
    for name, info in model.model_fields.items():
        key = info.alias or name
        if key not in values:
            continue
        value, path = values[key], (*above, key)
        inner = model_of(info.annotation)
        if isinstance(value, dict) and value and inner is not None and not _is_whole(inner):
            yield from _leaves(value, inner, path)
        elif isinstance(value, dict) and value and inner is None:
            yield from (((*path, entry), item) for entry, item in value.items())
        else:
            yield path, value


def _is_whole(model: type[BaseModel]) -> bool:
    """Whether a group is one value: it says so, or it has fields without which it is nothing."""
    if issubclass(model, ApiModel) and model.whole:
        return True
    return model.__name__ != "ModelSpec" and any(info.is_required() for info in model.model_fields.values())


def _put(merged: dict[str, Any], path: Path, value: Any) -> bool:
    """Set a value unless something stands there, or stands where the path would go through."""
    group: Any = merged
    for part in path[:-1]:
        group = group.setdefault(part, {})
        if not isinstance(group, dict):
            return False
    if path[-1] in group:
        return False
    group[path[-1]] = value
    return True


def _take_back(merged: dict[str, Any], path: Path) -> None:
    parents = [merged]
    for part in path[:-1]:
        parents.append(parents[-1][part])
    for parent, part in zip(reversed(parents), reversed(path), strict=True):
        if part == path[-1] or not parent[part]:
            del parent[part]
