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

CHART: Final = Path(__file__).parent / "plimsoll"
FREE: Final = (
    "config", "resources", "affinity", "commonLabels", "podLabels", "podAnnotations", "nodeSelector",
    "serviceAccount.annotations", "metrics.podMonitor.labels", "metrics.rules.labels",
    "metrics.dashboards.labels", "metrics.dashboards.annotations", "webhook.namespaceSelector", "webhook.annotations",
)  # fmt: skip
"""Maps whose keys are not the chart's to know."""
CHOICES: Final = {
    "image.pullPolicy": ["Always", "IfNotPresent", "Never"],
    "logLevel": ["debug", "info", "warning", "error"],
    "webhook.failurePolicy": ["Ignore", "Fail"],
}
LEAST: Final = {"replicas": 0, "webhook.timeoutSeconds": 1}
MOST: Final = {"webhook.timeoutSeconds": 30}
TYPES: Final = {bool: "boolean", int: "integer", str: "string", list: "array", dict: "object"}

HEAD: Final = """\
# The chart of Plimsoll

Installs the operator. No image of it is published yet: how it is built, and what the operator does, stands in [the operator](../../docs/operator.md).

```sh
helm install plimsoll charts/plimsoll --namespace plimsoll --create-namespace --set image.repository=REGISTRY/plimsoll
helm upgrade plimsoll charts/plimsoll --namespace plimsoll --reset-then-reuse-values
helm uninstall plimsoll --namespace plimsoll
```

`config` is [the admin's file](../../docs/reference/operatorconfig.md) without its apiVersion and kind:

```yaml
config:
  prices: {currency: USD, gpuHour: [{product: H100-SXM-80GB, perHour: "2.49"}]}
  budgets: [{namespace: team-a, gpus: 16}]
```

Upgrading restarts no serving pod, and brings the CustomResourceDefinition of its release. Uninstalling keeps the CustomResourceDefinition and all resources as long as `crds.keep` is true.

| value | default | meaning |
|---|---|---|
"""


def schema(values: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """Unknown values are refused: a slip in a name must not be a value without effect."""
    properties: dict[str, Any] = {"global": {"type": "object"}} if not above else {}
    for key, value in values.items():
        path = f"{above}{key}"
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
        if path == "namespaces":
            properties[key]["items"] = {"type": "string", "minLength": 1}
    return {"type": "object", "additionalProperties": False, "properties": properties}


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
