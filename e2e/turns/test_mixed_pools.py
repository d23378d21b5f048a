"""Two pools of different GPUs and prices under one deployment, which the operator scales by what a real Prometheus says of both."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from cluster import Cluster
from cluster.api import ApiError
from cluster.fleet import PLACEHOLDER, Fleet, fleet_of
from common import LONG_SECONDS, eventually
from plimsoll import names
from turns.grouping import uids, waits_since_long_ago
from turns.running import Desk, Operator
from turns.test_scaling import history
from turns.watching import SCALED, watched

CHEAP: Final = "L40S"
DEAR: Final = "A100"
PRODUCTS: Final = {CHEAP: "L40S-48GB", DEAR: "A100-SXM-80GB"}
PRICES: Final = [
    {"product": PRODUCTS[CHEAP], "perHour": "0.90"},
    {"product": PRODUCTS[DEAR], "perHour": "8.00"},
]
EITHER: Final[dict[str, Any]] = {
    **SCALED,
    "topology": {"gpuProducts": list(PRODUCTS.values()), "tensor": 1},
}
MUCH: Final = 60.0
"""Enough for more replicas than there may be."""


def two_pools(cheap: int = 2) -> Fleet:
    """`cheap`: GPUs of the cheaper kind."""
    machine = {"nodes": 1, "cpu": "192", "memory": "2Ti"}
    pools = [
        {"name": name.lower(), "gpuProduct": PRODUCTS[name], "gpusPerNode": gpus, **machine}
        for name, gpus in ((CHEAP, cheap), (DEAR, 3))
    ]
    return fleet_of("two-pools", {"apiVersion": names.API_VERSION, "kind": "Fleet", "pools": pools})


@contextmanager
def crowded(cluster: Cluster) -> Iterator[Callable[[], None]]:
    """Somebody's pods have all the CPU where the cheaper GPUs are: those are free, and no node takes a pod that asks for one. What is
    yielded ends that before the `with` does."""
    (node,) = (
        one["metadata"]["name"]
        for one in cluster.api.items("/api/v1/nodes")
        if one["metadata"]["name"].startswith(CHEAP.lower())
    )
    asks = {"requests": {"cpu": "192"}}
    body = {
        "metadata": {"generateName": "crowd-", "namespace": "default"},
        "spec": {
            "nodeName": node,
            "tolerations": [{"operator": "Exists"}],
            "containers": [{"name": "main", "image": PLACEHOLDER, "resources": asks}],
        },
    }
    pods = "/api/v1/namespaces/default/pods"
    name = cluster.api.create(pods, body)["metadata"]["name"]

    def leaves() -> None:
        cluster.api.delete(f"{pods}/{name}?gracePeriodSeconds=0")

    try:
        yield leaves
    finally:
        with suppress(ApiError):
            leaves()


def by_gpu(place: Desk) -> dict[str, int]:
    """Replicas that are asked for on the GPUs of each pool."""
    found = dict.fromkeys(PRODUCTS, 0)
    for one in place.items("apps/v1/deployments"):
        (gpu,) = (name for name in PRODUCTS if name in json.dumps(one["spec"]["template"]["spec"]))
        found[gpu] += one["spec"]["replicas"]
    return found


def ready_by_gpu(place: Desk) -> dict[str, tuple[int, int]]:
    """Replicas as the status tells them: how many are asked for in each pool, and how many of them serve."""
    sets = place.get()["status"]["sets"]
    return {one["pool"].split("-")[0]: (one["replicas"], one["ready"]) for one in sets}


def cheapest_first(place: Desk, reached: Callable[[dict[str, int]], bool]) -> bool:
    """Whether it comes to that, with nothing on the dearer GPUs while the cheaper ones have room."""
    wrong: list[dict[str, int]] = []

    def there() -> bool:
        now = by_gpu(place)
        if now[DEAR] and now[CHEAP] < 2:
            wrong.append(now)
        return bool(wrong) or reached(now)

    assert eventually(there, LONG_SECONDS), by_gpu(place)
    return not wrong


def test_the_cheaper_pool_grows_first_and_the_dearer_one_goes_first_through_an_operator_that_is_killed(
    place: Desk, tmp_path: Path
) -> None:
    prices = {"gpuHour": PRICES}
    with (
        place.cluster.fleet(two_pools()),
        watched(place, tmp_path, prices=prices) as (traffic, _, operator),
    ):
        traffic.inflight = 1
        place.apply(**EITHER)
        assert place.says("Ready", "True", "Serving")
        assert place.says("MetricsAvailable", "True", "Fresh")
        assert by_gpu(place) == {CHEAP: 1, DEAR: 0}
        traffic.inflight = MUCH
        assert cheapest_first(place, lambda now: now[DEAR] > 0), operator.tail()
        operator.stop(signal.SIGKILL)
        operator.start()
        assert cheapest_first(place, lambda now: now == {CHEAP: 2, DEAR: 2}), operator.tail()
        assert place.says("Ready", "True", "Serving")
        assert place.says("ScalingLimited", "True", "AtMax")
        assert place.says("MetricsAvailable", "True", "Fresh"), "of the replicas of both"
        # It serves before the last of them does.
        assert eventually(lambda: ready_by_gpu(place) == {CHEAP: (2, 2), DEAR: (2, 2)}), operator.tail()
        status = place.get()["status"]
        assert (status["ready"], status["plan"]["costPerHour"]) == ("4/4", "17.8")
        row = place.cluster.kubectl("-n", place.namespace, "get", "llm", "chat", "--no-headers").stdout
        assert "4/4" in row
        assert all(product in row for product in PRODUCTS.values())

        served = {one["metadata"]["uid"] for one in place.pods()}
        operator.restart()
        assert eventually(lambda: operator.metric("plimsoll_control_ticks_total") >= 5)
        assert {one["metadata"]["uid"] for one in place.pods()} == served
        traffic.inflight = 1
        assert cheapest_first(place, lambda now: now == {CHEAP: 1, DEAR: 0}), operator.tail()
        assert place.says("Ready", "True", "Serving")
        assert eventually(lambda: place.get()["status"]["plan"]["costPerHour"] == "0.9")
        assert place.get()["status"]["plan"]["gpu"] == PRODUCTS[CHEAP]
        decisions = [one for one in history(place)["decisions"] if one["what"] == "scale"]
        assert decisions[0]["after"] == "1"
        assert max(int(one["after"]) for one in decisions) == 4
        assert {one["reason"] for one in decisions} <= {"LoadRose", "Panic", "LoadFell"}


def unplaced(place: Desk) -> int:
    return sum(not one["spec"].get("nodeName") for one in place.pods())


def stays(place: Desk, operator: Operator, where: dict[str, int]) -> bool:
    """Whether nothing moves in many looks."""
    there, ticks = uids(place), operator.metric("plimsoll_control_ticks_total")
    moved: list[dict[str, int]] = []

    def over() -> bool:
        now = by_gpu(place)
        if now != where or uids(place) != there:
            moved.append(now)
        return bool(moved) or operator.metric("plimsoll_control_ticks_total") >= ticks + 20

    return eventually(over, LONG_SECONDS) and not moved


def scaled(place: Desk) -> list[tuple[str, str, str]]:
    """Every decision about the number of replicas, the first one first: from, to and why."""
    told = (one for one in reversed(history(place)["decisions"]) if one["what"] == "scale")
    return [(one["before"], one["after"], one["reason"]) for one in told]


def test_what_no_node_of_the_cheaper_pool_takes_is_had_from_the_dearer_one_and_nothing_moves_back(
    place: Desk, tmp_path: Path
) -> None:
    most = {**EITHER, "scaling": {**SCALED["scaling"], "max": 3}}
    with (
        place.cluster.fleet(two_pools(cheap=4)),
        watched(place, tmp_path, prices={"gpuHour": PRICES}) as (traffic, _, operator),
    ):
        traffic.inflight = 1
        place.apply(**most)
        assert place.says("Ready", "True", "Serving", patience=LONG_SECONDS)
        assert place.says("MetricsAvailable", "True", "Fresh", patience=LONG_SECONDS)
        with crowded(place.cluster) as leaves:
            traffic.inflight = MUCH
            assert eventually(lambda: by_gpu(place) == {CHEAP: 3, DEAR: 0}, LONG_SECONDS), operator.tail()
            assert eventually(lambda: unplaced(place) == 2, LONG_SECONDS)
            waits_since_long_ago(place, 2)
            assert eventually(lambda: by_gpu(place) == {CHEAP: 1, DEAR: 2}, LONG_SECONDS), operator.tail()
            assert place.says("Ready", "True", "Serving", patience=LONG_SECONDS)
            assert place.says("ScalingLimited", "True", "AtMax", patience=LONG_SECONDS)
            assert eventually(lambda: len(place.pods()) == 3, LONG_SECONDS)
            told = scaled(place)
            given_up = [(int(before), int(after)) for before, after, why in told if why == "GPUsUnavailable"]
            assert given_up[0][0] == 3
            assert sum(before - after for before, after in given_up) == 2, (
                "both, in one look or in two: their times are set one after the other"
            )
            assert told[-1][1] == "3"
            leaves()
            assert stays(place, operator, {CHEAP: 1, DEAR: 2})
            assert scaled(place) == told


def test_the_only_replica_moves_to_the_dearer_pool_where_no_node_of_the_cheaper_one_takes_it_and_stays_there(
    place: Desk, tmp_path: Path
) -> None:
    with (
        place.cluster.fleet(two_pools()),
        watched(place, tmp_path, prices={"gpuHour": PRICES}) as (traffic, _, operator),
        crowded(place.cluster) as leaves,
    ):
        traffic.inflight = 1
        place.apply(**EITHER)
        assert eventually(lambda: unplaced(place) == 1, LONG_SECONDS)
        assert by_gpu(place) == {CHEAP: 1, DEAR: 0}
        waits_since_long_ago(place)
        assert place.says("ScalingLimited", "True", "GPUsUnavailable", patience=LONG_SECONDS), operator.tail()
        assert eventually(lambda: by_gpu(place) == {CHEAP: 0, DEAR: 1}, LONG_SECONDS), operator.tail()
        assert place.says("Ready", "True", "Serving", patience=LONG_SECONDS)
        assert scaled(place) == [("1", "1", "GPUsUnavailable")]
        assert eventually(lambda: len(place.pods()) == 1, LONG_SECONDS)
        operator.stop(signal.SIGKILL)
        leaves()
        operator.start()
        assert eventually(lambda: operator.metric("plimsoll_control_ticks_total") > 0, LONG_SECONDS)
        assert stays(place, operator, {CHEAP: 0, DEAR: 1})
        assert scaled(place) == [("1", "1", "GPUsUnavailable")]
