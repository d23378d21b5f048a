"""The page draws what users waited for by minute, beside what is promised of it; the JSON form has the same."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from plimsoll.cli.simulate_page import waits
from plimsoll.simulate.latencies import Latency
from tests.cli.test_plan import resource
from tests.cli.test_simulate import SPEC, llm, rates, simulated

__all__ = ["llm", "rates"]
ASKED = ("--routing", "service", "--policy", "plimsoll")
TITLES = ("First token, ms", "Between tokens, ms")


def charts(file: Path) -> dict[str, str]:
    found = re.findall(r"<h3>([^<]*)</h3>(<div class=\"scroll chart\">.*?</div>)", file.read_text())
    return {title.partition(":")[0]: drawn for title, drawn in found}


def test_both_latencies_are_drawn_with_their_limit_as_a_line(llm: str, rates: str, tmp_path: Path):
    file = tmp_path / "out.html"
    assert simulated(llm, rates, *ASKED, "--html", str(file)).code == 0
    drawn = charts(file)
    for title in TITLES:
        assert drawn[title].count('class="line a"') == 1
        assert drawn[title].count('class="target"') == 1


def test_what_is_not_promised_has_no_line_of_a_limit(rates: str, tmp_path: Path):
    llm, file = tmp_path / "llm.yaml", tmp_path / "out.html"
    spec: dict[str, Any] = {**SPEC, "slo": {"ttftP99Ms": 2000}}
    llm.write_text(resource("chat", **spec))
    assert simulated(str(llm), rates, *ASKED, "--html", str(file)).code == 0
    drawn = charts(file)
    assert [drawn[title].count('class="target"') for title in TITLES] == [1, 0]


def seen(*values: float | None) -> list[Latency]:
    return [
        Latency(at=60.0 * place, ttft_p99_ms=value, itl_p99_ms=None) for place, value in enumerate(values)
    ]


@pytest.mark.parametrize(
    ("values", "limit_s", "title", "top"),
    [
        ((300.0, 1500.0), 2.0, "First token, ms: p99 of those answered", 2000.0),
        (
            (300.0, 60_000.0),
            2.0,
            "First token, ms: p99 of those answered, up to 60,000, of which the axis shows 8,000",
            8000.0,
        ),
        ((300.0, 60_000.0), None, "First token, ms: p99 of those answered", 80_000.0),
    ],
    ids=["the limit is above all", "the limit would lie on the floor", "nothing is promised"],
)
def test_the_limit_can_be_seen_beside_what_is_far_above_it(
    values: tuple[float, ...], limit_s: float | None, title: str, top: float
):
    chart = waits("First token, ms: p99 of those answered", seen(*values), "ttft_p99_ms", limit_s, 60.0)
    assert (chart.title, chart.top) == (title, top)
    assert chart.target == (None if limit_s is None else 1000 * limit_s)


def test_minutes_without_an_answer_have_no_curve():
    chart = waits(
        "First token, ms: p99 of those answered", seen(300.0, None, 500.0), "ttft_p99_ms", None, 60.0
    )
    assert chart.lines[0].points == ((0.0, 300.0), (120.0, 500.0))
    assert chart.every_s == 60.0


def test_the_json_form_has_them(llm: str, rates: str):
    (result,) = json.loads(simulated(llm, rates, *ASKED, "-o", "json").out)["results"]
    assert [one["at"] for one in result["latencies"]] == [at for at, _ in result["served"]]
    assert all(set(one) == {"at", "ttft_p99_ms", "itl_p99_ms"} for one in result["latencies"])
