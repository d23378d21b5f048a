"""Writes the chart's values.schema.json and README.md from its values.yaml: types, defaults, and the comments above them.

`make generate` runs it, a test compares.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from plimsoll.api.base import IMAGE, INT_OR_STRING, ApiModel
from plimsoll.api.config import OperatorConfig

CHART: Final = Path(__file__).parent / "plimsoll"
BESIDE: Final = {"global": {"type": "object"}, "enabled": {"type": "boolean"}}
"""What a chart that depends on this one hands on beside our values: what all its charts share, and by what it turns us on or off."""
FREE: Final = ("resources", "affinity", "webhook.namespaceSelector")
"""Maps whose keys are not the chart's to know."""
TEXTS: Final = (
    "commonLabels", "podLabels", "podAnnotations", "nodeSelector", "serviceAccount.annotations", "metrics.podMonitor.labels",
    "metrics.rules.labels", "metrics.dashboards.labels", "metrics.dashboards.annotations", "webhook.annotations",
)  # fmt: skip
"""Maps of any keys to texts: a number there would pass helm, and be refused by the API server."""
OWN_LABELS: Final = (
    *(f"app.kubernetes.io/{part}" for part in ("name", "instance", "component", "version", "managed-by")),
    "helm.sh/chart",
    "plimsoll.dev/role",
)
"""Labels that the chart sets itself, some of which its selectors stand on."""
PATTERNS: Final = {
    "nameOverride": "^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$",  # no name begins with it
    "fullnameOverride": "^([a-z]([-a-z0-9]*[a-z0-9])?)?$",
    "image.repository": IMAGE,
    "image.digest": "^(sha256:[0-9a-f]{64})?$",
    "metrics.podMonitor.interval": "^([0-9]+(ms|s|m|h|d|w|y))+$",
}
NAMED: Final = {"type": "object", "required": ["name"], "properties": {"name": {"type": "string", "minLength": 1}}}  # fmt: skip
ITEMS: Final = {
    "namespaces": {"type": "string", "minLength": 1},
    "imagePullSecrets": NAMED,
    "env": NAMED,
    "tolerations": {"type": "object"},
}
CHOICES: Final = {
    "image.pullPolicy": ["Always", "IfNotPresent", "Never"],
    "logLevel": ["debug", "info", "warning", "error"],
    "webhook.failurePolicy": ["Ignore", "Fail"],
}
LEAST: Final = {"replicas": 0, "webhook.timeoutSeconds": 1}
MOST: Final = {"webhook.timeoutSeconds": 30}
BOUNDS: Final = (
    "type", "enum", "required", "pattern", "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties",
)  # fmt: skip
"""What a schema says of a value that Helm's reader and ours take alike: the API's patterns are RE2's."""
TYPES: Final = {bool: "boolean", int: "integer", str: "string", list: "array", dict: "object"}

HEAD: Final = """\
# The chart of Plimsoll

Installs the operator. No image of it is published yet: how it is built, and what the operator does, stands in [the operator](../../docs/operator.md).

```sh
helm install plimsoll charts/plimsoll --namespace plimsoll --create-namespace --set image.repository=REGISTRY/plimsoll
helm upgrade plimsoll charts/plimsoll --namespace plimsoll --reset-then-reuse-values
helm uninstall plimsoll --namespace plimsoll
```

Helm 3.14 is the first that knows `--reset-then-reuse-values`: an older one's `--reuse-values` leaves out what a new release of the chart adds.

`config` is [the admin's file](../../docs/reference/operatorconfig.md) without its apiVersion and kind:

```yaml
config:
  prices: {currency: USD, gpuHour: [{product: H100-SXM-80GB, perHour: "2.49"}]}
  budgets: [{namespace: team-a, gpus: 16}]
```

What single values there must be like helm says before anything changes. What must hold between values (as `restarts.canarySeconds` below `canaryLimitSeconds`, or a
`defaultVersion` that is listed) only the operator says, whose new pods then do not start: ask it first, with what stands under `config` in a file of its own, by
`plimsoll images --config FILE`.

Upgrading restarts no serving pod, and brings the CustomResourceDefinition of its release. Uninstalling keeps the CustomResourceDefinition and all resources as long as `crds.keep` is true.

| value | default | meaning |
|---|---|---|
"""


def schema(values: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """Unknown values are refused: a slip in a name must not be a value without effect."""
    properties: dict[str, Any] = {} if above else dict(BESIDE)
    for key, value in values.items():
        path = f"{above}{key}"
        if path == "config":
            properties[key] = admins_file()
            continue
        if path in TEXTS:
            properties[key] = {"type": "object", "additionalProperties": {"type": "string"}}
            if path in ("commonLabels", "podLabels"):
                properties[key]["propertyNames"] = {"not": {"enum": list(OWN_LABELS)}}
            continue
        if isinstance(value, dict) and path not in FREE:
            properties[key] = schema(value, f"{path}.")
            continue
        properties[key] = {"type": TYPES[type(value)]}
        if path in CHOICES:
            properties[key]["enum"] = CHOICES[path]
        if path in LEAST:
            properties[key]["minimum"] = LEAST[path]
        if path in MOST:
            properties[key]["maximum"] = MOST[path]
        if path in PATTERNS:
            properties[key]["pattern"] = PATTERNS[path]
        if path in ITEMS:
            properties[key]["items"] = ITEMS[path]
    return {"type": "object", "additionalProperties": False, "properties": properties}


def admins_file() -> dict[str, Any]:
    """The fields of the admin's file and the values that each takes, so that helm refuses what the operator could not start with.

    Rules between fields are beyond a schema; those the operator says. Of whole specs (presets and defaults) only that they are there.
    """
    whole = OperatorConfig.model_json_schema()
    passed_over = {model.__name__: model.retired for model in ApiModel.__subclasses__()}

    def shape(node: Mapping[str, Any]) -> dict[str, Any]:
        if "$ref" in node:
            node = whole["$defs"][node["$ref"].rpartition("/")[2]]
        if "anyOf" in node:
            kinds = [one for one in node["anyOf"] if one.get("type") != "null"]
            return shape(kinds[0]) if len(kinds) == 1 else {}
        kept: dict[str, Any] = {key: node[key] for key in BOUNDS if key in node}
        if "const" in node:
            kept["enum"] = [node["const"]]
        if node.get(INT_OR_STRING) is True:
            kept["type"] = ["integer", "string"]
        if "properties" in node:
            needed = node.get("required", [])
            kept["additionalProperties"] = False
            kept["properties"] = {
                name: shape(one) if name in needed else or_nothing(shape(one))
                for name, one in node["properties"].items()
            } | {name: {} for name in sorted(passed_over.get(node["title"], ()))}
        elif isinstance(node.get("additionalProperties"), Mapping):
            kept["additionalProperties"] = shape(node["additionalProperties"])
        elif patterns := node.get("patternProperties"):
            # By propertyNames helm would name another place than the key's.
            kept["additionalProperties"] = False
            kept["patternProperties"] = {pattern: shape(value) for pattern, value in patterns.items()}
        if isinstance(node.get("items"), Mapping):
            kept["items"] = shape(node["items"])
        return kept

    def or_nothing(kept: dict[str, Any]) -> dict[str, Any]:
        """Of two files of values the later one takes a field back by null, which the operator reads as absent."""
        kinds = kept.get("type", [])
        more = {"type": [*([kinds] if isinstance(kinds, str) else kinds), "null"]} if kinds else {}
        return kept | more | ({"enum": [*kept["enum"], None]} if "enum" in kept else {})

    made = shape(whole)
    for specs in ("presets", "defaults"):
        made["properties"][specs]["items"]["properties"]["spec"] = {"type": "object"}
    return made


def described(text: str) -> Iterator[tuple[str, str]]:
    """Paths of the values that have a comment above them, and the comment."""
    above: list[tuple[int, str]] = []
    comment: list[str] = []
    for line in text.splitlines():
        if match := re.match(r"\s*# (.*)", line):
            comment.append(match[1])
        elif match := re.match(r"(\s*)([A-Za-z]+):", line):
            depth = len(match[1])
            above = [one for one in above if one[0] < depth] + [(depth, match[2])]
            if comment:
                yield ".".join(name for _, name in above), " ".join(comment)
            comment = []
        else:
            comment = []


def generated() -> dict[Path, str]:
    text = (CHART / "values.yaml").read_text()
    values = yaml.safe_load(text)
    rows = []
    for path, meaning in described(text):
        default: Any = values
        for part in path.split("."):
            default = default[part]
        rows.append(f"| `{path}` | `{json.dumps(default)}` | {meaning} |\n")
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Values of the chart"}
    return {
        CHART / "values.schema.json": json.dumps({**head, **schema(values)}, indent=2) + "\n",
        CHART / "README.md": HEAD + "".join(rows),
    }


if __name__ == "__main__":
    for file, content in generated().items():
        file.write_text(content, encoding="utf-8")
