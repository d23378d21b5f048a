"""What the operator must be allowed, and nothing else: rules made from the table of kinds, for the chart and for tests.

Writes files/rbac.yaml of the chart as `python -m plimsoll.kube.rbac`; `make generate` runs it and a test compares.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import yaml

from plimsoll import names
from plimsoll.kube.kinds import (
    AUTOSCALER,
    CHILDREN,
    CLAIMS,
    CONFIG_MAP,
    CRD,
    EVENT,
    LEASE,
    LOCAL_REVIEW,
    NODE,
    OWNER,
    POD,
    SCALED_OBJECT,
    SECRET,
    SLICES,
    WEBHOOKS,
    Kind,
)

Rule = dict[str, list[str]]

SEE: Final = ("list", "watch")
WRITE: Final = ("create", "delete", "get", "list", "patch", "watch")
"""Server-side apply makes what is not there, which needs create beside patch."""
PATH: Final = "charts/plimsoll/files/rbac.yaml"


def rules() -> dict[str, list[Rule]]:
    """`cluster`: what lies outside namespaces. `namespaced`: in each namespace that is watched. `own`: in the operator's."""
    return {
        "cluster": [*_rules([NODE, *SLICES[:1]], SEE), *_rules([CRD], SEE)],
        "namespaced": [
            *_rules([OWNER], SEE),
            _rule(OWNER.group, [f"{OWNER.plural}/status"], ["patch"]),
            *_rules([AUTOSCALER, SCALED_OBJECT, *CLAIMS[:1]], SEE),
            # Those that read a model which only their owner's Secret or volume opens are made here; all others by workloads. What
            # asks an autoscaler to leave a pod where it loads is taken off it afterwards.
            *_rules([POD], ("create", "delete", "patch", *SEE)),
            *_rules([kind for kind in CHILDREN if not kind.lasts], WRITE),
            *_rules([kind for kind in CHILDREN if kind.lasts], [verb for verb in WRITE if verb != "delete"]),
            *_rules([EVENT], ("create", "patch", *SEE)),
        ],
        "own": [
            *_rules([LEASE], ("create", "get", "update")),
            # What was learned, where the operator's own namespace is none of those that are watched. What is made has no name yet.
            *_rules([CONFIG_MAP], ("create",)),
            _named(CONFIG_MAP, [names.LEARNED, names.LEARNED_SEED], ("get",)),
            _named(CONFIG_MAP, [names.LEARNED], ("patch",)),
        ],
    }


def webhook_rules() -> dict[str, list[Rule]]:
    """What the admission webhook needs beside, where it is on. The chart narrows `cluster` and `own` to one object by its name."""
    return {
        "cluster": _rules([WEBHOOKS], ("get", "patch")),
        "namespaced": _rules([LOCAL_REVIEW], ("create",)),
        "own": _rules([SECRET], ("get", "update")),
    }


def _rules(kinds: Iterable[Kind], verbs: Iterable[str]) -> list[Rule]:
    """One rule a group, in order of the groups."""
    plurals: dict[str, set[str]] = {}
    for kind in kinds:
        plurals.setdefault(kind.group, set()).add(kind.plural)
    return [_rule(group, sorted(plurals[group]), verbs) for group in sorted(plurals)]


def _rule(group: str, resources: Iterable[str], verbs: Iterable[str]) -> Rule:
    return {"apiGroups": [group], "resources": list(resources), "verbs": sorted(verbs)}


def _named(kind: Kind, objects: Iterable[str], verbs: Iterable[str]) -> Rule:
    return {**_rule(kind.group, [kind.plural], verbs), "resourceNames": list(objects)}


def rbac_yaml() -> str:
    head = "# Generated from the kinds that the operator reads and writes; `make generate` writes it.\n"
    body: Any = {**rules(), "webhook": webhook_rules()}
    return head + yaml.safe_dump(body, sort_keys=False, default_flow_style=None, width=110)


if __name__ == "__main__":
    (Path(*sys.argv[1:2]) / PATH).write_text(rbac_yaml(), encoding="utf-8")
