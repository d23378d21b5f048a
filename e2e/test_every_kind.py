"""Children of every kind under the shipped rights: written once, restored from whatever a hand does, and never taken from others."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import pytest

from chart import VALUES
from cluster import Cluster
from cluster.api import ApiError, Object
from cluster.faults import Where
from cluster.others import OTHERS
from common import LONG_SECONDS, ROOT, eventually
from every_kind import ASKED, are_made, ask, children, fleet, owner_of
from plimsoll import names
from plimsoll.kube.kinds import CHILDREN, WORKLOADS, Kind
from rights import admins_file, installed
from turns.running import Desk, Operator

PLACE: Final = "plimsoll-kinds"
USER: Final = f"system:serviceaccount:{PLACE}:load-plimsoll"
ELSEWHERE: Final = {"example.com/somewhere": "else"}
EDITS: Final[dict[str, Any]] = {
    "Deployment": {"spec": {"template": {"spec": {"terminationGracePeriodSeconds": 999}}}},
    "StatefulSet": {"spec": {"template": {"spec": {"terminationGracePeriodSeconds": 999}}}},
    "LeaderWorkerSet": {"spec": {"leaderWorkerTemplate": {"size": 7}}},
    "ConfigMap": {"data": {names.PLAN_KEY: "by hand"}},
    "Service": {"spec": {"selector": ELSEWHERE}},
    "ServiceAccount": {"automountServiceAccountToken": True},
    "PodDisruptionBudget": {"spec": {"maxUnavailable": "100%", "minAvailable": None}},
    "NetworkPolicy": {"spec": {"ingress": [{}]}},
    "Ingress": {"spec": {"rules": [{"host": "elsewhere.example.com"}]}},
    "HTTPRoute": {"spec": {"parentRefs": [{"name": "elsewhere"}]}},
    "InferencePool": {"spec": {"selector": {"matchLabels": {names.LABEL_DEPLOYMENT: "elsewhere"}}}},
    "PodMonitor": {"spec": {"selector": {"matchLabels": ELSEWHERE}}},
}
"""Of the others the API server itself lets nobody change more than what is said about them."""
ADDED: Final[dict[str, Any]] = {
    "InferencePool": {"spec": {"selector": {"matchLabels": ELSEWHERE}}},
    "PodMonitor": {"spec": {"selector": {"matchLabels": ELSEWHERE}}},
    "Service": {"spec": {"selector": ELSEWHERE}},
    "PodDisruptionBudget": {"spec": {"selector": {"matchLabels": ELSEWHERE}}},
    "NetworkPolicy": {"spec": {"podSelector": {"matchLabels": ELSEWHERE}}},
    "ConfigMap": {"data": {"added.json": "by hand"}},
}
"""Keys beside ours, in maps that choose pods or are read by them: an apply alone may leave them."""
HANDS: Final = ("deleted", "edited", "relabelled")
OURS: Final = ("plimsoll.dev/", "app.kubernetes.io/")
GIVEN: Final = ("clusterIP", "clusterIPs", "volumeName", "revision")
"""Fields of which each new object gets another value, from others than the operator."""


@dataclass(frozen=True, slots=True)
class Ground:
    desk: Desk
    operator: Operator


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    """An operator under the chart's own rights, beside resources that have all kinds of children."""
    folder = tmp_path_factory.mktemp("kinds")
    with Cluster(audit=True) as cluster:
        cluster.install(ROOT / "crds" / "llmdeployments.plimsoll.dev.yaml")
        cluster.install_others(*OTHERS)
        for name in (PLACE, "users"):
            cluster.api.create("/api/v1/namespaces", {"metadata": {"name": name}})
        account = installed(cluster, VALUES["default"], PLACE)
        args = (f"--config={admins_file(VALUES['default'], folder)}", f"--lease-namespace={PLACE}")
        desk = Desk(cluster, "users")
        with (
            cluster.fleet(fleet()),
            Operator(cluster, folder, kubeconfig=account, args=args) as operator,
        ):
            ask(desk)
            assert are_made(desk), operator.tail()
            yield Ground(desk, operator)


@pytest.fixture
def calm(ground: Ground) -> Ground:
    """All there, and nobody writes."""
    desk, tail = ground.desk, ground.operator.tail
    assert are_made(desk), tail()
    stalls = partial(desk.condition, "Stalled")
    taken = "NameConflict"  # as the test before may have left it
    assert eventually(lambda: all(stalls(name)[1] != taken for name in ASKED), LONG_SECONDS), tail()
    assert ground.operator.rests(), tail()
    return ground


def test_what_is_asked_for_again_and_looked_at_again_is_written_once(calm: Ground) -> None:
    """KServe 5353 for every kind: each reconcile wrote what the API server had defaulted, and diffs were shown for ever."""
    desk, operator = calm.desk, calm.operator
    before = {kind.name: versions(desk, kind) for kind in CHILDREN}
    since = desk.cluster.audit.mark()
    for _ in range(10):
        ask(desk)
    operator.restart()
    assert eventually(lambda: operator.metric("plimsoll_turns_total") >= len(ASKED)), operator.tail()
    assert operator.rests()
    written = [
        f"{one.call.verb} {one.call.resource} {one.call.name}"
        for one in desk.cluster.audit.writes(user=USER, since=since)
        if one.call.resource not in ("leases", "events", f"{names.PLURAL}/status")
    ]
    assert written == []
    assert {kind.name: versions(desk, kind) for kind in CHILDREN} == before


def versions(desk: Desk, kind: Kind) -> dict[str, tuple[str, Any]]:
    """The API server counts changes of a spec where there is one."""
    return {
        name: (
            one["metadata"]["uid"],
            one["metadata"].get("generation") or one["metadata"]["resourceVersion"],
        )
        for name, one in children(desk, kind).items()
    }


def test_whatever_a_hand_does_to_a_child_of_any_kind_is_undone(calm: Ground) -> None:
    took: dict[str, float] = {}
    never: list[str] = []
    for kind in CHILDREN:
        name, child = min(children(calm.desk, kind).items())
        for hand in HANDS:
            what = f"{kind.name} {hand}"
            done_to(calm.desk, kind, child, hand)
            began = time.monotonic()
            if eventually(partial(is_as, calm.desk, kind, name, child), LONG_SECONDS):
                took[what] = time.monotonic() - began
            else:
                now = children(calm.desk, kind).get(name)
                never.append(f"{what}: {name} of {owner_of(child)} was {told(child)}, is {now and told(now)}")
    slowest = max(took, key=lambda one: took[one])
    print(f"{len(took)} restored; the slowest: {slowest}, {took[slowest]:.1f} s")
    assert never == []
    assert len(took) == len(CHILDREN) * len(HANDS)
    assert calm.operator.turns_failed() == 0, calm.operator.tail()


def test_what_a_hand_adds_to_a_map_of_ours_goes_and_what_it_notes_stays(calm: Ground) -> None:
    """A pool with one label more in its selector chose nobody, for ever."""
    api = calm.desk.cluster.api
    added = {kind: min(children(calm.desk, kind).items()) for kind in CHILDREN if kind.name in ADDED}
    paths = {kind: kind.path(calm.desk.namespace, name) for kind, (name, _) in added.items()}
    noted = {"annotations": ELSEWHERE, "labels": ELSEWHERE}
    try:
        for kind, (name, child) in added.items():
            change = {**ADDED[kind.name], "metadata": noted}
            changed = api.patch(paths[kind], change, fieldManager="by-hand")
            assert told(changed) != told(child), f"{paths[kind]}: the hand changed nothing"
            assert eventually(partial(is_as, calm.desk, kind, name, child), LONG_SECONDS), (
                f"{paths[kind]}: {changed}"
            )
        assert calm.operator.rests()
        for path in paths.values():
            metadata = api.get(path)["metadata"]
            assert all(metadata[field].items() >= ELSEWHERE.items() for field in noted), path
    finally:
        for path in paths.values():
            api.patch(
                path, {"metadata": dict.fromkeys(noted, dict.fromkeys(ELSEWHERE))}, fieldManager="by-hand"
            )


def done_to(desk: Desk, kind: Kind, child: Object, hand: str) -> None:
    path = kind.path(desk.namespace, child["metadata"]["name"])
    match hand:
        case "deleted":
            desk.cluster.api.delete(path)
        case "edited":
            noted = {"metadata": {"annotations": {names.ANNOTATION_HASH: "by hand"}}}
            changed = desk.cluster.api.patch(path, EDITS.get(kind.name, noted), fieldManager="by-hand")
            assert told(changed) != told(child), f"{path}: the hand changed nothing"
        case "relabelled":
            labels = dict.fromkeys((names.LABEL_MANAGED_BY, names.LABEL_DEPLOYMENT))
            desk.cluster.api.patch(path, {"metadata": {"labels": labels}}, fieldManager="by-hand")


def is_as(desk: Desk, kind: Kind, name: str, before: Object) -> bool:
    """Whether it is there as it was, to the last field that the operator writes."""
    now = children(desk, kind).get(name)
    return now is not None and "deletionTimestamp" not in now["metadata"] and told(now) == told(before)


def told(child: Object) -> Object:
    """What it says, without what the API server and other controllers have added."""
    kept = {key: deepcopy(value) for key, value in child.items() if key not in ("metadata", "status", *GIVEN)}
    for field in GIVEN:
        (kept.get("spec") or {}).pop(field, None)
    for field in ("labels", "annotations"):
        said = child["metadata"].get(field) or {}
        kept[field] = {key: value for key, value in said.items() if key.startswith(OURS)}
    plan = (kept.get("data") or {}).get(names.PLAN_KEY, "")
    if plan.startswith("{"):
        # One that was lost is made anew from the sets that serve, and says so.
        sets = json.loads(plan)["sets"]
        kept["data"][names.PLAN_KEY] = [
            [one[key] for key in ("hardware", "layout", "settings")] for one in sets
        ]
        kept["annotations"] = sorted(kept["annotations"])
    return kept


@pytest.mark.parametrize("makes_pods", [False, True], ids=["what pods need", "what makes pods"])
def test_an_object_of_somebody_else_in_the_place_of_a_child_is_told_and_left_as_it_is(
    calm: Ground, makes_pods: bool
) -> None:
    desk, operator = calm.desk, calm.operator
    operator.stop()
    theirs: dict[str, Object] = {}
    of: dict[str, set[str]] = {}
    for kind in CHILDREN:
        if (kind in WORKLOADS) == makes_pods:
            name, child = min(children(desk, kind).items())
            path = kind.path(desk.namespace, name)
            theirs[path] = in_its_place(desk, path, child)
            of.setdefault(owner_of(child), set()).add(name)
    try:
        operator.start()
        for owner, taken in of.items():
            is_said = partial(names_one, desk, owner, taken)
            assert eventually(is_said, LONG_SECONDS), (taken, desk.get(owner)["status"], operator.tail())
        assert eventually(lambda: operator.metric("plimsoll_turns_total") >= len(ASKED)), operator.tail()
        assert operator.rests()
        assert {path: by_whom(desk.cluster.api.get(path)) for path in theirs} == {
            path: by_whom(one) for path, one in theirs.items()
        }
    finally:
        for path in theirs:
            desk.cluster.api.delete(path)


def names_one(desk: Desk, owner: str, taken: set[str]) -> bool:
    """Whether the resource says of one of the names that another has it."""
    told = desk.condition("Stalled", owner) == ("True", "NameConflict")
    return told and any(name in desk.message("Stalled", owner) for name in taken)


def in_its_place(desk: Desk, path: str, child: Object) -> Object:
    """One of the same kind and name, of the same content, that a person made."""
    body = {key: deepcopy(value) for key, value in child.items() if key not in ("metadata", "status")}
    for field in GIVEN[:3]:
        (body.get("spec") or {}).pop(field, None)
    body["metadata"] = {"name": child["metadata"]["name"]}
    desk.cluster.api.delete(path)

    def made() -> bool:
        try:
            desk.cluster.api.create(path.rpartition("/")[0], body, fieldManager="by-hand")
        except ApiError as error:
            if error.status != 409:
                raise
            return False  # the one before is on its way out still
        return True

    assert eventually(made, LONG_SECONDS)
    return desk.cluster.api.get(path)


def by_whom(item: Object) -> tuple[str, Any, list[str]]:
    """Which it is, whose it is, and who has written it; controllers write a status whenever they like."""
    metadata = item["metadata"]
    writers = [one["manager"] for one in metadata["managedFields"] if not one.get("subresource")]
    return (
        metadata["uid"],
        metadata.get("ownerReferences"),
        sorted(set(writers) - {"kube-controller-manager"}),
    )


def test_none_of_all_that_was_refused_for_want_of_a_right(calm: Ground) -> None:
    audit = calm.desk.cluster.audit
    assert audit.writes(user=USER), "it is this user that it writes as"
    refused = audit.entries(Where(), user=USER, codes={401, 403})
    assert [(one.call.verb, one.call.resource, one.call.namespace) for one in refused] == []
