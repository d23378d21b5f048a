"""WVA's two rules: each does what its sources say, on what it can see."""

from dataclasses import replace
from typing import Any

from plimsoll.facts.histograms import Histogram
from plimsoll.simulate.policies.wva import WINDOW_S, Followed, Wva1, Wva2
from tests.simulate.views import INF, kv, view, wish
from tests.simulate.worlds import LIMITS


def test_wva1_takes_one_step_and_none_while_one_is_on_its_way():
    full, idle = kv(0.79, 0.9), kv(0.2, 0.2, 0.2)
    assert wish(Wva1(), view(60.0, *full)) == 3
    assert wish(Wva1(), view(60.0, *full, pending=1)) == 3
    assert wish(Wva1(), view(60.0, *idle)) == 2
    assert wish(Wva1(), view(60.0, *idle, pending=1)) == 4
    assert wish(Wva1(), view(60.0, *kv(0.6, 0.6))) == 2
    policy = Wva1()
    policy.decide(view(60.0, *full))
    assert policy.decide(view(75.0, *full)) is None


def queued(used: float, waiting: float, told: Histogram | None = None) -> dict[str, Any]:
    here: dict[str, Any] = {"kv_fraction": used, "kv_tokens": 10_000, "waiting": waiting}
    return here | {"prompt_lengths": told, "output_lengths": told}


def test_wva2_sizes_its_step_from_missing_tokens():
    # A replica has 80% of its cache, or as much as was in use where a queue says that no more fits.
    assert wish(Wva2(LIMITS), view(60.0, *kv(0.95, 0.95))) == 3
    assert wish(Wva2(LIMITS), view(60.0, *[queued(0.5, 9.0)] * 2)) == 3
    assert wish(Wva2(LIMITS), view(60.0, *kv(0.6, 0.6))) == 2


def test_wva2_counts_those_on_their_way_and_waits_for_none():
    full = kv(0.95, 0.95, 0.95)
    assert [wish(Wva2(LIMITS), view(60.0, *full, pending=some)) for some in (0, 1, 2)] == [5, 5, 5]
    assert wish(Wva2(LIMITS), view(60.0, *kv(0.1, 0.1, 0.1), pending=1)) == 2


def test_wva2_lets_all_go_at_once_that_are_spare():
    assert wish(Wva2(LIMITS), view(60.0, *kv(*[0.05] * 10))) == 1
    assert wish(Wva2(LIMITS), view(60.0, *kv(*[0.05] * 10), least=3)) == 3


def test_wva2_goes_by_the_worst_of_the_last_minute():
    policy = Wva2(LIMITS)
    policy.decide(view(30.0, *kv(0.95, 0.95)))
    assert wish(policy, view(60.0, *kv(0.1, 0.1))) == 3


def test_wva2_counts_who_waits_by_the_mean_prompt_of_five_minutes():
    # Each wants 5,000 tokens and 4 prompts of 500: 14,000 of 16,000, which is above 85%.
    policy = Wva2(LIMITS)
    ended = [Histogram((INF,), (count,), each * count) for count, each in ((10.0, 9000.0), (20.0, 4750.0))]
    policy.decide(view(45.0, *[queued(0.5, 4.0, ended[0])] * 2))
    assert wish(policy, view(60.0, *[queued(0.5, 4.0, ended[1])] * 2)) == 3


def test_wva2_remembers_how_many_tokens_a_full_replica_held():
    policy = Wva2(LIMITS)
    policy.decide(view(60.0, *[queued(0.4, 9.0)] * 2))
    # Nobody waits now: 7,600 tokens of two times 4,000 are much, of two times 8,000 they are not.
    assert wish(policy, view(150.0, *kv(0.38, 0.38))) == 3
    assert wish(Wva2(LIMITS), view(150.0, *kv(0.38, 0.38))) == 2


def test_wva2_reckons_from_the_engines_limits_where_no_queue_was_seen():
    # 32 at once, of 300 + 300 / 2 tokens each, would hold more than the cache; 4 hold 1,800.
    for limits, expected in ((LIMITS, 2), (replace(LIMITS, max_num_seqs=4), 9)):
        policy = Wva2(limits)
        ended = [Histogram((INF,), (count,), 300.0 * count) for count in (10.0, 20.0)]
        policy.decide(view(45.0, *[queued(0.65, 0.0, ended[0])] * 2))
        assert wish(policy, view(60.0, *[queued(0.65, 0.0, ended[1])] * 2)) == expected


def test_wva1_calls_a_replica_full_at_the_queue_that_it_is_told():
    queued = [{"kv_fraction": 0.5, "waiting": 3.0}] * 2
    assert [wish(Wva1(0.8, full), view(60.0, *queued)) for full in (4.0, 5.0, 10.0)] == [3, 3, 2]
    less = [{"kv_fraction": 0.5, "waiting": 1.5}] * 2
    assert [wish(Wva1(0.8, full), view(60.0, *less)) for full in (4.0, 5.0)] == [3, 2]


def test_wva2_lets_go_below_the_gap_that_it_is_told():
    less_full = kv(0.4, 0.4, 0.4, 0.4)
    assert [wish(Wva2(LIMITS, 0.85, gap), view(60.0, *less_full)) for gap in (0.05, 0.15, 0.25)] == [3, 3, 4]
    assert [wish(Wva2(LIMITS, 0.7, gap), view(60.0, *less_full)) for gap in (0.02, 0.15)] == [3, 4]


def test_the_hpa_behind_a_rule_adds_at_once_and_lets_go_what_four_minutes_did_not_ask_for():
    policy = Followed(Wva2(LIMITS))
    assert policy.settings["window_s"] == WINDOW_S
    assert policy.decide(view(45.0, *kv(0.95, 0.95))) is None
    assert wish(policy, view(60.0, *kv(0.95, 0.95))) == 3
    assert wish(policy, view(75.0, *kv(0.95, 0.95), pending=1)) == 3
    idle = [wish(policy, view(120.0 + 15 * tick, *kv(0.1, 0.1, 0.1))) for tick in range(30)]
    gone = 120.0 + 15 * idle.index(1)
    assert idle == sorted(idle, reverse=True)
    assert 60 + WINDOW_S <= gone - 120 <= 120 + WINDOW_S, "from the look on that saw no peak any more"


def test_what_was_said_by_a_look_holds_until_the_next_one_also_where_that_takes_it_back():
    policy = Followed(Wva2(LIMITS))
    for tick in range(30):
        policy.decide(view(60.0 + 15 * tick, *kv(0.6, 0.6, 0.6)))
    assert wish(policy, view(510.0, *kv(0.1, 0.1, 0.1))) == 3
    later = [wish(policy, view(525.0 + 15 * tick, *kv(0.6, 0.6, 0.6))) for tick in range(40)]
    assert later == [3] * 40
