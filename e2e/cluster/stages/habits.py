"""What all pods of a node do, said by labels of the node (or of a fleet file's pool), since a stage of a pod sees nothing of its node.

Each such label becomes the annotation of that name on every pod that gets there, unless the pod has one of its own. A duration
may be a range ("5s-20s"): each node draws its own from it, by its name and a seed.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from cluster.stages.stage import Document

PREFIX: Final = "e2e.plimsoll.dev/"
OF_PODS: Final = (
    *("pull", "pull-error", "starts-after", "unready", "stops-after", "runs-for"),
    *("dies", "dies-after", "times", "exit-code", "back-off"),
)
COPIED: Final = f"{PREFIX}habits-of"
_RANGE: Final = re.compile(r"(\d+)(ms|s|m|h)-(\d+)(ms|s|m|h)")
_MILLIS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000}

Habits = Mapping[str, Mapping[str, str]]
"""Annotations for pods, by node."""


def draw(labels: Mapping[str, str], node: str, seed: int) -> dict[str, str]:
    """A node's labels with one duration for each range."""
    return {key: _drawn(key, value, node, seed) for key, value in labels.items()}


def _drawn(key: str, value: str, node: str, seed: int) -> str:
    if not key.startswith(PREFIX) or not (match := _RANGE.fullmatch(value)):
        return value
    least, most = int(match[1]) * _MILLIS[match[2]], int(match[3]) * _MILLIS[match[4]]
    chance = random.Random(f"{seed} {node} {key}")
    return f"{chance.randint(min(least, most), max(least, most))}ms"


def habits_of(nodes: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, str]]:
    """Of the nodes that have any."""
    found: dict[str, dict[str, str]] = {}
    for node in nodes:
        labels = node["metadata"]["labels"]
        if own := {PREFIX + name: labels[PREFIX + name] for name in OF_PODS if PREFIX + name in labels}:
            found[node["metadata"]["name"]] = own
    return found


def stage_of(habits: Habits) -> list[Document]:
    """The stage that copies them, before any other plays: of stages that match, one with a weight goes first."""
    if not habits:
        return []
    template = (
        f"{{{{ $table := fromJson {_go_text(json.dumps(habits, sort_keys=True))} }}}}\n"
        "{{ $own := or .metadata.annotations dict }}\n"
        "metadata:\n"
        f'  annotations: {{{{ merge (dict "{COPIED}" .spec.nodeName) $own (index $table .spec.nodeName) | toJson }}}}\n'
    )
    return [
        {
            "apiVersion": "kwok.x-k8s.io/v1alpha1",
            "kind": "Stage",
            "metadata": {"name": "pod-has-habits"},
            "spec": {
                "resourceRef": {"apiGroup": "v1", "kind": "Pod"},
                "selector": {
                    "matchExpressions": [
                        {"jq": {"key": ".spec.nodeName", "operator": "In", "values": sorted(habits)}},
                        {
                            "jq": {
                                "key": f'.metadata.annotations["{COPIED}"]',
                                "operator": "DoesNotExist",
                            }
                        },
                        {"jq": {"key": ".status.phase", "operator": "In", "values": ["Pending"]}},
                    ]
                },
                "weight": 1,
                "steps": [{"patch": {"template": template}}],
            },
        }
    ]


def _go_text(text: str) -> str:
    """As a string of a Go template; JSON's escapes are Go's."""
    return json.dumps(text)
