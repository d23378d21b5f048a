"""Who was woken is left alone for a while, and whoever is asked for or moved stays."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import pytest

from plimsoll.control.idle import last_asked, wake_of
from plimsoll.control.latencies import Latencies
from plimsoll.control.memory import LoadMemory
from plimsoll.control.scaling import decide
from plimsoll.control.situation import Bounds, ReplicaState, Situation, Zero
from tests.control.situations import NOW, after, known, replicas, serving, signals, situation

QUIET: Final[dict[str, Any]] = {"inflight": 0, "kv": 0.0, "rate": 0.0}


def awake(after_s: float, starts: tuple[float, ...]) -> float:
    """For how long one stays that was woken just now, though nobody asked for days."""
    asleep = Zero(after_s=after_s, waiting=0.0, idle_s=200_000.0)
    quiet = replace(situation(signals(1, **QUIET), bounds=Bounds(min=0, max=4)), zero=asleep)
    memory, now = known(begun=NOW, woken_at=NOW, starts=starts), NOW
    while (decision := after(quiet, memory=memory, begin=now)).replicas:
        memory, now = decision.memory, now + 15
    return now - NOW


@pytest.mark.parametrize(
    ("after_s", "start_s", "stays_s"),
    [(60, 20, 90), (60, 100, 300), (900, 100, 900), (900, 400, 1200), (7200, 100, 7200)],
    ids=[
        "the least that a start counts",
        "three starts",
        "as long as idleness is waited for",
        "three slow starts",
        "hours",
    ],
)
def test_a_replica_that_was_woken_stays_as_long_as_idleness_is_waited_for_and_for_three_starts(
    after_s: float, start_s: float, stays_s: float
) -> None:
    assert awake(after_s, (start_s,) * 10) == pytest.approx(stays_s, abs=15)


IDLE: Final = Zero(after_s=900, waiting=0.0, idle_s=5000.0)


def quiet(**changed: Any) -> Situation:
    """One replica that nobody has asked for long."""
    alone = situation(signals(1, **QUIET), bounds=Bounds(min=0, max=4))
    return replace(alone, **{"zero": IDLE, **changed})


def beside(state: ReplicaState) -> Situation:
    both = serving(1, replicas=(*replicas(1), *replicas(1, state, age=10, first=1)))
    return replace(situation(signals(1, **QUIET), both, bounds=Bounds(min=0, max=4)), zero=IDLE)


def test_one_that_nobody_has_asked_for_long_goes() -> None:
    assert after(quiet(), memory=known()).replicas == 0


@pytest.mark.parametrize("state", [ReplicaState.FAILED, ReplicaState.UNSCHEDULABLE])
def test_one_that_never_came_to_serve_goes_too(state: ReplicaState) -> None:
    """Else a crash loop holds its GPU for as long as nobody asks for anything."""
    alone = serving(1, replicas=replicas(1, state))
    never = replace(situation(signals(0, live=0), alone, bounds=Bounds(min=0, max=4)), zero=IDLE)
    assert after(never, memory=known(ready=0)).replicas == 0
    assert after(replace(never, zero=replace(IDLE, idle_s=899.0)), memory=known(ready=0)).replicas == 1
    assert after(replace(never, zero=replace(IDLE, waiting=2.0)), memory=known(ready=0)).replicas == 1


@pytest.mark.parametrize(
    "asked",
    [
        quiet(zero=replace(IDLE, waiting=2.0)),
        quiet(zero=replace(IDLE, idle_s=899.0)),
        quiet(zero=replace(IDLE, idle_s=None)),
        quiet(busy="a rollout"),
        quiet(busy="a rollout", lets_go=True),
        replace(situation(signals(1, **{**QUIET, "inflight": 1}), bounds=Bounds(min=0, max=4)), zero=IDLE),
        beside(ReplicaState.STARTING),
        beside(ReplicaState.NODE_COMING),
        replace(situation(signals(1, **QUIET), bounds=Bounds(min=1, max=4)), zero=IDLE),
    ],
    ids=[
        "requests wait at the gateway",
        "idle for too short",
        "a gateway that does not say",
        "a rollout",
        "a rollout that waits for room, as nothing that served would be left to go back to",
        "a request in flight",
        "another that starts",
        "another whose node is coming",
        "a minimum",
    ],
)
def test_the_last_one_stays_while_anybody_asks_or_anything_comes(asked: Situation) -> None:
    assert after(asked, memory=known()).replicas >= 1


def why(asked: Situation, **memory: Any) -> str:
    (role,) = after(asked, memory=known(**memory)).roles
    return role.awake.why


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (quiet(zero=replace(IDLE, waiting=2.0)), "requests wait at the gateway"),
        (quiet(zero=replace(IDLE, idle_s=100.0)), "it sleeps once nobody has asked for 15 minutes"),
        (
            quiet(zero=replace(IDLE, idle_s=600.0)),
            "nobody has asked since 1970-01-12 13:36 UTC, and it sleeps after 1970-01-12 13:52 UTC if nobody does",
        ),
        (
            quiet(zero=replace(IDLE, idle_s=0.0, unsaid=True)),
            "a replica does not say whether it is asked for anything, which counts as asking",
        ),
        (quiet(zero=replace(IDLE, idle_s=None, silent=True)), "the wake query has no answer, so nobody knows who asks"),
        (quiet(zero=replace(IDLE, idle_s=None)), "it sleeps once nobody has asked for 15 minutes"),
        (quiet(busy="a rollout is under way"), "a rollout is under way"),
        (beside(ReplicaState.STARTING), "replicas are starting"),
        (replace(situation(signals(1, **QUIET), bounds=Bounds(min=1, max=4)), zero=IDLE), ""),
        (situation(signals(1, **QUIET), bounds=Bounds(min=0, max=4)), ""),
        (quiet(), ""),
    ],
    ids=[
        "requests wait",
        "a request a moment ago",
        "quiet for a while",
        "an engine that does not say",
        "a query without an answer",
        "the first look",
        "a rollout",
        "another that starts",
        "a minimum",
        "sleep was not asked for",
        "it sleeps",
    ],
)  # fmt: skip
def test_why_one_that_may_sleep_does_not_is_told(asked: Situation, told: str) -> None:
    assert why(asked) == told


def test_one_that_has_just_been_woken_is_told_when_it_may_sleep() -> None:
    assert why(quiet(), woken_at=NOW - 60).endswith("and it sleeps after 1970-01-12 14:01 UTC if nobody does")


def test_missing_metrics_are_told_as_what_keeps_it_awake() -> None:
    dark = situation(replace(signals(1, **QUIET), reachable=False), bounds=Bounds(min=0, max=4))
    assert why(replace(dark, zero=replace(IDLE, idle_s=None))).startswith(
        "metrics are missing, as MetricsAvailable says"
    )


def test_the_reason_is_the_same_while_the_same_keeps_it_awake() -> None:
    still = [why(quiet(zero=replace(IDLE, idle_s=600.0))), why(quiet(zero=replace(IDLE, idle_s=100.0)))]
    for later in (15.0, 30.0):
        for idle, said in zip((600.0, 100.0), still, strict=True):
            scene = quiet(zero=replace(IDLE, idle_s=idle + later))
            (role,) = decide(now=NOW + later, situation=scene, memory=known()).roles
            assert role.awake.why == said


def noted(at: float | None, *, asked_at: float) -> Zero:
    return wake_of(
        now=NOW, after_s=900, queried=False, waiting=None, woken_at=at, asked_at=asked_at, reachable=True
    )


def test_one_that_is_woken_at_the_very_tick_at_which_it_would_have_gone_stays() -> None:
    assert after(quiet(zero=noted(None, asked_at=NOW - 5000)), memory=known()).replicas == 0
    assert after(quiet(zero=noted(NOW, asked_at=NOW - 5000)), memory=known()).replicas == 1


@pytest.mark.parametrize("back", [30.0, 3600.0])
def test_one_that_sleeps_is_woken_though_the_clock_was_put_back(back: float) -> None:
    memory = after(quiet(), memory=known()).memory
    gone = replace(situation(signals(0, **QUIET), serving(0), bounds=Bounds(min=0, max=4)), zero=IDLE)
    now = NOW - back
    asleep = after(gone, gone, memory=memory, begin=now)
    assert asleep.replicas == 0
    woken = replace(gone, zero=replace(IDLE, woken_at=now + 60))
    assert after(woken, memory=asleep.memory, begin=now + 60).replicas == 1


def test_a_clock_that_was_ahead_keeps_nobody_awake() -> None:
    still = signals(1, **QUIET)
    asked = last_asked(NOW + 30 * 86_400, now=NOW, signals=still, waiting=0.0, noted_at=None, counts=True)
    assert asked == NOW


@pytest.mark.parametrize(("live", "asked"), [(1, NOW - 5000), (2, NOW)])
def test_a_replica_of_which_nothing_is_known_may_be_answering_somebody(live: int, asked: float) -> None:
    said = replace(signals(1, **QUIET), live=live)
    assert last_asked(NOW - 5000, now=NOW, signals=said, waiting=0.0, noted_at=None, counts=True) == asked


@pytest.mark.parametrize(
    ("told", "asked"),
    [
        ({"recently": 0.0, "recent_prompt_tokens": 0.0}, NOW - 5000),
        ({"recently": 0.0, "recent_prompt_tokens": 900.0}, NOW),
        ({"recently": None, "recent_prompt_tokens": 0.0}, NOW - 5000),
    ],
    ids=["nobody asked", "those who asked gave up", "only tokens are counted"],
)
def test_who_gives_up_has_asked_though_engines_count_no_such_request(
    told: dict[str, float | None], asked: float
) -> None:
    said = signals(1, **QUIET)
    said = replace(said, replicas=(replace(said.replicas[0], **told),))  # type: ignore[arg-type]
    assert last_asked(NOW - 5000, now=NOW, signals=said, waiting=0.0, noted_at=None, counts=True) == asked


def starting(queue: float | None, *, serve: int = 0) -> Situation:
    """One replica on its way, and so many who wait for it at the gateway."""
    nobody = replace(signals(0), gateway_waiting=queue, live=serve)
    coming = serving(1, replicas=replicas(1, ReplicaState.STARTING, age=20))
    woken = Zero(waiting=queue, idle_s=0.0)
    return replace(situation(nobody, coming, bounds=Bounds(min=0, max=8)), zero=woken)


@pytest.mark.parametrize(
    ("queue", "looks", "come"),
    [(None, 9, 1), (0.0, 9, 1), (300.0, 3, 1), (901.0, 1, 1), (901.0, 2, 3), (1800.0, 2, 4), (9000.0, 2, 5), (9000.0, 4, 8)],
)  # fmt: skip
def test_while_nobody_serves_yet_as_many_are_asked_for_as_pay_back_what_waits_at_the_gateway(
    queue: float | None, looks: int, come: int
) -> None:
    """Each pays back five requests a second, within 90 seconds. Whoever looked only once the first of them serves would begin a start later."""
    decision = after(*[starting(queue)] * looks, memory=known(ready=0, woken_at=NOW - 15, up_at=NOW - 15))
    assert decision.replicas == come
    (role,) = decision.roles
    assert (role.reason == "NoSignals") is (queue is None or queue <= 450)


def test_what_waits_at_the_gateway_is_what_is_told_to_have_asked_for_them() -> None:
    (role,) = after(starting(1800.0), starting(1800.0), memory=known(ready=0)).roles
    assert role.message == "1 to 4 replicas: wanted are 4.0 by those who wait at the gateway"


def test_one_that_takes_long_to_start_brings_no_other_where_it_can_answer_all_who_wait() -> None:
    """Another would take as long. Each start-up would bring one more, of a model that is fetched for the first time."""
    asked, decision = starting(10.0), None
    for look in range(120):
        now = NOW + 15 * look
        decision = decide(now=now, situation=asked, memory=decision.memory if decision else known(ready=0))
        assert decision.replicas == 1, f"after {15 * look} s"


def test_where_all_that_waits_will_be_paid_back_none_that_comes_is_taken_away() -> None:
    asked = starting(10.0)
    sets = (replace(asked.roles[0].sets[0], wanted=4),)
    more = replace(asked, roles=(replace(asked.roles[0], sets=sets),))
    assert after(*[more] * 200, memory=known(ready=0)).replicas == 4


@pytest.mark.parametrize("asleep_s", [3600.0, 8 * 3600.0])
def test_a_deployment_that_wakes_is_as_bursty_and_as_foreseeable_as_it_was_before(asleep_s: float):
    """What nobody asked in its sleep is neither a calm nor a forecast that was passed."""
    learned = LoadMemory(
        at=NOW - 15, level=2.0, burstiness=6.0, surprise=1.1, record=1.1, expected=((NOW + 600, 2.0, 3.0),)
    )
    memory, now, bounds = known(ready=0, load=learned), NOW, Bounds(min=0, max=20)
    nobody = replace(signals(0), latencies=Latencies())
    for waiting in (*[0.0] * int(asleep_s // 300), 3.0):
        asleep = situation(nobody, serving(0), bounds=bounds, zero=Zero(waiting=waiting))
        decision = decide(now=now, situation=asleep, memory=memory)
        memory, now = decision.memory, now + 300
    assert decision.roles[0].reason == "Woken"
    awake = situation(signals(1, rate=2.0), serving(1), bounds=bounds, zero=Zero(waiting=0.0))
    load = decide(now=now, situation=awake, memory=memory).memory.of("serve").load
    assert (load.burstiness, load.surprise, load.record) == (6.0, 1.1, 1.1)
    assert load.level == pytest.approx(2.0)
