"""`plimsoll simulate` from end to end: a resource, a fleet and a trace in, figures and reasons out."""

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import yaml

from plimsoll import names
from plimsoll.simulate.fidelity import belief_error
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


def simulated(llm: str, trace: str, *arguments: str) -> Ran:
    return plimsoll("simulate", "-f", llm, "--fleet", "8xL40S", "--trace", trace, *arguments)


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
        "plimsoll",
        "static_peak",
        "SLO %",
        "MINUTES BELOW 99%",
    ):
        assert words in ran.out
    assert "left out" in ran.out
    assert belief_error() in " ".join(ran.out.split())
    assert "hindsight" in ran.out


def test_a_budget_bounds_the_replicas_and_what_is_not_simulated_is_said(requests: str, tmp_path: Path):
    file, admin = tmp_path / "llm.yaml", tmp_path / "admin.yaml"
    sleepy = {"max": 6, "zero": {"wake": {"annotation": True}}}
    file.write_text(resource("chat", **{**SPEC, "scaling": sleepy}))
    budget = {"namespace": "default", "gpus": 2, "priority": 5}
    config = {"apiVersion": names.API_VERSION, "kind": names.CONFIG_KIND, "budgets": [budget]}
    admin.write_text(yaml.safe_dump(config))
    said = " ".join(simulated(str(file), requests, "--config", str(admin)).out.split())
    assert "1 to 2 replicas" in said
    assert "the namespace's budget allows 2 replicas" in said
    assert "whose priority goes first, is not simulated" in said
    assert "here one replica always stays" in said
    file.write_text(resource("chat", **{**SPEC, "scaling": {"min": 3, "max": 6}}))
    short = " ".join(simulated(str(file), requests, "--config", str(admin)).out.split())
    assert "2 to 2 replicas" in short, "less than the resource asks for"
    file.write_text(resource("chat", **{**SPEC, "scaling": sleepy}))
    alone = " ".join(simulated(str(file), requests).out.split())
    assert "1 to 6 replicas" in alone
    assert "budget" not in alone
    assert "the operator may retune what preempts (spec.tuning)" in alone
    file.write_text(resource("chat", **{**SPEC, "tuning": {"mode": "off"}}))
    assert "retune" not in simulated(str(file), requests).out


def test_json_holds_figures_timelines_and_actions_with_reasons(llm: str, rates: str):
    data = figures(llm, rates, "--routing", "service")
    assert data["headline"] == "service"
    ours = data["results"][0]
    assert (ours["policy"], ours["routing"]) == ("plimsoll", "service")
    assert ours["figures"]["requests"] == data["trace"]["requests"] > 40_000
    assert ours["timeline"][0]["at"] == 0
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
    assert seen.count("svg") == 8
    assert "script" not in seen
    assert "http" not in text.replace("http-equiv", "")


def test_only_a_part_of_a_trace_is_replayed(llm: str, rates: str):
    part = figures(llm, rates, "--from-day", "0.00694444", "--days", "0.003472222")["trace"]
    assert part["spanS"] == pytest.approx(300, abs=1)
    assert part["meanRps"] == pytest.approx(60, rel=0.1)


def test_more_traffic_is_a_factor(llm: str, requests: str):
    assert figures(llm, requests, "--scale", "0.5")["trace"]["requests"] == pytest.approx(1000, rel=0.1)


def test_a_plan_that_does_not_fit_is_told_with_its_reason(requests: str, tmp_path: Path):
    file = tmp_path / "big.yaml"
    file.write_text(resource("big", "meta-llama/Llama-3.3-70B-Instruct"))
    ran = simulated(str(file), requests, "--fleet", "1xL4")
    assert ran.code == 2
    assert "default/big" in ran.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--trace", "none.csv"), "none.csv: cannot be read"),
        (("--from-day", "3"), "the trace ends after"),
        (("--scale", "0.000001"), "nothing arrives"),
        (("--html", "/none/out.html"), "cannot be written"),
        (("--policy", "magic"), "magic"),
    ],
)
def test_what_is_wrong_is_told(llm: str, requests: str, arguments: tuple[str, ...], said: str):
    ran = simulated(llm, requests, *arguments)
    assert ran.code == 3
    assert said in ran.err


def test_one_resource_at_a_time(llm: str, requests: str, tmp_path: Path):
    file = tmp_path / "other.yaml"
    file.write_text(resource("other", **SPEC))
    ran = simulated(llm, requests, "-f", str(file))
    assert (ran.code, "one is simulated at a time" in ran.err) == (3, True)
