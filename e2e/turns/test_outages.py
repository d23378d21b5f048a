"""What the API server may do to the operator: refuse, hang, forget watches, be away; and two operators where one may act."""

from __future__ import annotations

import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Final

import pytest

from cluster import Cluster
from cluster.faults import WRITES, Answer, FaultProxy, Hang, LoseEvents, Refuse, Where
from cluster.faults.rules import Fault
from common import LONG_SECONDS, eventually
from plimsoll import names
from plimsoll.kube.credentials import RENEW_SECONDS
from rights import shipped
from turns.crashes import SMALL
from turns.hasty import hasty
from turns.running import PLIMSOLL, Desk, Operator
from turns.test_metrics import page

ONE_OF_EACH: Final = (
    "apps/v1/deployments", "apps/v1/controllerrevisions", "v1/services", "v1/configmaps", "v1/serviceaccounts",
    "policy/v1/poddisruptionbudgets",
)  # fmt: skip
RELIST_SECONDS: Final = 5.0
"""What two lists in a row find was never told. In life there is more than a minute between them."""


@contextmanager
def through(
    cluster: Cluster, folder: Path, program: tuple[str, ...] = PLIMSOLL
) -> Iterator[tuple[Operator, FaultProxy]]:
    """An operator that sees the cluster through a proxy."""
    with (
        cluster.proxy() as proxy,
        Operator(cluster, folder, kubeconfig=proxy.kubeconfig(shipped(cluster)), program=program) as running,
    ):
        yield running, proxy


def test_refused_or_unanswered_on_a_third_of_its_calls_it_lives_and_ends_where_it_should(
    lab: Cluster, place: Desk, tmp_path: Path
) -> None:
    with through(lab, tmp_path) as (operator, proxy):
        for name in ("kept", "scaled"):
            place.apply(name, topology=SMALL)
            assert place.says("Ready", "True", "Serving", name, patience=LONG_SECONDS)
        mark = lab.audit.mark()
        faults: tuple[Fault, ...] = (Answer(429, retry_after=1), Answer(500), Answer(503), Refuse(), Hang())
        with ExitStack() as stack:
            rules = [
                stack.enter_context(proxy.add(one, share=0.08, seed=seed)) for seed, one in enumerate(faults)
            ]
            wanted = disturbed(place, seconds=120.0)
            assert operator.process.poll() is None
            assert all(rule.hits > 0 for rule in rules)
        for name, replicas in wanted.items():
            settled = partial(is_over, place, name, replicas)
            assert eventually(settled, LONG_SECONDS), f"{name}: {place.get(name).get('status')}"
        assert operator.rests()
        assert eventually(lambda: left(place, wanted) == [], LONG_SECONDS), left(place, wanted)
        assert made_twice(lab, place, wanted, mark) == []
        assert operator.process.poll() is None


def disturbed(place: Desk, *, seconds: float) -> dict[str, int]:
    """For so long resources come, change and go, each name once; the replicas of those that are to be there in the end."""
    wanted = {"kept": 1, "scaled": 1}
    ends = time.monotonic() + seconds
    for number in count():
        if time.monotonic() > ends:
            return wanted
        new = f"new-{number}"
        place.apply(new, topology=SMALL)
        wanted[new] = 1
        place.apply("kept", topology=SMALL, workload={"contextTokens": 4096 + 1024 * number})
        wanted["scaled"] = 1 + number % 3
        place.apply("scaled", topology=SMALL, replicas=wanted["scaled"])
        if number % 2:
            before = f"new-{number - 1}"
            place.cluster.api.delete(place.path(before))
            del wanted[before]
        time.sleep(8)
    raise AssertionError("counting does not end")


def is_over(place: Desk, name: str, replicas: int) -> bool:
    said = place.get(name).get("status") or {}
    done = (place.condition("Ready", name), place.condition("Progressing", name)[1])
    return done == (("True", "Serving"), "RolledOut") and said.get("ready") == f"{replicas}/{replicas}"


def left(place: Desk, wanted: dict[str, int]) -> list[str]:
    """What is there of those that are gone, twice, or not at all."""
    resources = place.items(f"{names.API_VERSION}/{names.PLURAL}")
    uids = {one["metadata"]["uid"]: one["metadata"]["name"] for one in resources}
    found = [f"{uids.keys()} instead of {wanted}"] if set(uids.values()) != set(wanted) else []
    for kind in ONE_OF_EACH:
        owners = [
            uids.get(owner["uid"], f"an orphan, {one['metadata']['name']}")
            for one in place.items(kind)
            for owner in one["metadata"].get("ownerReferences") or ()
            if owner["kind"] == names.KIND
        ]
        if sorted(owners) != sorted(wanted):
            found.append(f"{kind} of {sorted(owners)}")
    return found


def made_twice(lab: Cluster, place: Desk, wanted: dict[str, int], since: int) -> list[str]:
    """Of one that went in the midst of a turn the garbage collector takes what came too late."""
    made = Counter(
        f"{one.call.resource} {one.call.name}"
        for one in lab.audit.entries(Where(verbs=WRITES, namespace=place.namespace), since=since)
        if one.call.manager == names.MANAGER_CHILDREN and one.code == 201 and one.call.resource != "events"
    )
    stay = [name for what, times in made.items() for name in wanted if times > 1 and _is_of(name, what)]
    return [f"a child of {name}" for name in stay]


def _is_of(name: str, made: str) -> bool:
    child = made.partition(" ")[2]
    return child == name or child.startswith(f"{name}-")


def test_what_no_watch_ever_tells_of_resources_is_found_by_looking(
    lab: Cluster, place: Desk, tmp_path: Path
) -> None:
    """Of three of them no event arrives any more, on watches that go on: of one that is edited, one that is made, one that goes."""
    with through(lab, tmp_path, hasty(relist=RELIST_SECONDS)) as (operator, proxy):
        for name in ("edited", "gone"):
            place.apply(name, topology=SMALL)
        for name in ("edited", "gone"):
            assert place.says("Ready", "True", "Serving", name, patience=LONG_SECONDS)
        assert operator.rests()
        with ExitStack() as stack:
            resources = Where(resources={names.PLURAL})
            rules = [
                stack.enter_context(proxy.add(LoseEvents(name=name), resources))
                for name in ("edited", "made", "gone")
            ]
            place.apply("edited", topology=SMALL, replicas=2)
            place.apply("made", topology=SMALL)
            lab.api.delete(place.path("gone"))

            def good() -> bool:
                served = is_over(place, "edited", 2) and is_over(place, "made", 1)
                return served and 'llm="gone"' not in page(operator)

            assert eventually(good, LONG_SECONDS), operator.tail()
            assert all(rule.hits for rule in rules)
        wanted = {"edited": 2, "made": 1}
        assert eventually(lambda: left(place, wanted) == [], LONG_SECONDS), left(place, wanted)
        assert "a change was never told" in operator.log.read_text()


@pytest.mark.parametrize(
    "disturb",
    [
        pytest.param(lambda proxy: proxy.cut_watches(), id="cut"),
        pytest.param(lambda proxy: proxy.expire_watches(), id="expired"),
    ],
)
def test_watches_that_end_are_opened_again_and_nothing_is_missed(
    lab: Cluster, place: Desk, tmp_path: Path, disturb: Callable[[FaultProxy], int]
) -> None:
    with through(lab, tmp_path) as (operator, proxy):
        place.apply(topology=SMALL)
        assert place.says("Ready", "True", "Serving")
        for count in (2, 3, 1):
            assert disturb(proxy) > 0
            place.apply(topology=SMALL, replicas=count)
            assert eventually(
                lambda count=count: place.get()["status"].get("ready") == f"{count}/{count}"  # type: ignore[misc]
            )
        assert operator.process.poll() is None
        assert operator.rests()


def test_an_api_server_that_is_away_and_comes_back_finds_every_pod_as_it_was(
    lab: Cluster, place: Desk, tmp_path: Path
) -> None:
    with Operator(lab, tmp_path) as operator:
        place.apply(topology=SMALL, replicas=2)
        assert place.says("Ready", "True", "Serving")
        before = {one["metadata"]["uid"] for one in place.pods()}
        lab.processes.pause("kube-apiserver")
        time.sleep(15)
        lab.processes.resume("kube-apiserver")
        place.apply(topology=SMALL, replicas=3)
        assert eventually(lambda: place.get()["status"].get("ready") == "3/3")
        assert before < {one["metadata"]["uid"] for one in place.pods()}
        assert operator.process.poll() is None
        assert operator.rests()


def test_an_api_server_that_knows_nobody_for_a_while_ends_no_operator_and_is_no_fault_of_a_resource(
    lab: Cluster, place: Desk, tmp_path: Path
) -> None:
    """As one does that cannot look tokens up. Neither the token nor what a login reads changes meanwhile."""
    with through(lab, tmp_path) as (operator, proxy):
        place.apply(topology=SMALL)
        assert place.says("Ready", "True", "Serving")
        before = {one["metadata"]["uid"] for one in place.pods()}
        with proxy.add(Answer(401)):
            proxy.cut_watches()
            place.apply(topology=SMALL, replicas=2)
            time.sleep(3 * RENEW_SECONDS)
            assert operator.process.poll() is None, operator.tail()
        assert eventually(lambda: place.get()["status"].get("ready") == "2/2", LONG_SECONDS), operator.tail()
        with proxy.add(Answer(401), Where(verbs={"watch"}, resources={names.PLURAL}), times=4) as watches:
            proxy.cut_watches()
            assert eventually(lambda: watches.hits == 4)
        with proxy.add(Answer(401), Where(verbs=WRITES, resources={"deployments"})) as writes:
            there = place.apply(topology=SMALL, replicas=3)["metadata"]["generation"]
            assert eventually(lambda: place.get()["status"].get("observedGeneration") == there)
            assert writes.hits > 0
            assert place.condition("Stalled")[0] != "True", place.get()["status"]
        assert eventually(lambda: place.get()["status"].get("ready") == "3/3", LONG_SECONDS)
        assert before < {one["metadata"]["uid"] for one in place.pods()}
        assert operator.process.poll() is None
        assert operator.rests()


def test_who_is_asked_to_end_in_the_midst_of_turns_while_no_call_is_answered_ends_and_the_next_one_goes_on(
    lab: Cluster, place: Desk, tmp_path: Path
) -> None:
    with through(lab, tmp_path) as (operator, proxy):
        place.apply("kept", topology=SMALL)
        assert place.says("Ready", "True", "Serving", "kept")
        with proxy.add(Hang()) as hangs:
            place.apply("new", topology=SMALL)
            assert eventually(lambda: hangs.hits > 0 and operator.metric("plimsoll_turns_running") > 0)
            operator.stop()
        said = operator.log.read_text()
        assert "cut off" in said
        assert "Timeout (" not in said, "each part ended by itself, before the last resort"
        operator.start()
        assert place.says("Ready", "True", "Serving", "new")
        assert operator.rests()


def test_of_two_operators_one_acts_and_the_other_takes_over_when_it_is_killed(
    lab: Cluster, place: Desk, tmp_path: Path
) -> None:
    args = ("--lease-namespace=default",)
    folders = [tmp_path / name for name in ("first", "second")]
    for folder in folders:
        folder.mkdir()
    with Operator(lab, folders[0], args=args) as first, Operator(lab, folders[1], args=args) as second:
        place.apply("one", topology=SMALL)
        assert place.says("Ready", "True", "Serving", "one")
        leader = first if first.metric("plimsoll_leads") else second
        other = second if leader is first else first
        assert (leader.metric("plimsoll_leads"), other.metric("plimsoll_leads")) == (1.0, 0.0)
        assert other.metric("plimsoll_turns_total") == 0
        mark = lab.audit.mark()
        place.apply("two", topology=SMALL)
        assert eventually(lambda: "two" in str(place.deployments()))
        leader.stop(signal.SIGKILL)
        assert place.says("Ready", "True", "Serving", "two")
        assert eventually(lambda: other.metric("plimsoll_leads") == 1.0)
        made = [
            entry.call.name
            for entry in lab.audit.entries(Where(verbs=WRITES, namespace=place.namespace), since=mark)
            if entry.call.manager == names.MANAGER_CHILDREN
            and entry.code == 201
            and entry.call.resource in ("deployments", "controllerrevisions", "services")
        ]
        assert len(made) == 3, f"each child of the second resource is made once: {made}"
        assert other.rests()
