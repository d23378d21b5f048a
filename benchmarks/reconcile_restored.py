"""How long what a person's hand did to a child lasts: one is deleted, edited, or loses the label that it is known by.

A child is restored when it is as it was, down to the last field that the operator wrote; a deleted one is another object
by then. Which sets have served is known from the ConfigMap alone, so one that comes again takes all for such. One hand at a time, on a fleet that rests, as a person who tries it would see it.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any, Final

from glass import percentile
from plimsoll import names
from plimsoll.kube.door import Object
from plimsoll.kube.kinds import Kind
from plimsoll.reconcile.kept import SERVED_KEY
from reconcile_ground import KINDS, SPACE, Bench, content, of_the_first, quiet

OFTEN: Final = 0.02
"""Between two looks, which is the error of each figure."""
LONGEST: Final = 120.0
EDITS: Final[dict[str, Any]] = {
    "ConfigMap": {"data": {"plan.json": "by hand"}},
    "Deployment": {"spec": {"template": {"spec": {"terminationGracePeriodSeconds": 999}}}},
    "PodDisruptionBudget": {"spec": {"maxUnavailable": "100%", "minAvailable": None}},
    "Service": {"spec": {"selector": {names.LABEL_DEPLOYMENT: "nobody"}}},
    "ServiceAccount": {"automountServiceAccountToken": True},
}
"""Of a ControllerRevision nothing may be edited: the API server itself refuses it."""


async def measure_restored(bench: Bench) -> None:
    took: dict[str, float] = {}
    never: list[str] = []
    for kind in KINDS:
        (child,) = of_the_first(bench, kind)
        hands: dict[str, Object | None] = {
            "deleted": None,
            "relabelled": {"metadata": {"labels": {names.LABEL_DEPLOYMENT: None}}},
        }
        if kind.name in EDITS:
            hands["edited"] = EDITS[kind.name]
        for what, patch in hands.items():
            name = f"{kind.name} {what}"
            seconds = await _restored(bench, kind, child, patch)
            if seconds is None:
                never.append(name)
            else:
                took[name] = seconds
            await quiet(bench, 0.5)
    slowest = max(took, key=lambda one: took[one])
    bench.found["restored"] = {
        "hands": len(took) + len(never),
        "p50_s": round(percentile(list(took.values()), 0.5), 2),
        "max_s": round(took[slowest], 2),
        "slowest": slowest,
        "never": never,
    }


async def _restored(bench: Bench, kind: Kind, child: Object, patch: Object | None) -> float | None:
    """Seconds, or nothing if it lasts for longer than anybody would wait."""
    path = kind.path(SPACE, child["metadata"]["name"])
    before = _written(child)
    if patch is None:
        bench.cluster.api.delete(path)
    else:
        changed = bench.cluster.api.patch(path, patch)
        if _written(changed) == before:
            raise RuntimeError(f"the hand changed nothing of {path}")
    began = time.monotonic()
    while not any(_written(one) == before for one in of_the_first(bench, kind)):
        if time.monotonic() - began > LONGEST:
            return None
        await asyncio.sleep(OFTEN)
    return time.monotonic() - began


def _written(child: Object) -> Object:
    """What is the operator's of it and can be known again; the number of a revision is counted."""
    metadata, kept = child["metadata"], content(child)
    kept.pop("revision", None)
    theirs = ("plimsoll.dev/", "app.kubernetes.io/")
    for field in ("labels", "annotations"):
        found = metadata.get(field) or {}
        kept[field] = {key: value for key, value in found.items() if key.startswith(theirs)}
    if isinstance(data := kept.get("data"), dict):
        data.pop(SERVED_KEY, None)
        kept["annotations"].pop(names.ANNOTATION_HASH, None)  # which is of that too
    return kept
