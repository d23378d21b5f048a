"""CRDs of our own for what no registry holds. The parts that Kubernetes itself defines are taken from the API server that they go to,
so that a pod template is refused there for the same unknown field as in a Deployment.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml

Schema = dict[str, Any]
FILES: Final = Path(__file__).parent
OWN: Final = {"inferencepool": "inferencepools.yaml", "leaderworkerset": "leaderworkersets.yaml"}
OBJECT_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
TEXTS: Final[Schema] = {"type": "object", "additionalProperties": {"type": "string"}}
EMBEDDED_META: Final[Schema] = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "namespace": {"type": "string"},
        "labels": TEXTS,
        "annotations": TEXTS,
        "finalizers": {"type": "array", "items": {"type": "string"}},
    },
}
"""What an object inside another may say of itself."""
KEPT: Final[tuple[str, ...]] = (
    "type",
    "format",
    "required",
    "enum",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
)


def own_crd(name: str, published: Mapping[str, Schema]) -> Schema:
    """The CRD with every reference replaced by what the API server publishes under that name."""
    crd: Schema = yaml.safe_load((FILES / OWN[name]).read_text())
    (version,) = crd["spec"]["versions"]
    version["schema"]["openAPIV3Schema"] = _filled(version["schema"]["openAPIV3Schema"], published)
    return crd


def _filled(node: Any, published: Mapping[str, Schema]) -> Any:
    if isinstance(node, list):
        return [_filled(one, published) for one in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return _structural(node, published)
    return {key: _filled(value, published) for key, value in node.items()}


def _structural(node: Schema, published: Mapping[str, Schema]) -> Schema:
    """As a CRD may have it: no references, a type for each node, no descriptions."""
    if "$ref" in node:
        name = node["$ref"].rpartition("/")[2]
        return EMBEDDED_META if name == OBJECT_META else _structural(published[name], published)
    if "allOf" in node:  # how the API server says "this reference, with a default"
        (only,) = node["allOf"]
        return _with_default(_structural(only, published), node)
    if "oneOf" in node or node.get("format") == "int-or-string":  # quantities, and numbers that may be shares
        return _with_default({"x-kubernetes-int-or-string": True}, node)
    made: Schema = {key: node[key] for key in KEPT if key in node}
    if "properties" in node:
        made["properties"] = {
            key: _structural(value, published) for key, value in sorted(node["properties"].items())
        }
    for inner in ("items", "additionalProperties"):
        if inner in node:
            made[inner] = _structural(node[inner], published)
    for key in made.get("x-kubernetes-list-map-keys", ()):
        items = made["items"]
        if key not in items.get("required", ()):  # then a CRD wants a default for it
            items["properties"][key].setdefault("default", "")
    return _with_default(made, node)


def _with_default(made: Schema, node: Schema) -> Schema:
    """Empty ones only say that the field is no pointer in Go."""
    return made | {"default": node["default"]} if node.get("default") else made
