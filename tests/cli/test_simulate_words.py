"""What the lines of a simulation's report say of the plan, so that no two of them are read against each other."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_plan import resource
from tests.cli.test_simulate import SPEC, simulated

CHEAP = ("--routing", "service", "--policy", "static_peak")


@pytest.fixture
def requests(tmp_path: Path) -> str:
    """Two a second for ten minutes, a little longer than is declared."""
    file = tmp_path / "requests.csv"
    rows = "".join(f"{place * 0.5:.1f},{300 + place % 500},{50 + place % 100}\n" for place in range(1200))
    file.write_text("arrival_s,input_tokens,output_tokens\n" + rows)
    return str(file)


def said(folder: Path, trace: str, *arguments: str, fleet: str = "8xL40S", **spec: Any) -> str:
    """The report, whatever the width of its lines."""
    file = folder / "llm.yaml"
    file.write_text(resource("chat", **{**SPEC, **spec}))
    ran = simulated(str(file), trace, *(arguments or CHEAP), fleet=fleet)
    assert ran.code == 0, ran.err
    return " ".join(ran.out.split())


def test_what_a_replica_carries_is_not_what_it_answers_at_the_load_that_is_planned(
    tmp_path: Path, requests: str
):
    quiet = said(tmp_path, requests, workload={**SPEC["workload"], "concurrency": 2})
    told = re.search(
        r"planned up to ([\d.]+) typical requests/s a replica within slo, ([\d.]+) at the load that is planned; seed 1",
        quiet,
    )
    assert told is not None
    assert float(told[1]) > 2 * float(told[2])
    assert " within slo" not in re.findall(r"planned [^;]*;", said(tmp_path, requests, slo={}))[0]


def test_what_a_replica_carries_is_not_said_to_be_within_limits_that_it_cannot_keep(
    tmp_path: Path, requests: str
):
    text = said(tmp_path, requests, slo={"ttftP99Ms": 5})
    assert "the plan warns: no layout on these GPUs keeps slo.ttftP99Ms 5" in text
    assert " within slo" not in re.findall(r"planned [^;]*;", text)[0]


def declared(**changes: Any) -> dict[str, Any]:
    return {**SPEC["workload"], "inputTokens": {"p50": 100, "p95": 200}, "contextTokens": 8192, **changes}


def test_the_number_of_a_better_plan_is_not_to_be_read_against_the_number_that_this_trace_took(
    tmp_path: Path, requests: str
):
    text = said(tmp_path, requests, workload=declared())
    assert (
        "; its 1 replica is by formulas, for that load without its bursts; the 1 replica of static_peak is the present plan's, on this trace "
        "with its bursts"
    ) in text


def test_without_scaling_max_the_number_of_a_better_plan_is_said_to_stay(tmp_path: Path, requests: str):
    text = said(tmp_path, requests, workload=declared(), scaling={"min": 1})
    assert "with its bursts; without scaling.max the number of the plan stays" in text


def test_a_better_plan_under_a_number_that_a_person_fixed_has_no_number_of_its_own(
    tmp_path: Path, requests: str
):
    text = said(tmp_path, requests, workload=declared(), replicas=1, scaling={})
    assert "the plan would be 1 x " in text
    assert "by formulas" not in text


@pytest.mark.parametrize(
    ("tokens", "context", "why"),
    [
        (60_000, 60_648, "workload.contextTokens is 60,648, but the model is made for 40,960 tokens"),
        (
            38_000,
            38_648,
            "model.source (hf://Qwen/Qwen3-8B): no layout fits these devices; nearest is tp1 on L4-24GB",
        ),
    ],
)
def test_that_nothing_would_run_for_the_traffic_as_it_came_is_said_with_what_it_would_be_declared_as(
    tmp_path: Path, tokens: int, context: int, why: str
):
    trace = tmp_path / "long.csv"
    rows = "".join(f"{place * 2.0:.1f},{tokens + place % 500},{50 + place % 100}\n" for place in range(1200))
    trace.write_text("arrival_s,input_tokens,output_tokens\n" + rows)
    text = said(tmp_path, str(trace), *CHEAP, fleet="1xL4")
    told = f"so the traffic is not the declared one, and with contextTokens {context}, inputTokens p50 "
    assert told in text
    assert f'requestsPerSecond "0.5" in spec.workload nothing would run: {why}' in text


def test_a_resource_that_generates_nothing_is_no_question_of_room_and_what_can_be_simulated_is_said(
    tmp_path: Path, requests: str
):
    file = tmp_path / "embeddings.yaml"
    file.write_text(resource("found", "BAAI/bge-m3"))
    ran = simulated(str(file), requests)
    assert (ran.code, ran.out) == (3, "")
    assert ran.err.strip() == (
        "error: default/found: generates nothing, and only resources whose model.task is generate are simulated; plimsoll plan tells what a "
        "replica of it carries"
    )
