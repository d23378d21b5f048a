"""`plimsoll simulate` from end to end: a resource, a fleet and a trace in, figures and reasons out."""

import json
import re
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import yaml

from plimsoll import names
from plimsoll.cli.simulate_clock import ticks
from plimsoll.cli.simulate_page import SHEET
from plimsoll.simulate.compare import Comparison, Result
from plimsoll.simulate.fidelity import belief_error, brief_error
from plimsoll.simulate.policies.registry import KINDS
from tests.cli.running import Ran, plimsoll
from tests.cli.test_plan import resource

SPEC: Any = {
    "workload": {
        "inputTokens": {"p50": 500, "p95": 1500},
        "outputTokens": {"p50": 100, "p95": 300},
        "contextTokens": 8192,
    },
    "slo": {"ttftP99Ms": 2000, "itlP99Ms": 100},
    "scaling": {"min": 1, "max": 6},
}


@pytest.fixture
def llm(tmp_path: Path) -> str:
    file = tmp_path / "llm.yaml"
    file.write_text(resource("chat", **SPEC))
    return str(file)


@pytest.fixture
def rates(tmp_path: Path) -> str:
    file = tmp_path / "rates.csv"
    rows = [(0, 10), (300, 10), (600, 60), (900, 60), (1200, 10)]
    file.write_text("t_s,rate_rps,cv\n" + "".join(f"{at},{rate},1.2\n" for at, rate in rows))
    return str(file)


@pytest.fixture
def requests(tmp_path: Path) -> str:
    file = tmp_path / "requests.csv"
    rows = "".join(f"{place * 0.2:.1f},{300 + place % 500},{50 + place % 100}\n" for place in range(2000))
    file.write_text("arrival_s,input_tokens,output_tokens\n" + rows)
    return str(file)


def simulated(llm: str, trace: str, *arguments: str, fleet: str = "8xL40S") -> Ran:
    return plimsoll("simulate", "-f", llm, "--fleet", fleet, "--trace", trace, *arguments)


def figures(llm: str, trace: str, *arguments: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(simulated(llm, trace, *arguments, "-o", "json").out)
    return found


def test_text_says_what_was_replayed_what_came_of_it_and_what_it_rests_on(llm: str, rates: str):
    ran = simulated(llm, rates)
    assert (ran.code, ran.err) == (0, "")
    for words in (
        "rates.csv",
        "behind a Service",
        "behind an InferencePool",
        "1 to 6 replicas; it begins with 2, as",
        "static_peak",
        "SLO %",
        "MINUTES <99%",
        "plimsoll keeps slo for",
        "with plimsoll: target 0.7, down_target 0.6",
        "with static_peak: replicas ",
        "ready after 130 s",
    ):
        assert words in ran.out
    assert brief_error() in " ".join(ran.out.split())
    assert "hindsight" in ran.out
    notes = ran.out[ran.out.index("\n  note ") :].split("\n  note ")[1:]
    assert max(note.count("\n") for note in map(str.strip, notes)) < 2, "two lines at most"
    assert belief_error() in figures(llm, rates, "--routing", "service")["notes"]


def test_a_budget_bounds_the_replicas_and_what_is_not_simulated_is_said(requests: str, tmp_path: Path):
    file, admin = tmp_path / "llm.yaml", tmp_path / "admin.yaml"
    sleepy = {"max": 6, "zero": {"wake": {"annotation": True}}}
    file.write_text(resource("chat", **{**SPEC, "scaling": sleepy}))
    budget = {"namespace": "default", "gpus": 2, "priority": 5}
    config = {"apiVersion": names.API_VERSION, "kind": names.CONFIG_KIND, "budgets": [budget]}
    admin.write_text(yaml.safe_dump(config))
    said = " ".join(simulated(str(file), requests, "--config", str(admin)).out.split())
    assert "0 to 2 replicas" in said
    assert "the namespace's budget allows 2 replicas" in said
    assert "whose priority goes first, is not simulated" in said
    assert "requests are taken to be held in front of them" in said
    file.write_text(resource("chat", **{**SPEC, "scaling": sleepy, "replicas": 1}))
    awake = " ".join(simulated(str(file), requests).out.split())
    assert (
        "the plan warns: scaling.zero has no effect: spec.replicas holds 1. What helps: leave replicas"
        in awake
    )
    file.write_text(resource("chat", **{**SPEC, "scaling": {"min": 3, "max": 6}}))
    short = " ".join(simulated(str(file), requests, "--config", str(admin)).out.split())
    assert "2 replicas, no more and no fewer" in short, "less than the resource asks for"
    file.write_text(resource("chat", **SPEC))
    alone = " ".join(simulated(str(file), requests).out.split())
    assert "1 to 6 replicas" in alone
    assert "budget" not in alone
    assert "retune" not in alone
    config["budgets"] = [{**budget, "gpus": 0}]
    admin.write_text(yaml.safe_dump(config))
    none = simulated(str(file), requests, "--config", str(admin))
    assert none.code == 2
    assert "a larger budgets.gpus in the admin's config" in none.err


@pytest.mark.parametrize(
    ("wake", "told"),
    [
        ({"annotation": True}, "whoever does writes the annotation"),
        ({"query": "held"}, "zero.wake.query is taken"),
    ],
)
def test_a_deployment_that_may_sleep_does_and_who_waited_for_it_is_told(
    wake: dict[str, Any], told: str, tmp_path: Path
):
    file, trace, page = tmp_path / "llm.yaml", tmp_path / "rates.csv", tmp_path / "out.html"
    zero = {"wake": wake, "afterSeconds": 300}
    file.write_text(resource("chat", **{**SPEC, "scaling": {"max": 6, "zero": zero}}))
    trace.write_text("t_s,rate_rps\n0,1\n300,0\n3000,1\n3300,0\n")
    ran = simulated(str(file), str(trace), "--html", str(page))
    said = " ".join(ran.out.split())
    assert "0 to 6 replicas" in said
    assert "HOURS ASLEEP" in said
    assert "plimsoll 1 time" in said
    assert "waited for it to wake" in said
    assert "while requests waited for it to wake" in said, "why they were late"
    assert told in said
    assert "Woken" in said
    assert "HOURS ASLEEP" in page.read_text()
    data = figures(str(file), str(trace), "--routing", "service")
    assert data["zero"] == {"afterS": 300.0, "wake": next(iter(wake))}
    ours, constant = data["results"]
    assert ours["sleep"]["times"] == 1
    assert ours["sleep"]["gpu_hours_saved"] == pytest.approx(ours["sleep"]["hours"])
    assert ours["figures"]["gpu_hours"] < constant["figures"]["gpu_hours"]
    assert constant["sleep"]["times"] == constant["sleep"]["waited"] == 0


def test_a_fleet_of_two_kinds_is_told_by_set_with_hours_and_money(tmp_path: Path):
    """Two of the planned kind are not enough for what the resource allows, so another one stands by."""
    file, trace, page = tmp_path / "llm.yaml", tmp_path / "rates.csv", tmp_path / "out.html"
    file.write_text(resource("chat", **SPEC))
    few = {
        "name": "h100",
        "gpuProduct": "H100-SXM-80GB",
        "gpusPerNode": 2,
        "nodes": 1,
        "pricePerHour": "5.90",
    }
    beside = {"name": "l40s", "gpuProduct": "L40S-48GB", "gpusPerNode": 4, "nodes": 2, "pricePerHour": "6.40"}
    fleet = {
        "apiVersion": names.API_VERSION,
        "kind": "Fleet",
        "pools": [{"cpu": "96", "memory": "768Gi", **one} for one in (few, beside)],
        "config": {"prices": {"currency": "USD"}},
    }
    (tmp_path / "fleet.yaml").write_text(yaml.safe_dump(fleet))
    trace.write_text("t_s,rate_rps\n0,10\n300,70\n900,70\n")
    asked = ("simulate", "-f", str(file), "--snapshot", str(tmp_path / "fleet.yaml"), "--trace", str(trace))
    ran = plimsoll(*asked, "--routing", "inferencepool", "--policy", "plimsoll", "--html", str(page))
    said = " ".join(ran.out.split())
    assert (
        "tp1 on H100-SXM-80GB (room for 2) and tp1 on L40S-48GB (room for 8; stands by), 1 to 6 replicas"
        in said
    )
    assert "beside it once the sets before find no more devices" in said
    assert len(re.findall(r"plimsoll tp1 on \S+ [\d.]+ \(up to \d+\) [\d.]+ [\d.]+ USD", said)) == 2
    assert "Replicas that are ready, by set" in page.read_text()
    data = json.loads(
        plimsoll(*asked, "--routing", "inferencepool", "-o", "json", "--policy", "plimsoll").out
    )
    assert [one["standsBy"] for one in data["sets"]] == [False, True]
    ours = data["results"][0]
    assert sum(one["gpu_hours"] for one in ours["sets"]) == pytest.approx(ours["figures"]["gpu_hours"])
    assert [one["cost"] / one["gpu_hours"] for one in ours["sets"]] == pytest.approx([2.95, 1.6])
    assert all(one["answered"] > 0 for one in ours["sets"])


def test_json_holds_figures_timelines_and_actions_with_reasons(llm: str, rates: str):
    data = figures(llm, rates, "--routing", "service")
    assert data["headline"] == "service"
    ours = data["results"][0]
    assert (ours["policy"], ours["routing"]) == ("plimsoll", "service")
    assert ours["figures"]["requests"] == data["trace"]["requests"] > 40_000
    assert (ours["timeline"][0]["at"], ours["timeline"][0]["ready"]) == (0, data["beginsWith"])
    assert all(action["reason"] and action["message"] for action in ours["actions"])


def test_the_same_seed_is_the_same_world_in_any_form_and_another_one_another(llm: str, requests: str):
    one = figures(llm, requests, "--seed", "1")
    assert yaml.safe_load(simulated(llm, requests, "--seed", "1", "-o", "yaml").out) == one
    assert figures(llm, requests, "--seed", "2") != one


def test_all_policies_can_be_asked_for_and_only_some(llm: str, requests: str):
    def policies(*names: str) -> list[str]:
        asked = [word for name in names for word in ("--policy", name)]
        found = figures(llm, requests, "--routing", "inferencepool", *asked)["results"]
        return [one["policy"] for one in found]

    assert policies("all") == list(KINDS)
    assert policies("hpa", "oracle") == ["hpa", "oracle"]


def test_the_page_is_whole_in_itself(llm: str, rates: str, tmp_path: Path):
    page = tmp_path / "out.html"
    assert simulated(llm, rates, "--html", str(page)).code == 0
    text = page.read_text()
    seen: list[str] = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
            seen.append(tag)
            assert not {"src", "href"} & {name for name, _ in attributes}

    Reader().feed(text)
    assert seen.count("svg") == 12
    assert "script" not in seen
    assert "plimsoll keeps slo for" in text
    assert "<h2>plimsoll (target 0.7, down_target 0.6), behind a Service" in text
    assert belief_error() in unescape(text)
    numbers = [
        float(one) for path in re.findall(r' d="([^"]+)"', text) for one in re.findall(r"[\d.]+", path)
    ]
    assert numbers
    assert all(0 <= one <= SHEET.width for one in numbers)
    assert "nan" not in text.replace("hindsight", "").split("</style>")[1].lower()
    assert "http" not in text.replace("http-equiv", "")


@pytest.mark.parametrize(
    ("span_s", "count", "step"),
    [
        (1.0, 1, 1),
        (61.0, 4, 15),
        (3500.0, 6, 600),
        (43200.0, 6, 7200),
        (7 * 86400.0, 7, 86400),
        (100 * 86400.0, 8, 12 * 86400),
    ],
)
def test_the_axis_is_marked_at_times_that_people_count_in(span_s: float, count: int, step: int):
    marks = list(ticks(span_s))
    assert (len(marks), marks[0]) == (count, 0)
    assert all(mark % step == 0 for mark in marks)
    assert marks[-1] < span_s


def test_only_a_part_of_a_trace_is_replayed(llm: str, rates: str):
    part = figures(llm, rates, "--from-day", "0.00694444", "--days", "0.003472222")["trace"]
    assert part["spanS"] == pytest.approx(300, abs=1)
    assert part["meanRps"] == pytest.approx(60, rel=0.1)


def test_more_traffic_is_a_factor(llm: str, requests: str):
    assert figures(llm, requests, "--scale", "0.5")["trace"]["requests"] == pytest.approx(1000, rel=0.1)


def test_a_trace_that_is_not_there_is_told(llm: str):
    ran = simulated(llm, "none.csv")
    assert (ran.code, ran.out) == (3, "")
    assert "none.csv: cannot be read" in ran.err


def test_a_plan_that_does_not_fit_is_told_with_its_reason(requests: str, tmp_path: Path):
    file = tmp_path / "big.yaml"
    file.write_text(resource("big", "meta-llama/Llama-3.3-70B-Instruct"))
    ran = simulated(str(file), requests, fleet="1xL4")
    assert ran.code == 2
    assert "error: default/big: the plan does not fit, so nothing would run: model.source (hf://" in ran.err
    assert ran.err.count("no layout fits") == 1
    file.write_text(resource("none", "Qwen/Nope-8B"))
    ran = simulated(str(file), requests)
    assert ran.code == 3
    assert "error: default/none: the plan is invalid, so nothing would run: model.source (hf://" in ran.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--trace", "none.csv"), "one at a time, and a run for each other one"),
        (("--seed", "first"), "'first' is no whole number"),
        (("--from-day", "3"), "the trace ends after 6.7 minutes"),
        (("--scale", "0.000001"), "nothing arrives"),
        (("--scale", "nan"), "not a number"),
        (("--scale", "twice"), "'twice' is not a valid number"),
        (("--days", "inf"), "--days"),
        (("--html", "/none/out.html"), "cannot be written"),
        (("--html", "-"), "--html -: name a file; what is printed is the report itself"),
        (("--policy", "magic"), "magic"),
        (
            ("--policy", "hpa,keda"),
            "'hpa,keda': give --policy once for each, as in --policy hpa --policy keda",
        ),
    ],
)
def test_what_is_wrong_is_told(llm: str, requests: str, arguments: tuple[str, ...], said: str):
    ran = simulated(llm, requests, *arguments)
    assert ran.code == 3
    assert said in ran.err


def test_a_rate_that_no_machine_holds_is_refused_before_it_is_drawn(llm: str, tmp_path: Path):
    file = tmp_path / "rates.csv"
    file.write_text("t_s,rate_rps\n0,900000\n600,900000\n")
    ran = simulated(llm, str(file))
    assert ran.code == 3
    assert "some 1,080,000,000 requests would be replayed, at most 200,000,000 are" in ran.err
    part = simulated(llm, str(file), "--scale", "0.00001", "--routing", "service", "--policy", "static_peak")
    assert part.code == 0


def test_a_log_that_is_not_in_order_is_replayed_in_order_and_that_is_said(llm: str, tmp_path: Path):
    file = tmp_path / "log.csv"
    file.write_text(
        "startTime,prompt_tokens,completion_tokens\n2026-11-23T10:00:09Z,5,5\n2026-11-23T10:00:00Z,5,5\n"
    )
    ran = simulated(llm, str(file), "--routing", "service", "--policy", "static_peak")
    assert ran.code == 0
    assert "1 line stood after a later one; they are replayed in order of time" in ran.err
    assert "2 requests in 18 seconds" in ran.out


def test_what_to_declare_for_this_traffic_is_said_where_it_would_give_another_plan(tmp_path: Path):
    """What the operator would say after a day of it, before it is deployed."""
    file, requests = tmp_path / "llm.yaml", tmp_path / "requests.csv"
    rows = "".join(f"{place * 1.0:.1f},{3000 + place % 500},{20 + place % 10}\n" for place in range(1200))
    requests.write_text("arrival_s,input_tokens,output_tokens\n" + rows)
    cheap = ("--routing", "service", "--policy", "static_peak")

    def said(inputs: dict[str, int], outputs: dict[str, int]) -> str:
        declared = {
            "inputTokens": inputs,
            "outputTokens": outputs,
            "contextTokens": 8192,
            "requestsPerSecond": "1",
        }
        file.write_text(resource("chat", **{**SPEC, "workload": declared}))
        return " ".join(simulated(str(file), str(requests), *cheap).out.split())

    wrong = said({"p50": 100, "p95": 200}, {"p50": 500, "p95": 900})
    assert "the traffic is not the declared one; with inputTokens p50 3200, p95 3500" in wrong
    assert "in spec.workload the plan would be" in wrong
    assert "max_num_seqs 5 instead of 256" in wrong
    assert "not the declared one" not in said({"p50": 3200, "p95": 3500}, {"p50": 25, "p95": 29})


def test_a_simulation_that_is_stopped_tells_what_was_done_by_then(
    llm: str, requests: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    best, page = Comparison.best, tmp_path / "out.html"

    def until(name: str) -> None:
        def stopped(self: Comparison, asked: str) -> Result:
            if asked == name:
                raise KeyboardInterrupt
            return best(self, asked)

        monkeypatch.setattr(Comparison, "best", stopped)

    until("static_peak")
    ran = simulated(llm, requests, "--html", str(page))
    assert ran.code == 130
    missing = "static_peak behind service, plimsoll behind inferencepool, static_peak behind inferencepool"
    assert f"stopped before its end; missing: {missing}" in " ".join(ran.out.split())
    assert "stopped before its end" in page.read_text()
    asked = ("--routing", "service", "-o", "json")
    assert json.loads(simulated(llm, requests, *asked).out)["missing"] == [
        {"routing": "service", "policy": "static_peak"}
    ]
    until("plimsoll")
    page.unlink()
    assert simulated(llm, requests, "--html", str(page)).code == 130
    assert not page.exists()
    assert simulated(llm, requests, "--html", str(page), "--scale", "0.000001").code == 3
    assert not page.exists()
    page.write_text("an older one")
    nothing = simulated(llm, requests, "--html", str(page))
    assert (nothing.code, nothing.out) == (130, "")
    assert nothing.err.strip() == "note: stopped by Ctrl-C before there was an answer"
    assert page.read_text() == "an older one"
