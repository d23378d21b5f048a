"""What can be wrong in a deployment's namespace: volume claims, quotas, and autoscalers that are not Plimsoll's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from plimsoll import names
from plimsoll.facts.amounts import whole
from plimsoll.facts.examined import Examined, Object
from plimsoll.facts.labels import DOMAINS
from plimsoll.facts.scaler_aims import Aim, aim_of
from plimsoll.status.doctor.found import (
    Found,
    about,
    conditions,
    in_scope,
    key_of,
    metadata,
    name_of,
    owner_key,
    spaces,
)
from plimsoll.status.scaler_words import on_children, set_replicas, several

DEFAULT_CLASS: Final = "storageclass.kubernetes.io/is-default-class"
OF_ALL: Final = frozenset({"NotTerminating", "NotBestEffort"})
"""Scopes of quotas in which all serving pods are, as they have no deadline and request cores and memory."""
FAILS: Final = {
    "HorizontalPodAutoscaler": (("AbleToScale", "False"), ("ScalingActive", "False")),
    "ScaledObject": (("Ready", "False"), ("Fallback", "True")),
}
"""By kind of autoscaler: its conditions that say how it works, each with the status that says that it does not."""
AT_ZERO: Final = "ScalingDisabled"
"""The reason of a HorizontalPodAutoscaler that rests, as the replicas were set to 0."""


def claims(examined: Examined) -> Iterator[Found]:
    """Claims that the spec names and that do not exist, and claims that are not bound."""
    if examined.blind("claims"):
        return
    there = {key_of(one): one for one in examined.claims}
    for deployment in examined.deployments:
        space = str(metadata(deployment).get("namespace", ""))
        for field, name in _named(deployment.get("spec") or {}):
            if f"{space}/{name}" not in there:
                yield Found(
                    severity="error", about=about(names.KIND, deployment), reason="NoClaim",
                    message=f"{field} names PersistentVolumeClaim {name}, and namespace {space} has none of that name",
                    remedy=f"make the claim, or correct {field}",
                )  # fmt: skip
    wanted = {key_of(one) for one in examined.deployments}
    named = {
        f"{metadata(one).get('namespace', '')}/{name}"
        for one in examined.deployments
        for _, name in _named(one.get("spec") or {})
    }
    for key, claim in sorted(there.items()):
        if key in named or owner_key(claim) in wanted:
            yield from _pending(examined, claim)


def _pending(examined: Examined, claim: Object) -> Iterator[Found]:
    if (claim.get("status") or {}).get("phase") != "Pending" or examined.blind("classes"):
        return
    classes = {name_of(one): one for one in examined.classes}
    asked = (claim.get("spec") or {}).get("storageClassName")
    if asked is None and not any(_default(one) for one in examined.classes):
        message = "it names no StorageClass, and the cluster has no default one"
    elif asked and asked not in classes:
        have = ", ".join(sorted(classes)) or "none"
        message = f"its StorageClass {asked} is not there; the cluster has {have}"
    elif asked and classes[asked].get("volumeBindingMode") == "WaitForFirstConsumer":
        return
    else:
        message = "it is not bound yet; its provisioner says more in its events"
    yield Found(
        severity="error", about=about("PersistentVolumeClaim", claim), reason="ClaimPending", message=message,
        remedy="correct spec.storage.*.claimTemplate.storageClass, or make the class: kubectl get storageclass; "
        f"kubectl -n {metadata(claim).get('namespace')} describe pvc {name_of(claim)}",
    )  # fmt: skip


def _default(storage_class: Object) -> bool:
    return (metadata(storage_class).get("annotations") or {}).get(DEFAULT_CLASS) == "true"


def _named(spec: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Fields of the spec that name claims which Plimsoll does not make, with the claim's name."""
    source = str((spec.get("model") or {}).get("source") or "")
    if source.startswith("pvc://"):
        yield "spec.model.source", source.removeprefix("pvc://").partition("/")[0]
    for part in ("weights", "cache"):
        claim = ((spec.get("storage") or {}).get(part) or {}).get("claim") or {}
        if claim.get("name"):
            yield f"spec.storage.{part}.claim.name", str(claim["name"])


def quotas(examined: Examined) -> Iterator[Found]:
    """Quotas of devices or pods that are used up, whether or not anything has been refused for them yet."""
    for quota in examined.quotas:
        space = str(metadata(quota).get("namespace", ""))
        if space not in spaces(examined) or _scopes(quota) - OF_ALL:
            continue
        status = quota.get("status") or {}
        used, asked = status.get("used") or {}, _asked(examined, space)
        full = [
            f"{name} {used[name]} of {hard}"
            for name, hard in sorted((status.get("hard") or {}).items())
            if _counts(name, hard, asked) and name in used and whole(used[name]) >= whole(hard)
        ]
        if full:
            yield Found(
                severity="warning", about=about("ResourceQuota", quota), reason="QuotaUsedUp",
                message=f"it is used up: {', '.join(full)}; no further replica can start in the namespace",
                remedy="raise the quota, or end something else in the namespace",
            )  # fmt: skip


def _scopes(quota: Object) -> set[str]:
    """What pods must be to count in a quota."""
    spec = quota.get("spec") or {}
    chosen = (spec.get("scopeSelector") or {}).get("matchExpressions") or ()
    return {*(spec.get("scopes") or ()), *(str(one.get("scopeName")) for one in chosen)}


def _counts(name: str, hard: str, asked: set[str] | None) -> bool:
    resource = name.removeprefix("requests.").removeprefix("limits.")
    if resource in ("pods", "count/pods"):
        return True
    # Where nothing is seen that asks, a quota of none is taken for a ban of what nobody here uses.
    wanted = whole(hard) > 0 if asked is None else resource in asked
    return wanted and resource.startswith(DOMAINS)


def _asked(examined: Examined, space: str) -> set[str] | None:
    """Names of resources that the deployments' pods in a namespace ask for, or would; None where of one of them neither pods nor what makes
    them are seen, so that it may ask for any."""
    pods = [one for one in in_scope(examined, examined.pods) if _in(space, one)]
    makers = [one for one in in_scope(examined, examined.workloads) if _in(space, one)]
    templates = [(one.get("spec") or {}).get("template") or {} for one in makers]
    specs = [one.get("spec") or {} for one in (*pods, *templates)]
    containers = [
        one for spec in specs for part in ("containers", "initContainers") for one in spec.get(part) or ()
    ]
    resources = [one.get("resources") or {} for one in containers]
    asked = {name for one in resources for part in ("requests", "limits") for name in one.get(part) or ()}
    there = {key_of(one) for one in examined.deployments if _in(space, one)}
    return asked if there <= {owner_key(one) for one in (*pods, *makers)} else None


def _in(space: str, item: Object) -> bool:
    return bool(metadata(item).get("namespace") == space)


def scalers(examined: Examined) -> Iterator[Found]:
    """Autoscalers that target the wrong object, or that work against each other or against Plimsoll. What they aim at serves all the same."""
    aims: dict[str, list[Aim]] = {}
    for item in examined.autoscalers:
        aim = aim_of(str(item.get("kind")), item)
        if aim is not None:
            aims.setdefault(aim.owner, []).append(aim)
    for deployment in examined.deployments:
        mine = aims.get(key_of(deployment), [])
        direct = sorted(aim.said for aim in mine if not aim.child)
        below = sorted(aim.said for aim in mine if aim.child)
        running = int((deployment.get("status") or {}).get("replicas") or 0)
        for wrong, reason, message in (
            (
                direct and (deployment.get("spec") or {}).get("replicas") is None,
                "SetReplicas",
                set_replicas(direct, running),
            ),
            (len(direct) > 1, "SeveralWriters", several(direct)),
            (below, "SeveralWriters", on_children(below)),
        ):
            if wrong:
                yield Found(
                    severity="warning",
                    about=about(names.KIND, deployment),
                    reason=reason,
                    message=message,
                    remedy="",
                )


def scalers_fail(examined: Examined) -> Iterator[Found]:
    """Autoscalers of these deployments whose own conditions say that they do not work."""
    wanted = {key_of(one) for one in examined.deployments}
    for item in examined.autoscalers:
        aim = aim_of(str(item.get("kind")), item)
        if aim is None or aim.owner not in wanted:
            continue
        kind = str(item.get("kind"))
        for told, ill in FAILS.get(kind, ()):
            state = conditions(item).get(told, {})
            if state.get("status") == ill and state.get("reason") != AT_ZERO:
                yield Found(
                    severity="warning", about=about(kind, item), reason=str(state.get("reason") or told),
                    message=f"the autoscaler does not work: {state.get('message') or told}",
                    remedy=f"kubectl -n {metadata(item).get('namespace')} describe {kind.lower()} {name_of(item)}",
                )  # fmt: skip
