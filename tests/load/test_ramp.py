"""Whole ramps against servers that behave in known ways, in virtual time."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from plimsoll.cli.errors import BAD_INPUT
from plimsoll.cli.ramp import _exit_code
from plimsoll.load.bench import session
from plimsoll.load.bottleneck import Word
from plimsoll.load.client import Endpoint
from plimsoll.load.compare import Expected, Range
from plimsoll.load.conclusions import Ramp
from plimsoll.load.knee import Knee, Sign
from plimsoll.load.lengths import Fixed
from plimsoll.load.ramp import RampPlan, at_most, next_load, ramp
from plimsoll.load.slo import parse_slo
from plimsoll.load.workload import ClosedLoop, Workload
from tests.load.known_server import Behaviour, KnownServer, serving
from tests.load.virtual import virtually

SHAPE = Workload(pattern=ClosedLoop(1), input_tokens=Fixed(64), output_tokens=Fixed(10))


def metrics(server: KnownServer) -> str:
    streaming, waiting = server.streaming, server.answering - server.streaming
    return (
        "process_start_time_seconds 5\n"
        f'vllm:num_requests_running{{model_name="tiny"}} {streaming}\n'
        f'vllm:num_requests_waiting{{model_name="tiny"}} {waiting}\n'
        f'vllm:kv_cache_usage_perc{{model_name="tiny"}} {min(1.0, streaming / 32)}\n'
        f'vllm:num_preemptions_total{{model_name="tiny"}} 0\n'
        f'vllm:request_success_total{{model_name="tiny"}} {len(server.times) - server.answering}\n'
    )


def ramped(
    behaviour: Behaviour,
    rising: RampPlan,
    *,
    slo: str | None = None,
    stop_after: float | None = None,
    **more: Any,
) -> tuple[Ramp, list[float]]:
    before: list[float] = []

    async def work() -> Ramp:
        server = KnownServer(behaviour)
        stop = asyncio.Event()
        if stop_after is not None:
            asyncio.get_running_loop().call_later(stop_after, stop.set)
        async with (
            serving(server) as connector,
            session(Endpoint(url="http://localhost"), 0, connector=connector) as opened,
        ):
            return await ramp(
                opened,
                SHAPE,
                rising,
                slo=None if slo is None else parse_slo(slo),
                metrics=("http://localhost/metrics",),
                stop=stop,
                before=before.append,
                **more,
            )

    return virtually(work()), before


def test_a_server_that_slows_down_with_its_batch_has_its_knee_where_it_slows():
    # 10 tokens at 0.1 s are 1 s: up to 8 at once, 8 a second, all is even; then every one more costs all.
    behaviour = Behaviour(ttft_s=0.1, gap_of=lambda n: 0.1 * max(1.0, (n / 8) ** 3), metrics=metrics)
    found, loads = ramped(behaviour, RampPlan(step_s=20))
    assert loads[:3] == [1, 2, 4]
    assert found.knee is not None
    assert found.knee.load is not None
    assert 2 <= found.knee.load <= 6
    assert found.knee.beyond / found.knee.load < 1.5, "narrowed down"
    assert Sign.ITL in found.knee.signs
    assert [step.load for step in found.steps] == sorted(loads)
    assert len(loads) <= 10


def test_a_server_with_few_seats_keeps_its_itl_and_falls_behind():
    # Eight seats of two seconds: 4 a second and no more.
    behaviour = Behaviour(ttft_s=0.2, gap_s=0.2, seats=8, metrics=metrics)
    found, _ = ramped(behaviour, RampPlan(step_s=30), slo="ttft=5000,itl=300")
    assert found.knee is not None
    assert found.knee.load is not None
    assert 2.8 <= found.knee.load <= 4
    assert Sign.THROUGHPUT in found.knee.signs
    assert found.bottleneck is not None
    assert found.bottleneck.word is Word.BATCH_TOO_SMALL
    assert "8 ran while" in found.bottleneck.evidence
    assert found.keeps_targets is not None
    assert found.keeps_targets <= found.knee.beyond


def test_users_at_once_rise_until_more_of_them_get_nothing_more():
    behaviour = Behaviour(ttft_s=0.2, gap_s=0.2, seats=8, metrics=metrics)
    found, loads = ramped(behaviour, RampPlan(step_s=20, closed_loop=True))
    assert all(load == int(load) for load in loads)
    assert found.knee is not None
    assert 8 <= (found.knee.load or 0) <= 11
    assert found.steps[0].result.pattern == "1 at once"


def test_a_server_that_copes_has_no_knee_and_it_is_said_how_far_it_was_tried():
    found, loads = ramped(Behaviour(ttft_s=0.01, gap_s=0.001, metrics=metrics), RampPlan(step_s=5, most=16))
    assert loads == [1, 2, 4, 8, 16]
    assert (found.knee, found.bottleneck, found.judged_at) == (None, None, None)
    assert "no knee up to 16 requests/s, the most that was tried" in found.notes


def test_a_server_that_breaks_ends_the_ramp():
    behaviour = Behaviour(ttft_s=0.01, gap_s=0.001, fate=lambda number: "ok" if number < 40 else "500")
    found, loads = ramped(behaviour, RampPlan(step_s=5))
    assert found.knee is not None
    assert Sign.ERRORS in found.knee.signs
    assert len(loads) < 8
    assert any("see the problems" in note for note in found.notes)
    assert {one.holds for one in found.judgements} == {None}, "this server exports nothing"


def test_a_load_that_its_server_did_not_survive_is_shown_and_nothing_is_concluded_from_it():
    behaviour = Behaviour(ttft_s=0.01, gap_s=0.001, fate=lambda number: "ok" if number < 60 else "gone")
    found, loads = ramped(behaviour, RampPlan(step_s=5))
    assert found.knee is None, "whether it ended by the load is not known"
    assert found.away is not None
    assert "does not answer" in found.away
    assert [step.load for step in found.steps] == loads
    assert found.tried == loads[-2]
    assert any(
        note.startswith(f"after {loads[-1]:g} requests/s http://localhost/v1/models") for note in found.notes
    )
    assert _exit_code(found) == BAD_INPUT


def test_ctrl_c_keeps_the_steps_that_were_measured():
    found, _ = ramped(Behaviour(ttft_s=0.1, gap_s=0.01), RampPlan(step_s=10), stop_after=33.0)
    assert found.interrupted
    assert [step.load for step in found.steps] == [1, 2, 4]
    assert [step.result.interrupted for step in found.steps] == [False, False, True]
    assert found.tried == 2
    assert "no knee up to 2 requests/s, the most that was tried" in found.notes


def test_ctrl_c_is_heeded_while_a_server_is_asked_whether_it_is_still_there():
    behaviour = Behaviour(ttft_s=0.01, gap_s=0.001, fate=lambda number: "ok" if number < 20 else "stuck")
    told: list[float] = []

    async def work() -> Ramp:
        server, stop = KnownServer(behaviour), asyncio.Event()
        loop = asyncio.get_running_loop()

        async def interrupt() -> None:
            while not server.asked_when_stuck:
                await asyncio.sleep(0.1)
            await asyncio.sleep(1)
            told.append(loop.time())
            stop.set()

        async with (
            serving(server) as connector,
            session(Endpoint(url="http://localhost"), 0, connector=connector) as opened,
        ):
            interrupting = asyncio.create_task(interrupt())
            found = await ramp(opened, SHAPE, RampPlan(step_s=5), stop=stop)
            told.append(loop.time())
            await interrupting
            return found

    found = virtually(work())
    assert told[1] == pytest.approx(told[0])
    assert found.interrupted
    assert found.away is None, "it was not waited for long enough to know"


@pytest.mark.parametrize("answer_s", [18, 36, 63])
def test_long_answers_of_a_server_that_copes_are_not_taken_for_a_queue(answer_s: float):
    """In the first step most of them only begin; how long they take is known after it, and of those longer than it that they are."""
    behaviour = Behaviour(ttft_s=0.1, gap_s=answer_s / 9)
    found, loads = ramped(behaviour, RampPlan(step_s=30, start=2, most=4))
    assert loads == [2, 2, 4]
    assert [step.load for step in found.steps] == [2, 4]
    assert found.knee is None


def test_a_first_load_that_is_too_much_is_measured_anew_once_and_called_that():
    # Eight seats of two seconds: 4 a second and no more.
    found, loads = ramped(Behaviour(ttft_s=0.2, gap_s=0.2, seats=8), RampPlan(step_s=20, start=16))
    assert loads == [16, 16]
    assert found.knee is not None
    assert found.knee.load is None
    assert Sign.THROUGHPUT in found.knee.signs


def test_steps_shorter_than_an_answer_are_made_longer_until_one_fits():
    found, loads = ramped(Behaviour(ttft_s=30.0, gap_s=0.1), RampPlan(step_s=4, most=2, closed_loop=True))
    assert loads == [1, 1, 1, 1, 2]
    assert [step.load for step in found.steps] == [1, 2]
    assert all(step.result.counts.sent for step in found.steps)


def test_a_server_that_never_answers_ends_the_ramp_with_nothing():
    found, loads = ramped(Behaviour(ttft_s=1e5, gap_s=0.1), RampPlan(step_s=4, closed_loop=True))
    assert loads == [1] * 5
    assert (found.steps, found.knee) == ((), None)
    assert "no request fell into a step" in found.notes[0]


def test_a_missed_target_is_judged_though_there_is_no_knee():
    found, _ = ramped(
        Behaviour(ttft_s=2.0, gap_s=0.1, metrics=metrics), RampPlan(step_s=10, most=4), slo="ttft=1000"
    )
    assert (found.knee, found.keeps_targets, found.judged_at) == (None, None, 1)
    assert found.bottleneck is not None
    assert found.bottleneck.word is Word.PREFILL_TOO_SLOW


def test_a_plan_s_figures_stand_beside_the_measured_ones():
    expected = Expected(
        plan="default/tiny",
        replicas=1,
        input_tokens=64,
        output_tokens=10,
        in_flight=2,
        ttft_ms=Range(900, 1000, 1100),
        tpot_ms=Range(90, 100, 110),
        requests_per_second=1.05,
        output_tokens_per_second=10.5,
        most_in_flight=100,
        seats=256,
        bound="memory",
    )
    found, _ = ramped(Behaviour(ttft_s=1.0, gap_s=0.1), RampPlan(step_s=60, most=4), expected=expected)
    assert found.comparison is not None
    rows = {one.what: one for one in found.comparison.rows}
    assert rows["TTFT ms, mean"].within
    assert rows["TPOT ms, mean"].within
    assert rows["requests/s"].off_percent == pytest.approx(0, abs=5)


@pytest.mark.parametrize(
    ("start", "most", "loads"),
    [(1, 256, 11), (1, 255, 10), (8, 8, 1), (8, 15, 1), (0.3, 1.2, 5)],
)
def test_how_many_loads_there_may_be_is_known_before(start: float, most: float, loads: int):
    assert at_most(RampPlan(start=start, most=most, step_s=30)) == (loads, 33)


def knee(load: float | None, beyond: float, *, confirmed: bool = True) -> Knee:
    return Knee(load=load, beyond=beyond, signs=(Sign.ITL,), confirmed=confirmed, explanation="")


@pytest.mark.parametrize(
    ("done", "found", "closed", "following"),
    [
        ([], None, False, 1),
        ([1], None, False, 2),
        ([1, 2, 4], None, False, 8),
        ([1, 2, 4, 8], None, False, None),  # the most is 8
        ([1, 2, 4], knee(2, 4, confirmed=False), False, 8),
        ([1, 2, 4, 8], knee(2, 4), False, 2.83),
        ([1, 2, 4, 8, 2.83], knee(2.83, 4), False, 3.36),
        ([1, 2, 4, 8, 2.83, 3.36], knee(2.83, 3.36), False, None),
        ([1, 2, 4], knee(2, 4), True, 3),
        ([1, 2, 4, 3], knee(2, 3), True, None),
        ([1], knee(None, 1), False, None),
    ],
)
def test_the_next_load(done: list[float], found: Knee | None, closed: bool, following: float | None):
    assert next_load(done, found, RampPlan(most=8, closed_loop=closed)) == following


def test_a_load_that_the_client_cannot_hold_ends_the_ramp_and_shows_nothing_of_the_server():
    # An answer takes a second, so 40 in flight are 40 requests a second, whatever the server could do.
    rising = RampPlan(start=5, most=80, step_s=10, in_flight=40)
    found, loads = ramped(Behaviour(ttft_s=0.1, gap_s=0.1), rising, slo="ttft=1000,itl=150")
    assert loads == [5, 10, 20, 40]
    assert (found.knee, found.keeps_targets, found.tried, _exit_code(found)) == (None, 20, 20, 0)
    assert any("at 40 requests/s this client holds no more (40 in flight)" in one for one in found.notes)
    first, loads = ramped(Behaviour(ttft_s=0.1, gap_s=0.1), replace(rising, start=40), slo="ttft=1000")
    assert loads == [40]
    assert (first.knee, first.keeps_targets, first.tried, _exit_code(first)) == (None, None, None, 2)


def test_a_server_that_falls_behind_has_its_knee_also_where_the_client_holds_no_more():
    rising = RampPlan(start=4, most=64, step_s=20, in_flight=50)
    found, _ = ramped(Behaviour(ttft_s=0.1, gap_s=0.1, seats=10), rising, slo="itl=150")
    assert found.knee is not None
    assert found.knee.load is not None
    assert 8 <= found.knee.load < found.knee.beyond <= 16
    assert found.keeps_targets is not None
    assert found.keeps_targets < 16
