"""`plimsoll ramp` as a user runs it, and the page it writes."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from plimsoll.cli import drawing
from plimsoll.cli.ramp_page import ramp_page
from plimsoll.cli.ramp_plan import expected, from_file
from plimsoll.cli.ramp_report import ramp_report
from plimsoll.load import ramp as ramping
from plimsoll.load.compare import Expected, Range
from plimsoll.load.conclusions import Asked, Ramp, Step, conclude
from plimsoll.load.engine import Look, window
from plimsoll.load.result import data_of
from plimsoll.load.slo import Promise, Slo
from plimsoll.planning import codec
from plimsoll.planning.plan import FleetPlan
from tests.cli.endpoints import listening
from tests.cli.running import plimsoll
from tests.load.known_server import Behaviour
from tests.load.results import result, spread
from tests.planning.asking import QWEN_MOE, deployment, planned, pool

EXAMPLES = Path(__file__).parents[2] / "examples"
PLANNED = ("-f", str(EXAMPLES / "02-chat.yaml"), "--snapshot", str(EXAMPLES / "fleet.yaml"))

EXPECTED = Expected(
    plan="default/chat",
    replicas=2,
    input_tokens=512,
    output_tokens=128,
    in_flight=18,
    ttft_ms=Range(150, 200, 250),
    tpot_ms=Range(10, 12, 14),
    requests_per_second=6.0,
    output_tokens_per_second=768,
    most_in_flight=24,
    seats=64,
    bound="memory",
)


def looks(running: float, waiting: float, kv: float) -> tuple[Look, ...]:
    return tuple(
        Look(running=running, waiting=waiting, kv_usage=kv, preemptions=count * 3.0, finished=count * 40.0)
        for count in range(3)
    )


def ramped(*, interrupted: bool = False) -> Ramp:
    """A knee at 4, a full cache behind it, a target that is missed there."""
    itl = {1: 20.0, 2: 21.0, 4: 24.0, 8: 90.0, 16: 300.0}
    steps = [
        Step(
            load=load,
            result=result(
                per_second=load,
                itl_ms=spread(15, p99),
                promises=(Promise(name="itl", target_ms=50, within=1.0 if p99 < 50 else 0.7),),
            ),
            engine=window(looks(load * 3, 0 if load < 8 else 20, min(1.0, load / 8))),
        )
        for load, p99 in itl.items()
    ]
    asked = Asked(
        url="http://chat:8000",
        model="<b>tiny</b>",
        closed_loop=False,
        input_tokens="512",
        output_tokens="128",
        seed=0,
        slo=Slo(itl=50),
        expected=EXPECTED,
    )
    return conclude(asked, steps, interrupted=interrupted)


def test_everything_that_a_ramp_showed_is_said(capsys: pytest.CaptureFixture[str]):
    drawing.show(ramp_report(ramped()))
    text = re.sub(r"\s+", " ", capsys.readouterr().out)
    for words in (
        "Knee 4 requests/s: 4 requests/s went well; at 8 requests/s p99 ITL rose 3.8 times (24 to 90 ms)",
        "Targets kept up to 4 requests/s (itl 50 ms, for 99 of 100)",
        "Bottleneck too many sequences at 8 requests/s: 6 preemptions for 80 finished requests (7.5%; over 1% holds)",
        "helps: lower max_num_seqs",
        "KV exhausted: too; KV use was 100% at most",
        "prefill too slow: not judged; no TTFT target was given",
        "communication bound: not judged; the plan expects memory to bound a decode step, which nothing measured shows",
        "Plan default/chat, 2 replicas",
        "AT 18 IN FLIGHT",
        "in flight while well 24 12 -50%",
    ):
        assert words in text


class Outside(HTMLParser):
    """Collects what a browser would load from elsewhere, and tags that stay open."""

    def __init__(self) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.loaded += [str(value) for name, value in attrs if name in ("src", "href", "xlink:href")]
        self.loaded += [tag] if tag in ("script", "link", "iframe", "img") else []
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_complete_in_itself_and_well_formed():
    text = ramp_page(ramped())
    page = Outside()
    page.feed(text)
    assert (page.loaded, page.open) == ([], [])
    assert "url(" not in text
    assert "http://" not in text.replace("http://chat:8000", "")


def test_charts_are_no_wider_than_a_narrow_screen():
    text = ramp_page(ramped())
    assert "minmax(min(24rem, 100%), 1fr)" in text
    assert "figure { margin: 0; }" in text


def test_the_page_shows_the_curves_the_knee_the_target_and_escapes_names():
    text = ramp_page(ramped())
    assert text.count("<svg") == 3
    assert text.count('<circle class="a"') == 15
    assert "<b>" not in text
    assert "&lt;b&gt;tiny&lt;/b&gt;: rising load" in text
    for words in (">knee</text>", ">target</text>", "p99 90 ms at 8 requests/s", "too many sequences"):
        assert words in text


def test_a_page_of_nothing_and_of_one_step_can_be_drawn():
    whole = ramped()
    asked = Asked(url="u", model="m", closed_loop=True, input_tokens="1", output_tokens="1", seed=0)
    assert "nothing was measured" in ramp_page(conclude(asked, [], interrupted=True))
    assert "<svg" in ramp_page(conclude(asked, whole.steps[:1], interrupted=False))


def test_no_coordinate_is_nan_and_all_are_inside():
    text = ramp_page(ramped())
    assert "nan" not in text
    places = re.findall(r'<circle[^>]* cx="([-\d.]+)" cy="([-\d.]+)"', text)
    assert all(0 <= float(x) <= 560 and 0 <= float(y) <= 320 for x, y in places)


def test_a_ramp_of_nothing_is_said_to_be_one(capsys: pytest.CaptureFixture[str]):
    asked = Asked(url="u", model="m", closed_loop=True, input_tokens="1", output_tokens="1", seed=0)
    drawing.show(ramp_report(conclude(asked, [], interrupted=True)))
    assert "no request fell into a step" in capsys.readouterr().out


def test_nothing_is_concluded_of_a_load_that_was_interrupted(capsys: pytest.CaptureFixture[str]):
    promises = (Promise(name="itl", target_ms=50, within=1.0),)
    steps = [
        Step(load=load, result=result(interrupted=cut, promises=promises), engine=None)
        for load, cut in ((1, False), (2, True))
    ]
    asked = Asked(url="u", model="m", closed_loop=False, input_tokens="1", output_tokens="1", seed=0)
    drawing.show(ramp_report(conclude(asked, steps, interrupted=True)))
    drawing.show(ramp_report(conclude(asked, steps[1:], interrupted=True)))
    whole, nothing = capsys.readouterr().out.split("u: rising")[1:]
    assert "none up to 1 requests/s" in whole
    assert "kept up to 1 requests/s" in whole
    assert "not known: no load was sent whole and measured to its end" in nothing
    assert "none up to" not in nothing
    assert "kept" not in nothing
    assert "no knee up to" not in nothing


def test_json_is_the_whole_ramp():
    data = json.loads(json.dumps(data_of(ramped())))
    assert data["knee"]["load"] == 4
    assert data["bottleneck"]["word"] == "too many sequences"
    assert [step["load"] for step in data["steps"]] == [1, 2, 4, 8, 16]
    assert data["comparison"]["rows"][0]["expected"] == {"low": 150, "mid": 200, "high": 250}


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ramping, "_SETTLE_S", 0.1)


@pytest.mark.usefixtures("quick")
def test_a_ramp_runs_from_the_command_line_to_the_page(tmp_path: Path):
    page = tmp_path / "ramp.html"
    with listening(Behaviour(ttft_s=0.0, gap_s=0.0)) as (url, server):
        ran = plimsoll(
            *(
                "ramp",
                f"{url}/v1",
                "--start",
                "8",
                "--max",
                "16",
                "--step-duration",
                "1",
                "--output-tokens",
                "3",
            ),
            *("--html", str(page), "--json"),
        )
    assert ran.code in (0, 2), ran.err
    data = json.loads(ran.out)
    assert data["steps"][0]["load"] == 8
    assert data["model"] == "tiny"
    assert server.times
    assert page.read_text().startswith("<!doctype html>")
    first, second, *_ = ran.err.splitlines()
    assert first == (
        "note: 4 loads at most, of 8 to 16 requests/s (--max), each for 1.1 s (--step-duration) and as long as its answers take: 1 minute or "
        "more where it goes so far"
    )
    assert second == "note: measuring 8 requests/s"
    assert ran.err.endswith(f"note: {page}: the picture\n")


@pytest.mark.usefixtures("quick")
def test_a_plan_gives_the_lengths_and_stands_beside_the_figures():
    with listening(Behaviour(ttft_s=0.0, gap_s=0.0)) as (url, server):
        ran = plimsoll("ramp", url, "--start", "4", "--max", "4", "--step-duration", "1", *PLANNED, "--json")
    data = json.loads(ran.out)
    planned = data["comparison"]["expected"]
    assert {str(body["max_tokens"]) for body in server.bodies} == {str(planned["output_tokens"])}
    assert data["input_tokens"] == str(planned["input_tokens"])
    assert data["steps"][0]["result"]["promises"], "the resource's own targets"


def test_a_plan_is_read_from_what_plan_wrote(tmp_path: Path):
    for form in ("json", "yaml"):
        file = tmp_path / f"plan.{form}"
        file.write_text(plimsoll("plan", *PLANNED, "-o", form).out)
        fleet = codec.decode(FleetPlan, json.loads(plimsoll("plan", *PLANNED, "-o", "json").out))
        held = from_file(str(file), None)
        assert held.expected == expected(fleet.plans[0])
        assert held.expected.requests_per_second > 0


def test_each_data_parallel_rank_of_a_replica_has_seats_of_its_own():
    """A batch that is full tells so by the requests that run in all ranks together."""
    plan = planned(deployment(QWEN_MOE, topology={"tensor": 2, "data": 4}, replicas=2), pool(nodes=2))
    (one,) = plan.sets
    assert expected(plan).seats == 2 * 4 * one.settings.max_num_seqs


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--plan", "p", "-f", "x"), "give one of them"),
        (("--plan", "/no/such"), "/no/such: cannot be read"),
        (("--plan", str(EXAMPLES / "fleet.yaml")), "is no plan"),
        (("-f", str(EXAMPLES / "02-chat.yaml")), "no fleet is named"),
        ((*PLANNED, "--name", "other"), "--name other: -f holds "),
        (("--gpu-metrics", "http://127.0.0.1:9/metrics"), "give the NAME of a deployment"),
        (("--start", "8", "--max", "4"), "--start: 8 is above --max 4"),
        (("--start", "1.5", "--by", "concurrency"), "give a whole number"),
        (("--prefix-tokens", "1000", "--input-tokens", "500"), "leave a prompt nothing of its own"),
        (("--step-duration", "0.1"), "too short to measure anything"),
        (("--html", "/no/such/folder/x.html"), "--html /no/such/folder/x.html: cannot be written"),
        ((), "/v1/models does not answer"),
    ],
)
def test_a_wrong_question_is_told_before_any_load(arguments: tuple[str, ...], said: str):
    ran = plimsoll("ramp", "http://127.0.0.1:9", *arguments)
    assert (ran.code, ran.out) == (3, "")
    assert said in ran.err


@pytest.mark.parametrize("before", [None, "an older one"])
def test_a_ramp_that_does_not_begin_leaves_the_page_as_it_was(tmp_path: Path, before: str | None):
    page = tmp_path / "ramp.html"
    if before is not None:
        page.write_text(before)
    assert plimsoll("ramp", "http://127.0.0.1:9", "--html", str(page)).code == 3
    assert (page.read_text() if page.exists() else None) == before


def test_a_page_of_answers_without_gaps_can_be_drawn():
    nothing = result(itl_ms=spread(0.0, 0.0), ttft_ms=spread(0.0, 0.0), done=0.0)
    asked = Asked(url="u", model="m", closed_loop=False, input_tokens="1", output_tokens="1", seed=0)
    text = ramp_page(conclude(asked, [Step(load=1, result=nothing, engine=None)], interrupted=False))
    assert text.count("nothing was measured") == 2
    assert "answered 0 requests/s at 1 requests/s" in text
