"""Several deployments that all want more: budgets and priorities hold while they are scaled by their load."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from cluster import Cluster
from cluster.fleet import Fleet, fleet_of
from common import eventually
from plimsoll import names
from plimsoll.reconcile.kept import CONTROL_KEY
from turns.running import Desk
from turns.traffic import Traffic, stand_in
from turns.watching import SCALED, operated, reasons, wanted, watched

MUCH: Final = 60.0
"""Enough for more replicas than there may be."""
SCARCE: Final[dict[str, Any]] = {**SCALED, "topology": {"gpuProducts": ["A100-SXM-80GB"]}}


def three_gpus() -> Fleet:
    pool = {"name": "scarce", "gpuProduct": "A100-SXM-80GB", "nodes": 1, "gpusPerNode": 3}
    machine = {"cpu": "192", "memory": "2Ti"}
    return fleet_of(
        "scarce", {"apiVersion": names.API_VERSION, "kind": "Fleet", "pools": [{**pool, **machine}]}
    )


def on_record(desk: Desk) -> bool:
    """Whether an operator that starts goes on from what another one knew."""
    path = f"/api/v1/namespaces/{desk.namespace}/configmaps/chat-plan"
    return CONTROL_KEY in desk.cluster.api.get(path)["data"]


@pytest.fixture
def important(lab: Cluster) -> Iterator[Desk]:
    """Somebody else's namespace, which goes first."""
    desk = Desk(lab, lab.new_namespace("important"))
    yield desk
    lab.api.delete(f"/apis/{names.API_VERSION}/namespaces/{desk.namespace}/{names.PLURAL}")


def test_a_namespace_grows_with_its_load_up_to_its_budget_and_says_what_keeps_it_there(
    place: Desk, tmp_path: Path
) -> None:
    budget = {"namespace": place.namespace, "gpus": 2}
    with watched(place, tmp_path, budgets=[budget]) as (traffic, _, operator):
        traffic.inflight = 4
        place.apply(**SCALED)
        assert place.says("Ready", "True", "Serving")
        traffic.inflight = MUCH
        assert place.says("ScalingLimited", "True", "BudgetExhausted")
        assert eventually(lambda: wanted(place) == 2)
        ticks = operator.metric("plimsoll_control_ticks_total")
        assert eventually(lambda: operator.metric("plimsoll_control_ticks_total") >= ticks + 5)
        assert wanted(place) == 2
        # Said again and again at each tick, and written once.
        assert reasons(place)[0] in {"LoadRose", "Panic"}
        assert len(reasons(place)) == 1


def test_the_last_gpu_goes_to_the_more_important_though_both_ask_at_once_and_the_other_is_told(
    place: Desk, important: Desk, tmp_path: Path
) -> None:
    both = place, important
    budget = {"namespace": important.namespace, "priority": 10}
    spaces = [one.namespace for one in both]
    with (
        place.cluster.fleet(three_gpus()),
        operated(place.cluster, tmp_path, spaces, budgets=[budget]) as (server, prom, operator),
        Traffic(stand_in(server), place.pods) as here,
        Traffic(stand_in(server), important.pods) as there,
    ):
        here.inflight = there.inflight = 4
        for one in both:
            one.apply(**SCARCE)
        for one in both:
            assert one.says("Ready", "True", "Serving")
        # Who is on record acts at the first look of the next operator, who is not at its second: here both see that both want more.
        assert eventually(lambda: all(on_record(one) for one in both))
        operator.stop(signal.SIGKILL)
        here.inflight = there.inflight = MUCH
        prom.wait_for("vllm:num_requests_running > 50", lambda seen: len(seen) == len(both))
        operator.start()
        assert eventually(lambda: wanted(important) == 2)
        assert important.says("Ready", "True", "Serving")
        assert wanted(place) == 1
        assert place.says("ScalingLimited", "True", "GPUsUnavailable")
        assert place.says("Ready", "True", "Serving")
