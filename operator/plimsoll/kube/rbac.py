"""The operator's rights, which are no more than it needs: rules made from the table of kinds, for the chart and for tests.

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
    CLAIM,
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
    SLICE,
    WEBHOOKS,
    Kind,
)

Rule = dict[str, list[str]]

SEE: Final = ("list", "watch")
WRITE: Final = ("create", "delete", "get", "list", "patch", "watch")
"""Server-side apply needs `create` besides `patch`, as it makes objects that are not there."""
CHART_FILE: Final = "charts/plimsoll/files/rbac.yaml"


def rules() -> dict[str, list[Rule]]:
    """Rules for kinds outside namespaces (`cluster`), in each namespace that is watched (`namespaced`), and in the operator's own (`own`);
    and those for watched namespaces that are needed beside where the API server checks who may set an owner (`ownerReferences`)."""
    return {
        "cluster": [*_rules([NODE, SLICE], SEE), *_rules([CRD], SEE)],
        "namespaced": [
            *_rules([OWNER], SEE),
            _rule(OWNER.group, [f"{OWNER.plural}/status"], ["patch"]),
            *_rules([AUTOSCALER, SCALED_OBJECT, CLAIM], SEE),
            # The operator makes and deletes only pods that read models, and deletes pods of sets; workloads make all others. It patches
            # pods to take off the annotations that keep their nodes while they load.
            *_rules([POD], ("create", "delete", "patch", *SEE)),
            *_rules([kind for kind in CHILDREN if not kind.lasts], WRITE),
            *_rules([kind for kind in CHILDREN if kind.lasts], [verb for verb in WRITE if verb != "delete"]),
            *_rules([EVENT], ("create", "patch", *SEE)),
        ],
        "ownerReferences": [
            _rule(OWNER.group, [f"{OWNER.plural}/finalizers"], ["update"]),
            # An owner may be set on what is there already only by who may delete it.
            *_rules([kind for kind in CHILDREN if kind.lasts], ("delete",)),
        ],
        "own": [
            *_rules([LEASE], ("create", "get", "update")),
            # The ConfigMaps of what was learned, as the operator's own namespace need not be watched. `create` cannot be limited to names.
            *_rules([CONFIG_MAP], ("create",)),
            _rule_by_name(CONFIG_MAP, [names.LEARNED, names.LEARNED_SEED], ("get",)),
            _rule_by_name(CONFIG_MAP, [names.LEARNED], ("patch",)),
        ],
    }


def webhook_rules() -> dict[str, list[Rule]]:
    """Further rights for the admission webhook, where it is on. The chart narrows `cluster` and `own` to one object by its name."""
    return {
        "cluster": _rules([WEBHOOKS], ("get", "patch")),
        "namespaced": _rules([LOCAL_REVIEW], ("create",)),
        "own": _rules([SECRET], ("get", "update")),
    }


def _rules(kinds: Iterable[Kind], verbs: Iterable[str]) -> list[Rule]:
    """One rule for each API group, in order of the groups."""
    plurals: dict[str, set[str]] = {}
    for kind in kinds:
        plurals.setdefault(kind.group, set()).add(kind.plural)
    return [_rule(group, sorted(plurals[group]), verbs) for group in sorted(plurals)]


def _rule(group: str, resources: Iterable[str], verbs: Iterable[str]) -> Rule:
    return {"apiGroups": [group], "resources": list(resources), "verbs": sorted(verbs)}


def _rule_by_name(kind: Kind, objects: Iterable[str], verbs: Iterable[str]) -> Rule:
    return {**_rule(kind.group, [kind.plural], verbs), "resourceNames": list(objects)}


def rbac_yaml() -> str:
    head = "# Generated from the kinds that the operator reads and writes; `make generate` writes it.\n"
    body: Any = {**rules(), "webhook": webhook_rules()}
    return head + yaml.safe_dump(body, sort_keys=False, default_flow_style=None, width=110)


if __name__ == "__main__":
    (Path(*sys.argv[1:2]) / CHART_FILE).write_text(rbac_yaml(), encoding="utf-8")
