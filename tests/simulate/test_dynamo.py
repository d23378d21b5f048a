"""The Dynamo-like planner: a floor from the load, and single steps from latency."""

from plimsoll.simulate.policies.dynamo import Dynamo
from tests.simulate.views import latencies, view, wish
from tests.simulate.worlds import SLO


def test_dynamo_sets_a_floor_from_arrivals_and_steps_from_latency():
    policy = Dynamo(SLO, requests_per_second=2.0)
    for tick in range(1, 13):
        now = 15.0 * tick
        policy.decide(view(now, *[latencies(50.0 * tick, 1.0, 0.07, 60.0 * tick)] * 2))
    wanted = policy.decide(view(375.0, *[latencies(2000.0, 1.0, 0.07, 1500.0)] * 2))
    assert wanted is not None
    assert (wanted.reason, wanted.replicas) == ("Floor", 4)
    slow = Dynamo(SLO, requests_per_second=100.0)
    slow.decide(view(15.0, *[latencies(50.0, 5.0, 0.07, 50.0)] * 2))
    assert wish(slow, view(30.0, *[latencies(100.0, 5.0, 0.07, 100.0)] * 2)) == 3
    assert slow.decide(view(45.0, *[latencies(150.0, 5.0, 0.07, 150.0)] * 2, pending=1)) is None
    quick = Dynamo(SLO, requests_per_second=100.0, floor_every_s=15.0)
    quick.decide(view(15.0, *[latencies(50.0, 0.1, 0.02, 50.0)] * 3))
    assert wish(quick, view(30.0, *[latencies(100.0, 0.1, 0.02, 100.0)] * 3)) == 2
    near = Dynamo(SLO, requests_per_second=100.0, floor_every_s=15.0)
    near.decide(view(15.0, *[latencies(50.0, 1.8, 0.02, 50.0)] * 3))
    assert near.decide(view(30.0, *[latencies(100.0, 1.8, 0.02, 100.0)] * 3)) is None, (
        "within 80% of a target"
    )


def test_dynamo_sets_its_floor_as_often_as_it_is_told():
    def floors(every: float) -> list[float]:
        policy = Dynamo(SLO, requests_per_second=2.0, floor_every_s=every)
        seen = [
            view(15.0 * tick, *[latencies(50.0 * tick, 1.0, 0.07, 60.0 * tick)] * 2) for tick in range(1, 41)
        ]
        return [here.now for here in seen if (told := policy.decide(here)) and told.reason == "Floor"]

    assert floors(60.0)[0] == 60.0
    assert floors(180.0)[0] == 180.0
