"""The figures that are told with a decision agree with the number that was decided."""

from dataclasses import replace
from typing import Any

import pytest

from plimsoll.control.decision import Need
from plimsoll.control.need import whole_replicas
from plimsoll.control.situation import ReplicaState, Role
from plimsoll.control.telling import figures
from tests.control.situations import NOW, after, known, replicas, serving, signals, situation


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        (1.0, "1.0"),
        (1.02, "1.1"),
        (2.04, "2.1"),
        (1.3, "1.3"),
        (0.61, "0.7"),
        (0.0, "0.0"),
        (4.1 + 1e-10, "4.1"),
    ],
)
def test_a_wish_is_told_so_that_the_number_of_replicas_follows_from_it(wanted: float, told: str):
    need = Need(forecast=wanted, lead_s=180.0)
    assert f"wanted are {told} by the load 180 s ahead" in figures(
        Role(sets=(serving(),), signals=signals(2)), need
    )
    assert whole_replicas(float(told)) == whole_replicas(wanted)


@pytest.mark.parametrize(
    ("ago_s", "window_s", "told"),
    [
        (105.0, None, "105 of 120 seconds since the last step down"),
        (119.9, None, "119 of 120 seconds since the last step down"),
        (15.0, 40.0, "15 of 40 seconds since the last step down"),
    ],
)
def test_a_wait_that_is_not_over_is_never_told_as_over(ago_s: float, window_s: float | None, told: str):
    memory = known(ready=3, down_at=NOW - ago_s, wishes=((NOW - 10, 0.5),))
    idle = situation(signals(3, inflight=1, rate=0.1), serving(3), down_window_s=window_s)
    assert after(idle, memory=memory).roles[0].message.endswith(told)


@pytest.mark.parametrize(
    ("begun_s", "told"), [(449.0, "7 of 8 minutes of watching"), (20.0, "0 of 8 minutes of watching")]
)
def test_minutes_are_whole_ones(begun_s: float, told: str):
    memory = known(ready=3, begun=NOW - begun_s, wishes=((NOW - 10, 0.5),))
    idle = situation(signals(3, inflight=1, rate=0.1), serving(3))
    assert after(idle, memory=memory).roles[0].message.endswith(told)


@pytest.mark.parametrize(
    ("window_s", "told"), [(None, "in the last 8 minutes"), (60.0, "in the last 60 seconds")]
)
def test_a_short_window_is_told_in_seconds(window_s: float | None, told: str):
    memory = known(ready=3, wishes=((NOW - 10, 3.0),))
    idle = situation(signals(3, inflight=1, rate=0.1), serving(3), down_window_s=window_s)
    assert after(idle, memory=memory).roles[0].message.endswith(told)


@pytest.mark.parametrize(
    ("count", "told"),
    [
        (1, "1 replica found no GPUs for 10 minutes; it is asked for again later"),
        (2, "2 replicas found no GPUs for 10 minutes; they are asked for again later"),
    ],
)
def test_one_replica_is_it_and_not_they(count: int, told: str):
    lost = replicas(count, ReplicaState.UNSCHEDULABLE, age=650, first=2)
    asked = situation(
        signals(2, inflight=60, waiting=20, rate=8.0, kv=0.9), serving(2, replicas=(*replicas(2), *lost))
    )
    assert after(asked).roles[0].message == told


@pytest.mark.parametrize(
    ("provision_s", "also", "minutes"),
    [(900.0, 0, 45), (1800.0, 0, 90), (1800.0, 1, 10)],
    ids=["three times as long as a node takes", "an hour and a half", "beside one for which none is made"],
)
def test_replicas_that_are_taken_back_are_said_to_have_waited_as_long_as_a_node_is_waited_for(
    provision_s: float, also: int, minutes: int
):
    lost = (
        *replicas(1, ReplicaState.NODE_COMING, age=5500, first=2),
        *replicas(also, ReplicaState.UNSCHEDULABLE, age=650, first=3),
    )
    there = serving(2, replicas=(*replicas(2), *lost), provision_s=provision_s)
    asked = situation(signals(2, inflight=60, waiting=20, rate=8.0, kv=0.9), there)
    assert f" found no GPUs for {minutes} minutes; " in after(asked).roles[0].message


@pytest.mark.parametrize(
    ("ready", "told"),
    [
        (0, "no replica is ready yet to say what is needed"),
        (2, "no replica that is ready says what is needed"),
    ],
)
def test_ready_replicas_that_say_nothing_are_not_called_unready(ready: int, told: str):
    words = ("running", "waiting", "finished", "arrived", "recently", "inflight_mean")
    unsaid: dict[str, Any] = dict.fromkeys(words)
    mute = tuple(replace(each, **unsaid) for each in signals(ready).replicas)
    there = (*replicas(ready), *replicas(1, ReplicaState.STARTING, age=20, first=5))
    asked = situation(replace(signals(ready), replicas=mute), serving(replicas=there))
    role = after(asked).roles[0]
    assert (role.reason, role.message) == ("NoSignals", told)
