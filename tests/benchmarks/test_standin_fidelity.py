"""The fidelity benchmark measures what it says: a model against itself is no way off, over HTTP too, and a fit finds its constants."""

from dataclasses import replace

import pytest

from fidelity_fit import Constants, fit, off
from fidelity_pairs import COUNTED, _looped, _volley
from fidelity_replay import Figures, Seen, replay
from fidelity_report import Compared, Measured, row, summary
from plimsoll.load.bench import session
from plimsoll.load.client import Api, Endpoint
from plimsoll.simulate.engine import Engine
from plimsoll.simulate.steps import Limits
from standin.told import Told
from standin_fidelity import LIMITS, Settings, Users, cells, modelled
from tests.e2e_standin.test_api import serving
from tests.load.virtual import virtually

SETTINGS = Settings(turns=1, span_s=8.0)
CONSTANTS = Constants(step=0.02, sequence=2e-4, prompt_token=2e-4)
ROOMY = Limits(blocks=1000, block_size=16, max_num_seqs=8, max_num_batched_tokens=512, max_model_len=1024)


def test_alone_a_user_sees_the_models_own_times():
    times = CONSTANTS.times(8)
    seen = replay(times, ROOMY, iter([(100, 10)] * 1000), users=1, settle_s=1.0, span_s=5.0)
    first = times.chunk + 100 * times.prompt_token + times.request + times.request_beside
    assert seen.ttfts == pytest.approx([first] * len(seen.ttfts), rel=1e-6)
    assert seen.gaps == pytest.approx([times.decode[1]] * len(seen.gaps), rel=1e-3)
    assert seen.finished == pytest.approx(5.0 / (first + 9 * times.decode[1]), abs=1.1)
    assert (seen.preemptions, max(look[0] for look in seen.looks)) == (0, 1)


def test_the_highest_load_fills_the_pool_and_preempts():
    low, high = (modelled(CONSTANTS, (load, "short"), SETTINGS) for load in ("low", "high"))
    assert (low.preemptions, high.preemptions > 0) == (0, True)
    assert low.kv < 0.2
    assert high.kv > 0.8


@pytest.mark.parametrize("key", [("middle", "short"), ("high", "long")])
def test_the_stand_in_over_http_is_the_model(key: tuple[str, str]):
    told = Told(model="dense", times=CONSTANTS.times(LIMITS.max_num_seqs), limits=LIMITS)

    async def work() -> Seen:
        endpoint = Endpoint(url="http://tiny", api=Api.COMPLETIONS)
        async with serving(told) as (_, connector), session(endpoint, 7, connector=connector) as opened:
            return await Users(opened, SETTINGS).measure(key)

    served, model = virtually(work()).figures(), modelled(CONSTANTS, key, SETTINGS)
    assert served.itl_p50 == pytest.approx(model.itl_p50, rel=0.05)
    assert served.ttft_p50 == pytest.approx(model.ttft_p50, rel=0.25)
    assert served.running == pytest.approx(model.running, abs=2)
    assert served.kv == pytest.approx(model.kv, abs=0.08)


def test_a_fit_finds_what_the_cells_were_made_with():
    truth = {key: modelled(CONSTANTS, key, SETTINGS) for key in cells()}

    def loss(constants: Constants) -> float:
        found = {key: modelled(constants, key, SETTINGS) for key in cells()}
        return sum(
            off(found[key].ttft_p50, truth[key].ttft_p50) + off(found[key].itl_p50, truth[key].itl_p50)
            for key in cells()
        )

    found, least = fit(loss)
    assert least < 0.1 * loss(Constants())
    assert found.step == pytest.approx(CONSTANTS.step, rel=0.15)


def test_a_row_has_what_is_asked_for_and_says_what_is_unknown():
    figures = Figures(
        ttft_p50=10.0,
        ttft_p99=None,
        itl_p50=20.0,
        itl_p99=30.0,
        running=2.0,
        waiting=0.0,
        kv=0.5,
        preemptions=3,
        finished=30,
    )
    seen = Seen(ttfts=[0.02], gaps=[0.02], looks=[(2, 0, 0.6)], preemptions=6, finished=30)
    made = row(
        Compared(
            real=Measured(turns=[seen, seen], loads=[1.0, 1.0]),
            left_out=figures,
            fitted=replace(figures, ttft_p50=20.0),
            stand_in=figures,
        )
    )
    assert (made["ttft_p50_err_pct"], made["itl_p50_err_pct"], made["kv_err_pp"]) == (-50.0, 0.0, -10.0)
    assert (made["preemptions_real"], made["preemptions_model"]) == (6.0, 3)
    # The engine preempted 12 for 60 that finished, the model 3 for 30.
    assert made["preemptions_err"] == -10.0
    assert made["ttft_p99_err_pct"] is None
    assert made["in_sample"]["ttft_p50_err_pct"] == 0.0


def test_preemptions_are_compared_in_the_cells_that_have_any():
    """Nearly all cells have none: a median of all would say that the model is never off."""
    calm = Seen(ttfts=[0.02], gaps=[0.02], looks=[(2, 0, 0.6)], finished=10)
    rows = []
    for real, model in ((0, 0), (0, 0), (0, 0), (4, 1), (0, 2)):
        figures = replace(calm, preemptions=model).figures()
        cell = Measured(turns=[replace(calm, preemptions=real)], loads=[1.0])
        rows.append(row(Compared(real=cell, left_out=figures, fitted=figures, stand_in=figures)))
    assert [one["preemptions_err"] for one in rows] == [None, None, None, -30.0, 20.0]
    assert (
        summary(rows, "left_out")["preemptions_err"] == summary(rows, "in_sample")["preemptions_err"] == 25.0
    )
    assert summary(rows[:3], "left_out")["preemptions_err"] is None


def test_users_of_measured_points_count_when_they_are_out_of_step_and_as_a_volley():
    engine = Engine(CONSTANTS.times(8), ROOMY)
    last = list(_looped(engine, 5, 50, 20))
    assert [one.output_tokens for one in last] == [20] * 5 * COUNTED
    assert engine.in_flight == 0
    steady = sum(one.first_at - one.arrival for one in last) / len(last)
    assert _volley(Engine(CONSTANTS.times(8), ROOMY), 5, 50, 20) > steady
