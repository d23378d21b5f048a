"""Two pools of different GPUs and prices under one deployment, which the operator scales by what a real Prometheus says of both."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from cluster.fleet import Fleet, fleet_of
from common import LONG_SECONDS, eventually
from plimsoll import names
from turns.running import Desk
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


def two_pools() -> Fleet:
    machine = {"nodes": 1, "cpu": "192", "memory": "2Ti"}
    pools = [
        {"name": name.lower(), "gpuProduct": PRODUCTS[name], "gpusPerNode": gpus, **machine}
        for name, gpus in ((CHEAP, 2), (DEAR, 3))
    ]
    return fleet_of("two-pools", {"apiVersion": names.API_VERSION, "kind": "Fleet", "pools": pools})


def by_gpu(place: Desk) -> dict[str, int]:
    """Replicas that are asked for on the GPUs of each pool."""
    found = dict.fromkeys(PRODUCTS, 0)
    for one in place.items("apps/v1/deployments"):
        (gpu,) = (name for name in PRODUCTS if name in json.dumps(one["spec"]["template"]["spec"]))
        found[gpu] += one["spec"]["replicas"]
    return found


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
        status = place.get()["status"]
        told = {one["pool"].split("-")[0]: (one["replicas"], one["ready"]) for one in status["sets"]}
        assert told == {CHEAP: (2, 2), DEAR: (2, 2)}
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
