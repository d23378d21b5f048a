"""`plimsoll ramp NAME` on what the operator made: the Service, the plan and the targets are found, and stand-in engines answer
with the arguments that its pods were given."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from plimsoll import names
from plimsoll.planning.plan import Plan
from standin.fleet import Fleet
from standin.told import Told
from turns.running import Desk

LOAD = ("--by=concurrency", "--max=2", "--step-duration=1", "--input-tokens=50", "--output-tokens=20")


@pytest.fixture
def fleet() -> Iterator[Fleet]:
    with Fleet(Told(), gpu="H100-SXM-80GB") as running:
        yield running


def ramp(desk: Desk, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [Path(sys.executable).parent / "plimsoll", "ramp", "chat", "-n", desk.namespace, *LOAD, *args],
        env={**os.environ, "KUBECONFIG": str(desk.cluster.kubeconfig)},  # noqa: TID251 - another process's
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_a_deployment_is_measured_by_its_name_and_held_against_its_plan(desk: Desk, fleet: Fleet) -> None:
    desk.apply(slo={"ttftP99Ms": 2000})
    assert desk.says("Ready", "True", "Serving")
    # Behind simulated pods is no engine, whoever answers at such addresses on this machine.
    refused = ramp(desk)
    assert refused.returncode == 3
    (service,) = desk.items("v1/services")
    assert f"http://{service['spec']['clusterIP']}:80/v1/models" in refused.stderr
    fleet.keep(desk.cluster.api.items(f"/api/v1/namespaces/{desk.namespace}/pods"))
    ((space, pod),) = fleet.pods
    ran = ramp(desk, f"--url=http://{fleet.address}/{space}/{pod}", "-o", "json")
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert found["comparison"]["expected"]["plan"] == f"{desk.namespace}/chat"
    assert [one["name"] for one in found["steps"][0]["result"]["promises"]] == ["ttft"]
    counts = found["steps"][0]["result"]["counts"]
    assert counts["sent"] > counts["failed"] == counts["cut"] == counts["refused"] == 0
    assert found["steps"][0]["engine"]["running_max"] is not None
    (kept,) = [one for one in desk.items("v1/configmaps") if names.PLAN_KEY in one.get("data", {})]
    (chosen,) = Plan.from_bytes(kept["data"][names.PLAN_KEY].encode()).sets
    assert chosen.ledger.capacity is not None
    limits = fleet.tell(space, pod, lambda one: one.told.limits)
    assert limits.blocks == pytest.approx(chosen.ledger.capacity.blocks.mid, rel=0.01), (
        "as the plan's ledger has it"
    )
    assert limits.max_num_seqs == chosen.settings.max_num_seqs
