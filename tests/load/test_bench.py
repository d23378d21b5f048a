"""Whole measurements of a server whose delays are known, in virtual time: what is measured is exactly what was done."""

import asyncio
from contextlib import AsyncExitStack
from itertools import pairwise
from typing import Any

import pytest

from plimsoll.cli.bench import _exit_code
from plimsoll.cli.errors import DOES_NOT_FIT
from plimsoll.load.bench import Watch, bench, session
from plimsoll.load.client import Api, Endpoint
from plimsoll.load.drive import Limits
from plimsoll.load.lengths import Fixed, parse_lengths
from plimsoll.load.problems import EndpointError
from plimsoll.load.result import Result
from plimsoll.load.slo import parse_slo
from plimsoll.load.workload import ClosedLoop, OpenLoop, Pattern, Workload
from tests.load.known_server import Behaviour, KnownServer, serving
from tests.load.virtual import virtually


def measured(
    behaviour: Behaviour,
    pattern: Pattern,
    limits: Limits,
    *,
    api: Api = Api.CHAT,
    slo: str | None = None,
    timeout_s: float = 600.0,
    model: str | None = None,
    stop_after: float | None = None,
    watch: Watch | None = None,
    **workload: Any,
) -> tuple[Result, KnownServer]:
    async def work() -> tuple[Result, KnownServer]:
        server = KnownServer(behaviour)
        stop = asyncio.Event()
        if stop_after is not None:
            asyncio.get_running_loop().call_later(stop_after, stop.set)
        asked = Workload(
            pattern=pattern, **{"input_tokens": Fixed(100), "output_tokens": Fixed(11), **workload}
        )
        async with serving(server) as connector:
            result = await bench(
                Endpoint(url="http://localhost/v1", api=api, timeout_s=timeout_s, model=model),
                asked,
                limits,
                slo=None if slo is None else parse_slo(slo),
                stop=stop,
                watch=watch,
                connector=connector,
            )
        return result, server

    return virtually(work())


@pytest.mark.parametrize("api", Api)
@pytest.mark.parametrize("counts", [True, False])
def test_known_delays_are_measured_as_they_are(api: Api, counts: bool):
    behaviour = Behaviour(ttft_s=2.0, gap_s=0.5, counts=counts)
    result, server = measured(behaviour, ClosedLoop(3), Limits(requests=12), api=api)
    assert (result.counts.sent, result.counts.ok, result.counts.bad) == (12, 12, 0)
    assert result.ttft_ms
    assert result.itl_ms
    assert result.tpot_ms
    assert result.e2e_ms
    assert result.longest_gap_ms
    assert (result.ttft_ms.p50, result.ttft_ms.max) == (2000, 2000)
    assert (result.itl_ms.count, result.itl_ms.mean, result.itl_ms.max) == (120, 500, 500)
    assert (result.tpot_ms.mean, result.e2e_ms.mean, result.longest_gap_ms.max) == (500, 7000, 500)
    assert result.seconds == 28
    assert result.rates.requests == pytest.approx(12 / 28, abs=1e-4)
    assert result.rates.output_tokens == pytest.approx(132 / 28, abs=0.01)
    assert (result.rates.in_flight_mean, result.rates.in_flight_max) == (3, 3)
    assert result.lengths.counted_by == ("server" if counts else "events")
    assert server.most == 3


def test_an_open_loop_sends_when_requests_are_due_though_nobody_answers():
    """A closed loop would have sent two; a server that stands still must not hold back the load that shows it."""
    behaviour = Behaviour(ttft_s=1000.0)
    result, server = measured(behaviour, OpenLoop(4.0), Limits(seconds=50, drain_s=10))
    gaps = [later - sooner for sooner, later in pairwise(server.times)]
    assert 150 <= len(server.times) <= 250
    assert sum(gaps) / len(gaps) == pytest.approx(0.25, rel=0.2)
    assert result.counts.unfinished == result.counts.sent == len(server.times)
    assert result.ttft_ms is None


def test_waiting_for_a_seat_counts_from_when_the_request_was_due():
    # One seat of 2 s an answer and a request every second: the n-th waits about n seconds.
    behaviour = Behaviour(ttft_s=2.0, gap_s=0.0, seats=1)
    result, _ = measured(
        behaviour, OpenLoop(1.0, burstiness=1e6), Limits(requests=20, drain_s=1000), output_tokens=Fixed(1)
    )
    assert result.ttft_ms
    assert result.ttft_ms.max == pytest.approx(21_000, rel=0.02)
    assert result.ttft_ms.p50 == pytest.approx(11_500, rel=0.1)


@pytest.mark.parametrize(
    ("fate", "count", "problem"),
    [
        ("cut", "cut", "the stream ended without its end"),
        ("reset", "cut", "connection lost"),
        ("abort", "cut", "finish reason abort"),
        ("error", "failed", "the engine died"),
        ("500", "failed", "500: not today"),
        ("404", "failed", "404: not today"),
        ("json", "failed", "no stream, but JSON"),
        ("deep", "cut", "an event that is no JSON"),
        ("a deep answer", "failed", "no stream, but JSON"),
        ("a deep refusal", "failed", "500: [[["),
        ("429", "refused", "429: not today"),
        ("503", "refused", "503: not today"),
        ("hang", "timed_out", "no end within 20 s"),
    ],
)
def test_every_bad_end_has_its_count_and_its_words(fate: str, count: str, problem: str):
    behaviour = Behaviour(ttft_s=1.0, gap_s=0.1, fate=lambda number: fate if number % 4 == 1 else "ok")
    result, _ = measured(behaviour, OpenLoop(2.0), Limits(requests=16), timeout_s=20)
    assert getattr(result.counts, count) == 4
    assert (result.counts.ok, result.counts.bad, result.counts.sent) == (12, 4, 16)
    assert [(one.times, one.message.startswith(problem)) for one in result.problems] == [(4, True)]
    assert result.e2e_ms
    assert result.e2e_ms.count == 12


def test_an_endpoint_that_goes_away_refuses():
    async def work() -> Result:
        asked = Workload(pattern=ClosedLoop(2), input_tokens=Fixed(10), output_tokens=Fixed(10))
        async with AsyncExitStack() as stack:
            async with serving(KnownServer(Behaviour())) as connector:
                opened = await stack.enter_async_context(
                    session(Endpoint(url="http://localhost"), 0, connector=connector)
                )
            return await opened.measure(asked, Limits(seconds=10), slo=None, stop=asyncio.Event())

    result = virtually(work())
    # Two users who pause half a second after each failure.
    assert 40 <= result.counts.refused == result.counts.sent <= 42
    assert result.problems[0].message == "no connection: No such file or directory"


def test_a_hang_is_the_longest_gap_though_the_answer_never_ends():
    behaviour = Behaviour(ttft_s=1.0, gap_s=0.1, fate=lambda _: "hang")
    result, _ = measured(behaviour, ClosedLoop(1), Limits(requests=1), timeout_s=30)
    assert result.longest_gap_ms
    assert result.longest_gap_ms.max == pytest.approx(30_000 - 1000 - 4 * 100)
    assert result.itl_ms
    assert (result.itl_ms.count, result.itl_ms.max) == (5, result.longest_gap_ms.max)


def test_streams_that_hang_break_the_promise_of_itl():
    behaviour = Behaviour(ttft_s=1.0, gap_s=0.1, fate=lambda number: "hang" if number % 2 else "ok")
    result, _ = measured(behaviour, ClosedLoop(2), Limits(requests=8), slo="itl=200", timeout_s=30)
    assert (result.counts.ok, result.counts.timed_out) == (4, 4)
    assert result.promises[0].within == pytest.approx((4 * 10 + 4 * 4) / (4 * 10 + 4 * 5), abs=1e-5)
    assert result.kept is False


def test_a_stream_that_hangs_after_its_first_token_has_no_time_a_token():
    behaviour = Behaviour(ttft_s=1.0, gap_s=0.1, tokens_per_event=4, fate=lambda _: "hang")
    result, _ = measured(
        behaviour, ClosedLoop(1), Limits(requests=1), slo="tpot=200", timeout_s=30, output_tokens=Fixed(8)
    )
    assert result.promises[0].within == 0.0


@pytest.mark.parametrize(
    ("slo", "kept", "within"),
    [
        ("ttft=1000", True, 1.0),
        ("ttft=999", False, 0.0),
        ("itl=100,e2e=2000", True, 1.0),
        ("tpot=99", False, 0.0),
        ("e2e:1999", False, 0.0),
    ],
)
def test_promises_are_judged_by_what_was_seen(slo: str, kept: bool, within: float):
    behaviour = Behaviour(ttft_s=1.0, gap_s=0.1)
    result, _ = measured(behaviour, ClosedLoop(2), Limits(requests=8), slo=slo)
    assert result.kept is kept
    assert [one.within for one in result.promises][:1] == [within]
    assert result.rates.good_requests == pytest.approx(result.rates.requests if kept else 0, abs=1e-3)


def test_requests_without_a_first_token_break_the_promise_of_one():
    behaviour = Behaviour(ttft_s=0.1, gap_s=0.1, fate=lambda number: "503" if number % 10 == 0 else "ok")
    result, _ = measured(behaviour, OpenLoop(5.0), Limits(requests=40), slo="ttft=500")
    assert result.promises[0].within == 0.9
    assert result.kept is False
    assert any("4 of 40 requests never saw a first token" in one for one in result.notes)


def test_the_end_of_the_run_is_no_failure_of_the_requests_in_flight():
    behaviour = Behaviour(ttft_s=1.0, gap_s=1.0)
    result, server = measured(behaviour, ClosedLoop(4), Limits(seconds=15, drain_s=2), slo="ttft=1000")
    assert (result.counts.ok, result.counts.unfinished, result.counts.bad) == (4, 4, 0)
    assert result.kept is True
    assert result.seconds == 15
    # 11 tokens of each of the first four, 4 or so of the others, within 15 seconds
    assert result.rates.output_tokens == pytest.approx((44 + 16) / 15, abs=0.01)
    assert server.answering == 0


def test_ctrl_c_keeps_what_is_measured():
    behaviour = Behaviour(ttft_s=1.0, gap_s=0.1)
    result, server = measured(behaviour, ClosedLoop(2), Limits(seconds=1000), stop_after=9.0)
    assert result.interrupted
    assert (result.counts.ok, result.counts.unfinished) == (8, 2)
    assert result.seconds == 9
    assert server.answering == 0


def test_what_is_due_in_the_warm_up_is_sent_and_not_measured():
    behaviour = Behaviour(ttft_s=1.0, gap_s=0.1, fate=lambda number: "500" if number < 10 else "ok")
    result, server = measured(
        behaviour, OpenLoop(1.0, burstiness=1e6), Limits(seconds=40, warmup_s=10.5), output_tokens=Fixed(1)
    )
    assert len(server.times) == 39
    assert (result.counts.sent, result.counts.ok) == (29, 29)
    assert result.seconds == 29.5
    assert result.rates.requests == pytest.approx(28 / 29.5, rel=0.001)


def test_prompts_have_the_tokens_that_were_asked_for():
    behaviour = Behaviour(ttft_s=0.1, gap_s=0.1, template_tokens=23, tokens_per_word=2.7)
    result, _ = measured(
        behaviour,
        ClosedLoop(4),
        Limits(requests=50),
        input_tokens=parse_lengths("100..4000", "--input-tokens"),
    )
    assert result.lengths.input_error_percent is not None
    assert result.lengths.input_error_percent < 0.2
    assert not any("word" in note for note in result.notes)


def test_the_second_probe_fits_a_small_context():
    behaviour = Behaviour(ttft_s=0.1, gap_s=0.1, context=300, template_tokens=5, tokens_per_word=2.0)
    result, _ = measured(behaviour, ClosedLoop(1), Limits(requests=5), input_tokens=Fixed(120))
    assert result.lengths.input_mean == pytest.approx(120, abs=1)


def test_a_server_that_counts_nothing_is_said_to_count_nothing():
    result, _ = measured(Behaviour(counts=False), ClosedLoop(1), Limits(requests=2))
    assert (
        result.lengths.input_mean is result.lengths.input_error_percent is result.rates.input_tokens is None
    )
    assert any("does not count prompt tokens" in note for note in result.notes)
    assert any("does not count output tokens" in note for note in result.notes)


@pytest.mark.parametrize(
    ("refuses", "left", "note"),
    [
        (("continuous_usage_stats",), {"ignore_eos", "stream_options"}, None),
        (("ignore_eos",), {"stream_options"}, "refuses ignore_eos"),
        (("ignore_eos", "stream_options"), set[str](), "does not count output tokens"),
    ],
)
def test_a_server_of_the_plain_api_is_asked_plainly(
    refuses: tuple[str, ...], left: set[str], note: str | None
):
    result, server = measured(Behaviour(refuses=refuses), ClosedLoop(1), Limits(requests=2))
    assert result.counts.ok == 2
    assert set(server.bodies[-1]) & {"ignore_eos", "stream_options"} == left
    assert any(note in one for one in result.notes) if note else result.notes == ()


def test_several_tokens_at_once_are_one_gap_and_are_said():
    result, _ = measured(
        Behaviour(ttft_s=1.0, gap_s=0.4, tokens_per_event=4),
        ClosedLoop(1),
        Limits(requests=2),
        output_tokens=Fixed(12),
    )
    assert result.itl_ms
    assert result.tpot_ms
    assert (result.itl_ms.count, result.itl_ms.mean) == (4, 400)
    assert result.tpot_ms.mean == pytest.approx(800 / 11, abs=0.001)
    assert result.lengths.tokens_per_event == 4
    assert any("4 tokens came with each event" in one for one in result.notes)


@pytest.mark.parametrize("api", Api)
def test_a_token_without_text_is_a_token(api: Api):
    result, _ = measured(
        Behaviour(ttft_s=1.0, gap_s=0.1, silent=(0, 3, 4)), ClosedLoop(1), Limits(requests=1), api=api
    )
    assert result.ttft_ms
    assert result.itl_ms
    assert (result.ttft_ms.max, result.itl_ms.count, result.itl_ms.max) == (1000, 10, 100)


def test_requests_longer_than_the_server_takes_are_cut_to_it_and_counted():
    result, _ = measured(
        Behaviour(ttft_s=0.1, gap_s=0.1, context=1000),
        ClosedLoop(1),
        Limits(requests=3),
        input_tokens=Fixed(5000),
    )
    assert result.counts.ok == 3
    assert result.lengths.input_mean is not None
    assert 900 < result.lengths.input_mean + 11 <= 1000
    assert any("3 requests were longer than the 1,000 tokens" in one for one in result.notes)


def test_the_same_seed_sends_the_same_requests_and_another_one_others():
    def bodies(seed: int) -> Any:
        lengths = parse_lengths("p50=50,p95=200", "--input-tokens")
        _, server = measured(Behaviour(), OpenLoop(5.0), Limits(requests=10), input_tokens=lengths, seed=seed)
        return server.bodies, [time - server.times[0] for time in server.times]

    assert bodies(1) == bodies(1)
    assert bodies(1) != bodies(2)


def test_an_open_loop_says_what_it_could_not_send_and_promises_nothing_of_it():
    limits = Limits(seconds=10, drain_s=1, in_flight=5)
    result, _ = measured(Behaviour(ttft_s=100.0), OpenLoop(10.0), limits)
    assert result.counts.sent == 5
    assert result.counts.not_sent > 70
    assert any("due and not sent" in one for one in result.notes)
    held, _ = measured(Behaviour(ttft_s=0.5, gap_s=0.1), OpenLoop(10.0), limits, slo="ttft=1000")
    assert (held.promises[0].within, held.kept, _exit_code(held)) == (1.0, None, DOES_NOT_FIT)
    missed, _ = measured(Behaviour(ttft_s=0.5, gap_s=0.1), OpenLoop(10.0), limits, slo="ttft=100")
    assert missed.kept is False


def test_an_engine_that_hangs_within_answers_shows_in_the_longest_gap_and_a_note_says_it():
    def gap(_: int) -> float:
        return 0.1 if asyncio.get_running_loop().time() < 1020 else 1e6

    result, _ = measured(Behaviour(ttft_s=0.1, gap_of=gap), ClosedLoop(4), Limits(seconds=30, drain_s=60))
    assert result.counts.unfinished == 4
    assert result.longest_gap_ms
    assert result.itl_ms
    assert result.longest_gap_ms.max == result.itl_ms.max > 65_000
    assert any("4 of them had said nothing for up to 7" in one for one in result.notes)


@pytest.mark.parametrize("stop_after", [20.3, 22.3], ids=["after some tokens", "after the first"])
def test_ctrl_c_within_healthy_answers_is_no_gap(stop_after: float):
    behaviour = Behaviour(ttft_s=1.0, gap_s=0.5)
    result, _ = measured(behaviour, ClosedLoop(3), Limits(), stop_after=stop_after)
    assert result.counts.unfinished == 3
    assert result.ttft_ms
    assert result.itl_ms
    assert (result.itl_ms.mean, result.itl_ms.max) == (500, 500)
    assert not any("said nothing" in one for one in result.notes)


def test_somebody_may_watch():
    seen: list[int] = []
    measured(Behaviour(), ClosedLoop(1), Limits(requests=3), watch=lambda tally, _: seen.append(tally.sent))
    assert seen == sorted(seen)
    assert seen[-1] == 3


@pytest.mark.parametrize(
    ("model", "behaviour", "message"),
    [
        ("other", Behaviour(), "model 'other' is not served by http://localhost/v1/models; it serves tiny"),
        (None, Behaviour(refuses=("tiny",)), "answers no request for model 'tiny': 400: unknown field tiny"),
    ],
)
def test_an_endpoint_that_cannot_be_used_says_why(model: str | None, behaviour: Behaviour, message: str):
    with pytest.raises(EndpointError, match=message):
        measured(behaviour, ClosedLoop(1), Limits(requests=1), model=model)


def test_shared_beginnings_are_the_same_text_and_others_differ():
    _, server = measured(
        Behaviour(ttft_s=0.1, gap_s=0.1),
        ClosedLoop(1),
        Limits(requests=12),
        input_tokens=Fixed(400),
        prefix_tokens=200,
        prefixes=2,
    )
    texts = [body["messages"][0]["content"].split() for body in server.bodies]
    # 193 tokens beside the template's 7, at 1.5 a word
    assert len({tuple(words[:128]) for words in texts}) == 2
    assert len({tuple(words[:133]) for words in texts}) == 12
