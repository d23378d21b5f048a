"""What must hold of a cluster in which nothing moves, whatever was done to it: invariants, each told in a sentence when broken."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import yaml

from cluster.api import ApiError, Object
from common import ROOT, is_ready
from plimsoll import names
from plimsoll.api.conditions import TYPES
from plimsoll.names import child_name
from storm.ground import Ground

PATIENCE: Final = 600.0
"""For what is waited for by looking; a rollout proves each replica for ten seconds, and lost pods are collected in a minute."""
STILL_SECONDS: Final = 3.0
QUIET_TRIES: Final = 5
BROKEN: Final = ("/dies", "/pull-error")
WAITING: Final = frozenset({"WaitingForGPUs", "WaitingForNodes", "WaitingForQuota"})
OF_LIVE: Final = frozenset({names.METRICS, names.AUTOTUNE_PAUSED})
KINDS: Final = (
    "apps/v1/deployments", "apps/v1/statefulsets", "apps/v1/controllerrevisions", "v1/services", "v1/configmaps",
    "v1/serviceaccounts", "policy/v1/poddisruptionbudgets", "resource.k8s.io/v1/resourceclaimtemplates",
)  # fmt: skip


def resources(ground: Ground) -> list[Object]:
    return ground.desk.items(f"{names.API_VERSION}/{names.PLURAL}")


def conditions(resource: Object) -> dict[str, Object]:
    return {one["type"]: one for one in (resource.get("status") or {}).get("conditions") or ()}


def reason(resource: Object, kind: str) -> str:
    """Of a condition; empty where it is absent."""
    return str(conditions(resource).get(kind, {}).get("reason", ""))


def is_true(resource: Object, kind: str) -> bool:
    return conditions(resource).get(kind, {}).get("status") == "True"


def moves(ground: Ground, resource: Object) -> str:
    """Why this is not the end of what happens to it; empty where it is."""
    spec, name = resource["spec"], resource["metadata"]["name"]
    status = resource.get("status") or {}
    if "deletionTimestamp" in resource["metadata"]:
        return "it is being deleted"
    if status.get("observedGeneration") != resource["metadata"]["generation"]:
        return f"observedGeneration is {status.get('observedGeneration')}, generation {resource['metadata']['generation']}"
    if is_true(resource, names.STALLED) or spec.get("paused"):
        return ""
    if is_true(resource, names.READY):
        return "it is Reconciling still" if names.RECONCILING in conditions(resource) else ""
    why = reason(resource, names.READY)
    if why in WAITING or reason(resource, names.PROGRESSING) == "Held":
        return ""
    pods = ground.pods_of(name)
    if any(not one["spec"].get("nodeName") for one in pods):
        return ""
    habits = spec.get("podAnnotations") or {}
    broken = any(map(_is_broken, pods)) or any(key.endswith(BROKEN) for key in habits)
    if why in ("StartFailed", "RollingOut") and broken:
        return ""
    return f"Ready is {why}: {conditions(resource).get(names.READY, {}).get('message', '')}"


def rests(ground: Ground) -> list[str]:
    """Waits until nothing moves; what moves still when patience ends."""
    deadline = time.monotonic() + PATIENCE
    since, before, why = time.monotonic(), -1, [""]
    while time.monotonic() < deadline:
        ground.answer_readers()
        now, why = _writes(ground), _moving(ground)
        if now != before or why:
            since, before = time.monotonic(), now
        elif time.monotonic() - since > STILL_SECONDS:
            return []
        time.sleep(0.3)
    return [f"does not come to rest: {one}" for one in why] or ["goes on writing"]


def _writes(ground: Ground) -> int:
    try:
        return ground.writes()
    except OSError:
        return -2


def _moving(ground: Ground) -> list[str]:
    found = [(one["metadata"]["name"], moves(ground, one)) for one in resources(ground)]
    why = [f"{name}: {told}" for name, told in found if told]
    leaving = [
        f"{kind} {one['metadata']['name']} is being deleted"
        for kind in (*KINDS, "v1/pods")
        for one in ground.desk.items(kind)
        if "deletionTimestamp" in one["metadata"]
    ]
    return why + leaving + list(_orphans(ground))


def _orphans(ground: Ground) -> Iterator[str]:
    """Children of resources that are gone, or of an earlier one of the name; who deletes with Orphan wants them."""
    owners = {one["metadata"]["uid"] for one in resources(ground)}
    for kind in KINDS:
        for one in ground.desk.items(kind):
            for ref in one["metadata"].get("ownerReferences") or ():
                if ref["kind"] == names.KIND and ref["uid"] not in owners:
                    yield f"{kind} {one['metadata']['name']} belongs to a {names.KIND} that is gone"


def judged(ground: Ground) -> list[str]:
    """What is wrong now that nothing moves."""
    found = [
        f"{one['metadata']['name']}: {fault}"
        for one in resources(ground)
        for rule in RULES
        for fault in rule(ground, one)
    ]
    found += _crowded(ground)
    found += _quiet(ground)
    log = ground.log()
    if "Traceback" in log:
        at = log.index("Traceback")
        found.append(f"the log has a traceback: {log[max(0, at - 400) : at + 3000]}")
    found += [
        f"an operator ended with {one.process.poll()}"
        for one in ground.operators
        if one.process.poll() is not None
    ]
    return found


def _story(_: Ground, resource: Object) -> Iterator[str]:
    """kstatus: exactly one of the three stories."""
    said = conditions(resource)
    generation = resource["metadata"]["generation"]
    for kind, one in said.items():
        if kind in TYPES and kind not in OF_LIVE and one.get("observedGeneration") != generation:
            yield f"{kind} is of generation {one.get('observedGeneration')}, not {generation}"
        if not one.get("message"):
            yield f"{kind} {one['reason']} has no message"
    stories = [kind for kind in (names.READY, names.RECONCILING, names.STALLED) if is_true(resource, kind)]
    if len(stories) != 1 and not (not stories and resource["spec"].get("paused")):
        yield f"its stories are {stories}: {_shown(resource)}"
    for kind in (names.RECONCILING, names.STALLED):
        if kind in said and said[kind]["status"] != "True":
            yield f"{kind} is there and {said[kind]['status']}"


def _shown(resource: Object) -> str:
    return ", ".join(f"{kind}={one['status']} {one['reason']}" for kind, one in conditions(resource).items())


def leaders(ground: Ground, name: str) -> list[Object]:
    return [
        one for one in ground.pods_of(name) if one["metadata"]["labels"].get(names.LABEL_LEADER) == "true"
    ]


def _counted(ground: Ground, resource: Object) -> Iterator[str]:
    """What status counts is there."""
    name, status = resource["metadata"]["name"], resource.get("status") or {}
    mine = [
        one
        for one in leaders(ground, name)
        if (one.get("status") or {}).get("phase") not in ("Failed", "Succeeded")
    ]
    counted = status.get("replicaStatus") or {}
    told = status.get("replicas", 0)
    if told != len(mine) and reason(resource, names.READY) not in WAITING and not _refused(resource):
        yield f"status.replicas is {told}, and {len(mine)} leaders are there: {_shown(resource)}"
    ready = sum(map(is_ready, mine))
    if counted.get("ready", 0) > ready:
        yield f"{counted['ready']} replicas are told to be ready, and {ready} leaders are"
    replicas = resource["spec"].get("replicas")
    # A node that is cordoned has one replica more for a while.
    moves_away = reason(resource, names.PROGRESSING) == "Moving"
    obeys = is_true(resource, names.READY) and not resource["spec"].get("paused") and not moves_away
    if replicas is not None and obeys and not counted.get("wanted", 0) == replicas == ready:
        yield f"Ready with {ready} of {counted.get('wanted')} replicas, and spec.replicas is {replicas}"


def _refused(resource: Object) -> bool:
    text = json.dumps(resource.get("status") or {})
    return "quota" in text or "Quota" in text


def _settled(ground: Ground, resource: Object) -> Iterator[str]:
    """Once serving: the sets of the plan and no others, and no pod of another."""
    if not is_true(resource, names.READY) or reason(resource, names.PROGRESSING) != "RolledOut":
        return
    name, uid = resource["metadata"]["name"], resource["metadata"]["uid"]
    planned = {one["name"] for one in resource["status"].get("sets") or ()}
    live = {
        one["metadata"]["labels"].get(names.LABEL_SET)
        for kind in ("apps/v1/deployments", "apps/v1/statefulsets")
        for one in ground.desk.items(kind)
        if any(ref["uid"] == uid for ref in one["metadata"].get("ownerReferences") or ())
    }
    sets = {one.rpartition("-")[2] for one in planned}
    if live - sets and None not in live:
        yield f"settled on {sorted(planned)}, and workloads of {sorted(map(str, live))} are there"
    strangers = [
        pod["metadata"]["name"]
        for pod in leaders(ground, name)
        if pod["metadata"]["labels"].get(names.LABEL_SET) not in sets
    ]
    if strangers:
        yield f"pods of no planned set: {strangers}"


def _waits(ground: Ground, resource: Object) -> Iterator[str]:
    """A pod without a node is told."""
    lost = [
        one["metadata"]["name"]
        for one in leaders(ground, resource["metadata"]["name"])
        if not one["spec"].get("nodeName")
    ]
    if lost and is_true(resource, names.READY) and not resource["spec"].get("paused"):
        moving = reason(resource, names.PROGRESSING)
        if moving not in ("Moving", "Held"):
            yield f"Ready is True while {lost} have no node: {_shown(resource)}"


def _events(ground: Ground, resource: Object) -> Iterator[str]:
    """A decision is told once: what is said twice alike stood differently in between."""
    uid = resource["metadata"]["uid"]
    told = [
        one
        for one in ground.desk.items("events.k8s.io/v1/events")
        if (one.get("regarding") or {}).get("uid") == uid
    ]
    told.sort(key=lambda one: str(one.get("eventTime") or one["metadata"]["creationTimestamp"]))
    last: dict[str, tuple[str, str]] = {}
    for one in told:
        about, said = str(one.get("action", "")), (str(one["reason"]), str(one.get("note", "")))
        if last.get(about) == said and not ground.disturbed:
            yield f"the event {said} of {about} was told twice running"
        last[about] = said


def _crowded(ground: Ground) -> Iterator[str]:
    """No device has two pods."""
    used: Counter[tuple[str, str]] = Counter()
    for pod in ground.cluster.api.items("/api/v1/pods"):
        if not pod["spec"].get("nodeName") or (pod.get("status") or {}).get("phase") in (
            "Failed",
            "Succeeded",
        ):
            continue
        for container in pod["spec"]["containers"]:
            for what, amount in ((container.get("resources") or {}).get("limits") or {}).items():
                if "/" in what:
                    used[pod["spec"]["nodeName"], what] += int(amount)
    for node in ground.cluster.api.items("/api/v1/nodes"):
        for what, amount in node["status"]["allocatable"].items():
            taken = used[node["metadata"]["name"], what]
            if "/" in what and taken > int(amount):
                yield f"{node['metadata']['name']} has {amount} {what}, and pods with {taken}"


def _quiet(ground: Ground) -> list[str]:
    """On a machine with much else to do the last write may come late; what never ends is told with what was written last.
    Engines that die again and again are told of again and again."""
    if any(_is_broken(pod) for pod in ground.desk.pods()):
        return []
    for _ in range(QUIET_TRIES):
        before = _writes(ground)
        time.sleep(STILL_SECONDS)
        if _writes(ground) == before:
            return []
    return [f"it writes while nothing moves: {ground.log().splitlines()[-3:]}"]


def _is_broken(pod: Object) -> bool:
    """Whether its engine is to die, or its image not to be there."""
    return any(key.endswith(BROKEN) for key in pod["metadata"].get("annotations") or {})


def rendered(ground: Ground, folder: Path) -> Iterator[str]:
    """`plimsoll render` of the cluster as it is gives the children that are there, by their hash."""
    settled = [
        one
        for one in resources(ground)
        if is_true(one, names.READY)
        and reason(one, names.READY) == "Serving"
        and reason(one, names.PROGRESSING) == "RolledOut"
    ]
    if not settled:
        return
    snapshot, file = folder / "snapshot.json", folder / "llm.yaml"
    taken = _command(ground, "snapshot", "--context", "-o", str(snapshot), "--config", ground.config_file)
    if taken.returncode:
        yield f"snapshot: {taken.stderr[-2000:]}"
        return
    file.write_text(yaml.safe_dump_all(settled))
    done = _command(ground, "render", "-f", str(file), "--snapshot", str(snapshot))
    made: dict[tuple[str, str], Any] = {}
    for one in yaml.safe_load_all(done.stdout):
        about = one["metadata"]
        made[one["kind"], about["name"]] = (
            about["annotations"].get(names.ANNOTATION_HASH),
            about["labels"][names.LABEL_DEPLOYMENT],
        )
    there: dict[tuple[str, str], Any] = {}
    chosen = {one["metadata"]["uid"]: one["metadata"]["name"] for one in settled}
    for kind in KINDS:
        for one in ground.desk.items(kind):
            for ref in one["metadata"].get("ownerReferences") or ():
                if ref["uid"] in chosen:
                    name = one["metadata"]["name"]
                    hashed = (one["metadata"].get("annotations") or {}).get(names.ANNOTATION_HASH)
                    there[one.get("kind") or _kind(kind), name] = hashed, chosen[ref["uid"]]
    if done.returncode and not made:
        yield f"render: {done.stderr[-2000:]}"
    # The pinned plan tells of the fleet as it was at the last whole turn, which the next one, within the hour, brings up to date.
    plans = {("ConfigMap", child_name(name, "plan")) for name in chosen.values()}
    for key in sorted((made.keys() | there.keys()) - plans):
        if made.get(key) != there.get(key):
            yield f"{key}: rendered {made.get(key)}, there is {there.get(key)}; {done.stderr[-500:]}"


def _kind(collection: str) -> str:
    plural = collection.rpartition("/")[2]
    names_ = ("Deployment", "StatefulSet", "ControllerRevision", "Service", "ConfigMap", "ServiceAccount",
              "PodDisruptionBudget", "ResourceClaimTemplate")  # fmt: skip
    return next(one for one in names_ if one.lower() + "s" == plural)


def _command(ground: Ground, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(Path(sys.executable).with_name("plimsoll")), *args],
        cwd=ROOT,
        env={**os.environ, "KUBECONFIG": str(ground.cluster.kubeconfig)},  # noqa: TID251 - a process of its own
        capture_output=True,
        text=True,
        check=False,
    )


def healed(ground: Ground, *, tight: bool) -> Iterator[str]:
    """With everything in order but what users wrote, what they wrote serves, or says what is wrong with it."""
    for one in resources(ground):
        name, spec = one["metadata"]["name"], one["spec"]
        habits = spec.get("podAnnotations") or {}
        bad = any(key.endswith(BROKEN) for key in habits)
        if bad or spec.get("paused") or (spec.get("rollout") or {}).get("hold"):
            continue
        wrong = is_true(one, names.STALLED) and reason(one, names.STALLED) in (
            "InvalidSpec",
            "DoesNotFit",
            "NotTrusted",
        )
        if wrong or is_true(one, names.READY) or (tight and reason(one, names.READY) in WAITING):
            continue
        yield f"{name}: all is in order, and it does not serve: {_shown(one)}: {conditions(one).get(names.READY, {}).get('message')}"


def gone(ground: Ground) -> list[str]:
    """What is left after the last resource was deleted."""
    for one in resources(ground):
        try:
            ground.cluster.api.delete(ground.desk.path(one["metadata"]["name"]))
        except ApiError as error:
            if error.status != 404:
                raise
    return rests(ground)


RULES: Final[tuple[Callable[[Ground, Object], Iterator[str]], ...]] = (
    _story,
    _counted,
    _settled,
    _waits,
    _events,
)
