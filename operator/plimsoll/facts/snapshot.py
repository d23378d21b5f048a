"""One file with all that a plan depends on, so that planning without a cluster gives the same plans as the operator.

It is written from a cluster (`take_snapshot`). Less is enough to read: the output of `kubectl get nodes -o yaml` (all that is allocatable
then counts as free, and the inventory says so), or a fleet file written by hand. Objects are cut down to what is read of them: there are
no secrets in the file, and of images and environment only what resources and their serving sets say. Plans, sets and resources are in it
as they are. Equal clusters give equal bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import yaml
from pydantic import ValidationError

from plimsoll import names
from plimsoll.api.config import OperatorConfig
from plimsoll.api.loading import parse_documents
from plimsoll.api.problems import Problem, SpecError, problems_of, show
from plimsoll.facts import fleet_file, reduced
from plimsoll.facts.capabilities import Capabilities
from plimsoll.facts.engine_files import handed_in
from plimsoll.facts.fleet import Fleet
from plimsoll.facts.inventory import Inventory
from plimsoll.facts.learned import NOTHING, Learned, export_learned, import_learned
from plimsoll.facts.learned_rows import LearnedError
from plimsoll.facts.machine_text import load_machine_text
from plimsoll.facts.observe import fleet_of

KIND = "Snapshot"
Object = Mapping[str, Any]
SEEN = ("pods", "served")
"""Parts that are written even when they are empty, as that is not the same as not known."""

_LISTED = {
    "Node": "nodes",
    "Pod": "pods",
    "ResourceSlice": "resourceSlices",
    "ResourceClaim": "resourceClaims",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """All that planning depends on, of one cluster at one time."""

    nodes: tuple[Object, ...] = ()
    pods: tuple[Object, ...] | None = None
    """None where pods were not seen, so that all that is allocatable counts as free."""
    slices: tuple[Object, ...] = ()
    claims: tuple[Object, ...] = ()
    config: OperatorConfig = field(default_factory=OperatorConfig)
    learned: Learned = NOTHING
    deployments: tuple[Object, ...] = ()
    """LLMDeployments as the API server stores them."""
    plans: Mapping[str, Object] = field(default_factory=dict)
    """Pinned plans by namespace/name, as their ConfigMaps hold them."""
    beside: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """What else these ConfigMaps hold, key by key, which is what turns remember."""
    sets: tuple[Object, ...] = ()
    """ControllerRevisions of the serving sets that are there."""
    models: tuple[Object, ...] = ()
    """Facts of models that no catalogue knows, as the facts pods returned them."""
    served: Capabilities | None = None
    """Optional kinds that the cluster serves; None where it was not looked up."""

    def fleet(self, *, selectors: Iterable[Mapping[str, str]] = ()) -> Fleet:
        return fleet_of(
            self.nodes, self.pods, self.slices, self.config, claims=self.claims, selectors=selectors
        )

    def inventory(self, *, selectors: Iterable[Mapping[str, str]] = ()) -> Inventory:
        """The inventory, its pools divided by these node selectors of the resources to be planned."""
        return self.fleet(selectors=selectors).inventory()


def take_snapshot(
    nodes: Iterable[Object],
    pods: Iterable[Object] | None,
    *,
    slices: Iterable[Object] = (),
    claims: Iterable[Object] = (),
    config: OperatorConfig | None = None,
    learned: Learned = NOTHING,
    deployments: Iterable[Object] = (),
    plans: Mapping[str, Object] | None = None,
    sets: Iterable[Object] = (),
    models: Iterable[Object] = (),
    beside: Mapping[str, Mapping[str, str]] | None = None,
    served: Capabilities | None = None,
) -> Snapshot:
    """A snapshot of objects as the API gives them: they are cut down and sorted, so that their order does not matter."""
    return Snapshot(
        nodes=_ordered(reduced.node(item) for item in nodes),
        pods=None if pods is None else _ordered(cut for item in pods if (cut := reduced.pod(item))),
        slices=_ordered(cut for item in slices if (cut := reduced.resource_slice(item))),
        claims=_ordered(cut for item in claims if (cut := reduced.claim(item))),
        config=config or OperatorConfig(),
        learned=learned,
        deployments=_ordered(reduced.deployment(item) for item in deployments),
        plans=dict(sorted((plans or {}).items())),
        sets=_ordered(reduced.revision(item) for item in sets),
        models=_ordered(models),
        beside={key: dict(sorted(data.items())) for key, data in sorted((beside or {}).items())},
        served=served,
    )


def write_snapshot(snapshot: Snapshot, form: Literal["yaml", "json"] = "yaml") -> str:
    """The file's text. YAML and JSON have the same content, but JSON is read many times faster."""
    document: dict[str, Any] = {
        "apiVersion": names.API_VERSION,
        "kind": KIND,
        "nodes": list(snapshot.nodes),
        "pods": None if snapshot.pods is None else list(snapshot.pods),
        "resourceSlices": list(snapshot.slices),
        "resourceClaims": list(snapshot.claims),
        "config": snapshot.config.to_dict(),
        "learned": None if snapshot.learned == NOTHING else json.loads(export_learned(snapshot.learned)),
        "deployments": list(snapshot.deployments),
        "plans": dict(snapshot.plans),
        "sets": list(snapshot.sets),
        "models": list(snapshot.models),
        "beside": dict(snapshot.beside),
        "served": None
        if snapshot.served is None
        else sorted(f"{kind}.{group}" for group, kind in snapshot.served),
    }
    kept = {key: value for key, value in document.items() if value or (key in SEEN and value is not None)}
    if form == "json":
        return json.dumps(kept, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    text: str = yaml.dump(
        _copied(kept), Dumper=dumper, sort_keys=False, width=200, allow_unicode=True, default_flow_style=None
    )
    return text


def read_snapshot(text: str | bytes) -> Snapshot:
    """A snapshot, a fleet file, or a list of nodes (and pods, slices, claims) as kubectl prints it.

    Raises SpecError, which names the field, the value and what would be right.
    """
    document = load_machine_text(text)
    if not isinstance(document, dict):
        raise SpecError(
            Problem("", show(document), f"must be a {KIND}, a Fleet, or what kubectl get nodes prints")
        )
    kind = document.get("kind")
    if kind == KIND:
        return _whole(document)
    if kind == fleet_file.KIND:
        written = fleet_file.read_fleet_file(parse_documents(text)[0])
        return Snapshot(
            nodes=written.nodes,
            pods=written.pods,
            slices=written.slices,
            claims=written.claims,
            config=written.config,
        )
    if (isinstance(kind, str) and kind in _LISTED) or isinstance(document.get("items"), list):
        return _listed(document)
    raise SpecError(
        Problem(
            "kind", show(kind), f"must be {KIND}, {fleet_file.KIND}, or List as kubectl get nodes prints it"
        )
    )


def _whole(document: Mapping[str, Any]) -> Snapshot:
    version = document.get("apiVersion")
    if version != names.API_VERSION:
        message = f"must be {names.API_VERSION}; this file was written by another version of plimsoll"
        raise SpecError(Problem("apiVersion", show(version), message))
    known = {"apiVersion", "kind", "nodes", "pods", "config", "learned", "deployments", "plans", "sets"}
    known |= {"models", "resourceSlices", "resourceClaims", "beside", "served"}
    for key in sorted(set(document) - known):
        raise SpecError(Problem(key, "", f"is no part of a {KIND}; known are {', '.join(sorted(known))}"))
    plans = document.get("plans") or {}
    if not isinstance(plans, dict):
        raise SpecError(Problem("plans", show(plans), "must be an object by namespace/name"))
    return Snapshot(
        nodes=_objects(document, "nodes"),
        pods=_objects(document, "pods") if document.get("pods") is not None else None,
        slices=_objects(document, "resourceSlices"),
        claims=_objects(document, "resourceClaims"),
        config=_config(document.get("config") or {}),
        learned=_learned(document.get("learned")),
        deployments=_objects(document, "deployments"),
        plans=plans,
        sets=_objects(document, "sets"),
        models=_objects(document, "models"),
        beside=_beside(document.get("beside") or {}),
        served=_served(document.get("served")),
    )


def _beside(found: object) -> Mapping[str, Mapping[str, str]]:
    if isinstance(found, dict) and all(isinstance(data, dict) for data in found.values()):
        return {key: {name: str(text) for name, text in data.items()} for key, data in found.items()}
    raise SpecError(Problem("beside", show(found), "must be objects by namespace/name"))


def _served(found: object) -> Capabilities | None:
    if found is None:
        return None
    if not isinstance(found, list) or not all(isinstance(one, str) and "." in one for one in found):
        raise SpecError(Problem("served", show(found), "must be a list of KIND.GROUP"))
    parts = (one.partition(".") for one in found)
    return frozenset((group, kind) for kind, _, group in parts)


def _listed(document: Mapping[str, Any]) -> Snapshot:
    """What kubectl prints: one object, or a list of objects of several kinds."""
    items = document["items"] if isinstance(document.get("items"), list) else [document]
    default = str(document.get("kind", "")).removesuffix("List")
    found: dict[str, list[Object]] = {}
    for index, item in enumerate(items):
        if not isinstance(item, dict):
            raise SpecError(Problem(f"items[{index}]", show(item), "must be an object"))
        kind = item.get("kind", default)
        if not isinstance(kind, str) or kind not in _LISTED:
            message = f"must be one of {', '.join(_LISTED)}; other kinds say nothing of a fleet"
            raise SpecError(Problem(f"items[{index}].kind", show(kind), message))
        found.setdefault(_LISTED[kind], []).append(item)
    if items and "nodes" not in found:
        kinds = sorted({str(item.get("kind", default)) for item in items})
        message = (
            f"no Node among {len(items)} of kind {', '.join(kinds)}; kubectl get nodes -o yaml prints them"
        )
        raise SpecError(Problem("items", "", message))
    checked = {key: _objects(found, key) for key in found}
    return take_snapshot(
        checked.get("nodes", ()),
        checked.get("pods"),
        slices=checked.get("resourceSlices", ()),
        claims=checked.get("resourceClaims", ()),
    )


def _objects(document: Mapping[str, Any], key: str) -> tuple[Object, ...]:
    items = document.get(key) or []
    if not isinstance(items, list):
        raise SpecError(Problem(key, show(items), "must be a list of objects"))
    for index, item in enumerate(items):
        if not isinstance(item, dict):
            raise SpecError(Problem(f"{key}[{index}]", show(item), "must be an object"))
        if key in _LISTED.values():
            reduced.check(item, f"{key}[{index}]")
    return tuple(items)


def _config(document: object) -> OperatorConfig:
    try:
        return handed_in(OperatorConfig.model_validate(document))
    except ValidationError as error:
        problems = tuple(problems_of(error, OperatorConfig))
    except SpecError as error:
        problems = error.problems
    raise SpecError(*(Problem(f"config.{one.field}", one.value, one.message) for one in problems))


def _learned(document: object) -> Learned:
    if not document:
        return NOTHING
    try:
        return import_learned(json.dumps(document))
    except LearnedError as error:
        raise SpecError(Problem("learned", "", str(error))) from None


def _ordered(items: Iterable[Object]) -> tuple[Object, ...]:
    def key(item: Object) -> tuple[str, str, str]:
        metadata = item.get("metadata") or {}
        order = json.dumps(item, sort_keys=True) if not metadata else ""
        return str(metadata.get("namespace", "")), str(metadata.get("name", "")), order

    return tuple(sorted(items, key=key))


def _copied(value: Any) -> Any:
    """The data as a copy without shared parts, which YAML would write as anchors and aliases."""
    if isinstance(value, Mapping):
        return {key: _copied(value[key]) for key in value}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_copied(item) for item in value]
    return value
