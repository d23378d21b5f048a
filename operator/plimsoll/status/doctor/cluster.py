"""What can be wrong with a cluster whatever runs on it: the CRD, the operator, nodes and what hands out their GPUs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from plimsoll import names
from plimsoll.api.crd import custom_resource_definition
from plimsoll.facts.examined import Examined, Object
from plimsoll.facts.labels import ProblemReason, dra
from plimsoll.facts.nodes import NodeParser
from plimsoll.facts.shapes import Node
from plimsoll.kube.times import seconds
from plimsoll.status.doctor.found import Found, about, conditions, metadata, name_of

STALE_SECONDS: Final = 60.0
"""A holder renews every few seconds; this leaves room for clocks that differ."""
MOST_NAMES: Final = 3
BRINGS_CRD: Final = "plimsoll crd | kubectl apply --server-side -f -"
PRESSURES: Final = ("MemoryPressure", "DiskPressure", "PIDPressure")


def crd(examined: Examined) -> Iterator[Found]:
    """Checks that the CRD is there and has every field that this program knows, as no other can be set or told."""
    if examined.blind("crds"):
        return
    kind = f"CustomResourceDefinition {names.CRD_NAME}"
    if not examined.crds:
        message = f"the cluster knows no {names.KIND}s"
        yield Found(severity="error", about=kind, reason="NoCRD", message=message, remedy=BRINGS_CRD)
        return
    lacks = sorted(_lacking(_schema(custom_resource_definition()), _schema(examined.crds[0]), ""))
    if lacks:
        lost = "the API server drops such fields of a spec without a word, and the operator leaves those of a status out"
        message = f"the CRD is older than this program, it lacks {_some(lacks)}: {lost}"
        yield Found(severity="warning", about=kind, reason="OldCRD", message=message, remedy=BRINGS_CRD)


def operator(examined: Examined) -> Iterator[Found]:
    """Checks that an operator runs, by its Lease, and that it has looked at each resource in its present form."""
    behind = [one for one in examined.deployments if _behind(one)]
    acting = [one for one in examined.leases if _held(examined, one)]
    if acting or examined.blind("leases"):
        yield from _passed_over(examined, behind, acting)
    elif examined.leases:
        yield _down(examined, behind)
    elif behind:
        message = (
            f"no operator has taken its Lease {names.LEASE}, and nobody has looked at {_some_of(behind)}"
        )
        yield Found(
            severity="error", about=f"Lease {names.LEASE}", reason="NoOperator", message=message,
            remedy="install the operator: helm install plimsoll charts/plimsoll --namespace plimsoll --create-namespace "
            "--set image.repository=REGISTRY/plimsoll",
        )  # fmt: skip


def _held(examined: Examined, lease: Object) -> bool:
    spec = lease.get("spec") or {}
    return bool(spec.get("holderIdentity")) and examined.now - _renewed(lease) <= STALE_SECONDS


def _renewed(lease: Object) -> float:
    return seconds((lease.get("spec") or {}).get("renewTime"))


def _down(examined: Examined, behind: list[Object]) -> Found:
    """Of Leases that nobody holds any more, the one that was held last."""
    lease = max(examined.leases, key=_renewed)
    holder = (lease.get("spec") or {}).get("holderIdentity")
    if not holder:
        message = "no operator runs: the last one gave its Lease back"
    else:
        age = examined.now - _renewed(lease)
        message = f"no operator runs: {holder} renewed its Lease {age:.0f} s ago for the last time"
    waits = f"; {_some_of(behind)} wait" if behind else ""
    return Found(
        severity="error", about=about("Lease", lease), reason="OperatorDown", message=message + waits,
        remedy=f"kubectl -n {metadata(lease).get('namespace')} get pods,events",
    )  # fmt: skip


def _passed_over(examined: Examined, behind: list[Object], acting: list[Object]) -> Iterator[Found]:
    """Deployments that an operator has had the time to look at. Whoever may read no Leases does not see whether one acts."""
    if acting:
        who = f"though one acts: {_some(sorted(map(_holder, acting)))}"
        home = metadata(acting[0]).get("namespace")
        waits = f", or whether another release in {home} waits for its Lease (two need two namespaces)"
        more = f"the operator's log: kubectl -n {home} logs -l {names.LABEL_ROLE}={names.OPERATOR} --tail=100"
    else:
        who, waits = "and whether one acts could not be seen", ""
        more = f"who acts: kubectl get lease -A --field-selector=metadata.name={names.LEASE}"
    fresh = examined.now - STALE_SECONDS
    if any(seconds(one["spec"].get("acquireTime")) >= fresh for one in acting):
        return  # it has only begun, and looks at all of them now
    stay = [one for one in behind if not metadata(one).get("deletionTimestamp")]
    never = [
        one for one in stay if not _looked_at(one) and seconds(metadata(one).get("creationTimestamp")) < fresh
    ]
    late = [one for one in stay if _looked_at(one) and 0 < _written(one) < fresh]
    if never:
        yield Found(
            severity="error", about=f"{names.KIND} {_some_of(never)}", reason="NotLookedAt",
            message=f"no operator has looked at {_some_of(never)}, {who}",
            remedy=f"see whether `namespaces` of the chart's values leave the namespace out{waits}, else {more}",
        )  # fmt: skip
    if late:
        yield Found(
            severity="warning", about=f"{names.KIND} {_some_of(late)}", reason="OldStatus",
            message=f"no operator has looked at the present spec of {_some_of(late)}, {who}",
            remedy=f"see {more}",
        )  # fmt: skip


def _holder(lease: Object) -> str:
    who = str(lease["spec"]["holderIdentity"])
    watches = (metadata(lease).get("annotations") or {}).get(names.ANNOTATION_WATCHES)
    return f"{who}, which watches {watches}" if watches else who


def _written(deployment: Object) -> float:
    """When anything but the status was last written, so that its spec is at least as old; 0 where nobody kept it."""
    kept = metadata(deployment).get("managedFields") or ()
    times = (seconds(one.get("time")) for one in kept if one.get("subresource") != "status")
    return max(times, default=0.0)


def nodes(examined: Examined) -> Iterator[Found]:
    """Nodes whose labels and devices contradict each other or leave something out, in one finding for all nodes with the same problem."""
    alike: dict[tuple[str, str], list[str]] = {}
    unknown = examined.blind("slices")
    by_claim = {str((one.get("spec") or {}).get("nodeName")) for one in examined.slices}
    for node in _parsed(examined).values():
        if unknown and not node.reading.devices and not node.reading.problems:
            continue  # whatever lacks there may be given by claims
        for problem in node.problems:
            if problem.reason is ProblemReason.NO_DRIVER and node.name in by_claim:
                continue
            alike.setdefault((str(problem.reason), problem.message), []).append(node.name)
    for (reason, message), nodes_ in sorted(alike.items()):
        yield Found(
            severity="error", about=f"Node {_some(sorted(nodes_))}", reason=reason, message=message,
            remedy=_NODE_REMEDIES.get(reason, ""),
        )  # fmt: skip


_NODE_REMEDIES: Final = {
    "MissingLabel": "run the vendor's feature discovery on them, or name the product in nodeClasses of the OperatorConfig",
    "UnknownProduct": "name a known product for them in nodeClasses of the OperatorConfig",
    "ContradictoryLabels": "look at the device plugin's pods on them: kubectl get pods -A -o wide",
    "MixedDevices": "one product a node, or label them by hand",
    "InvalidValue": "correct the label or quantity",
    "NoDriver": "where that is installed, look at the driver's and the device plugin's pods on them: kubectl get pods -A -o wide",
}


def accelerators(examined: Examined) -> Iterator[Found]:
    """No node has an accelerator, and no other finding explains it."""
    parsed = _parsed(examined)
    seen = any(node.reading.devices or node.problems for node in parsed.values())
    if parsed and not seen and not examined.slices and not examined.blind("slices"):
        yield Found(
            severity="warning", about=f"{len(parsed)} nodes", reason="NoAccelerators",
            message="no node offers an accelerator: models can only run on CPUs here",
            remedy="add nodes with GPUs, or declare in nodeClasses of the OperatorConfig those that an autoscaler makes",
        )  # fmt: skip


def health(examined: Examined) -> Iterator[Found]:
    """Nodes that have accelerators or serving pods and are away or under pressure."""
    parsed = _parsed(examined)
    serving = {str((pod.get("spec") or {}).get("nodeName")) for pod in examined.pods}
    for item in sorted(examined.nodes, key=name_of):
        node = parsed[name_of(item)]
        by_claim = any(offer.shape.device.via_dra for offer in node.offers)
        if not node.reading.devices and not by_claim and node.name not in serving:
            continue
        if node.away:
            cure = "kubectl uncordon" if node.away == "cordoned" else "kubectl describe node"
            yield Found(
                severity="warning", about=about("Node", item), reason="NodeAway", message=f"the node is {node.away}",
                remedy=f"{cure} {node.name}",
            )  # fmt: skip
        states = conditions(item)
        for kind in PRESSURES:
            if states.get(kind, {}).get("status") == "True":
                yield Found(
                    severity="warning", about=about("Node", item), reason=kind,
                    message=f"the node reports {kind}: {states[kind].get('message') or 'pods are evicted from it'}",
                    remedy=f"kubectl describe node {node.name}",
                )  # fmt: skip


def _parsed(examined: Examined) -> dict[str, Node]:
    parser = NodeParser(examined.config.node_classes)
    slices: dict[str, list[dra.Slice]] = {}
    for item in examined.slices:
        found = dra.parse_slice(item)
        if found is not None:
            slices.setdefault(found.node, []).append(found)
    return {name_of(one): parser.parse(one, slices.get(name_of(one), ())) for one in examined.nodes}


def _behind(deployment: Object) -> bool:
    status = deployment.get("status") or {}
    return status.get("observedGeneration") != metadata(deployment).get("generation")


def _looked_at(deployment: Object) -> bool:
    """Whether an operator ever said something of it."""
    return "observedGeneration" in (deployment.get("status") or {})


def _schema(definition: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema of our API version; empty where the CRD has no such version."""
    versions = (definition.get("spec") or {}).get("versions") or ()
    ours: Mapping[str, Any] = next((one for one in versions if one.get("name") == names.VERSION), {})
    found: Mapping[str, Any] = (ours.get("schema") or {}).get("openAPIV3Schema") or {}
    return found


def _lacking(ours: Mapping[str, Any], theirs: Mapping[str, Any], path: str) -> Iterator[str]:
    """Paths of fields that only our schema has. Where a whole branch is missing only its root is named."""
    known = theirs.get("properties") or {}
    for name, schema in (ours.get("properties") or {}).items():
        where = f"{path}.{name}" if path else name
        if name not in known:
            yield where
        else:
            yield from _lacking(schema, known[name], where)
    if isinstance(ours.get("items"), Mapping):
        yield from _lacking(ours["items"], theirs.get("items") or {}, f"{path}[]")


def _some_of(items: list[Object]) -> str:
    return _some(sorted(f"{metadata(one).get('namespace')}/{name_of(one)}" for one in items))


def _some(found: list[str]) -> str:
    more = len(found) - MOST_NAMES
    return ", ".join(found[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
