"""The operator scales and retunes on what a real Prometheus says of simulated replicas."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from cluster import Cluster
from cluster.metrics import MetricsServer, Prometheus
from common import eventually
from plimsoll import names
from turns.running import Desk, Operator
from turns.traffic import Traffic

SCALED: Final[dict[str, Any]] = {
    "topology": {"gpuProducts": ["H100-SXM-80GB"]},
    "workload": {"contextTokens": 8192},
    "engine": {"maxSequences": 64},
    "scaling": {"min": 1, "max": 4, "upWindowSeconds": 1, "downWindowSeconds": 3},
}


@contextmanager
def watched(place: Desk, folder: Path, **config: Any) -> Iterator[tuple[Traffic, Prometheus, Operator]]:
    """An operator that asks a Prometheus, which scrapes the pages that stand for the pods of a desk."""
    with (
        MetricsServer() as server,
        place.cluster.prometheus(
            namespaces=[place.namespace],
            selector=f"{names.LABEL_LEADER}=true",
            port="http",
            stand_in=server.address,
        ) as prom,
        Traffic(server, place.pods) as traffic,
    ):
        file = folder / "admin.json"
        said = {"apiVersion": names.API_VERSION, "kind": names.CONFIG_KIND, "prometheusUrl": prom.url}
        file.write_text(json.dumps({**said, "control": {"intervalSeconds": 1}, **config}))
        with Operator(place.cluster, folder, args=("--standalone", "--config", str(file))) as operator:
            yield traffic, prom, operator


def wanted(desk: Desk) -> int:
    return sum(desk.deployments().values())


def test_replicas_follow_the_load_within_their_bounds_and_stay_while_nobody_can_say(
    place: Desk, tmp_path: Path
) -> None:
    with watched(place, tmp_path) as (traffic, prom, operator):
        traffic.inflight = 8
        place.apply(**SCALED)
        assert place.says("Ready", "True", "Serving")
        assert place.says("MetricsAvailable", "True", "Fresh")
        assert wanted(place) == 1
        traffic.inflight = 400
        assert eventually(lambda: wanted(place) == 4)
        assert place.says("Ready", "True", "Serving")
        assert place.says("ScalingLimited", "True", "AtMax")
        prom.processes.kill("prometheus")
        assert place.says("MetricsAvailable", "False", "PrometheusUnreachable")
        traffic.inflight = 8
        operator.stop()
        operator.start()
        ticks = operator.metric("plimsoll_control_ticks_total")
        assert eventually(lambda: operator.metric("plimsoll_control_ticks_total") >= ticks + 5)
        assert wanted(place) == 4, "nothing goes while nobody can say"
        prom.processes.restart("prometheus")
        assert eventually(lambda: wanted(place) < 4)
        status = place.get()["status"]
        assert status["scalingHistory"][0]["reason"] == "LoadFell"
        assert status["scalingHistory"][-1]["reason"] in {"LoadRose", "Panic"}
