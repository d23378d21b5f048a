"""Replicas as a cluster keeps them, the routers before them, and what of them a Prometheus sees."""

from collections import Counter

import pytest

from plimsoll.control.situation import ReplicaState
from plimsoll.simulate.estate import Estate
from plimsoll.simulate.request import Request
from plimsoll.simulate.router import InferencePool, Router, Service
from plimsoll.simulate.scrapes import Prometheus
from plimsoll.simulate.world import STARTS_S, Clients, Hardware, Scrapes
from tests.simulate.worlds import world


def estate(replicas: int = 2, **changes) -> Estate:
    made = Estate(world(**changes))
    made.begin(replicas)
    return made


def states(made: Estate) -> Counter[ReplicaState]:
    return Counter(one.state for one in made.instances)


def test_a_replica_takes_its_start_up_time_and_costs_from_when_it_has_its_devices():
    made = estate(1)
    made.tell(2, 100.0)
    assert states(made)[ReplicaState.STARTING] == 1
    start = made.next_at - 100.0
    assert start in STARTS_S
    made.happen(100.0 + start)
    assert len(made.ready) == 2
    made.close(1000.0)
    assert made.device_seconds == pytest.approx(2 * (1000 + 900))


def test_start_up_times_are_the_same_whoever_asks_and_when():
    first, second = estate(1), estate(1)
    first.tell(4, 10.0)
    second.tell(2, 500.0)
    assert first.world.start_s(1) == second.next_at - 500.0


def test_beyond_what_is_there_a_node_is_made_and_beyond_that_a_replica_waits():
    made = estate(2, hardware=Hardware(ready=2, growing=1, node_s=100, devices=1.0))
    made.tell(4, 0.0)
    assert states(made) == {ReplicaState.READY: 2, ReplicaState.NODE_COMING: 1, ReplicaState.UNSCHEDULABLE: 1}
    made.happen(made.next_at)
    assert states(made)[ReplicaState.STARTING] == 1
    made.close(1000.0)
    assert made.device_seconds < 3 * 1000


def test_what_becomes_free_goes_to_who_waits():
    made = estate(2, hardware=Hardware(ready=2, growing=0, devices=1.0))
    made.tell(3, 0.0)
    made.tell(2, 10.0)
    assert states(made) == {ReplicaState.READY: 2}
    made.tell(3, 20.0)
    made._let_go(made.ready[0], 30.0)
    made.sweep(31.0)
    assert states(made) == {ReplicaState.READY: 1, ReplicaState.STARTING: 1}


def test_going_down_takes_what_does_not_serve_yet_then_the_youngest():
    made = estate(2)
    made.tell(4, 0.0)
    made.tell(1, 5.0)
    assert [one.ordinal for one in made.present] == [0]
    assert [one.ordinal for one in made.instances] == [0, 1]


def test_a_replica_drains_before_it_goes_and_costs_until_then():
    made = estate(2)
    leaving = made.ready[1]
    leaving.engine.submit(Request(0.0, 300, 500), 0.0)
    made.tell(1, 1.0)
    made.sweep(2.0)
    assert leaving in made.instances
    leaving.engine.advance(100.0)
    made.sweep(100.0)
    assert leaving not in made.instances
    assert (len(leaving.engine.finished), made.lost) == (1, [])
    assert made.device_seconds == pytest.approx(2 * 100)


def test_patience_with_a_drain_ends():
    made = estate(2, drain_s=10.0)
    request = Request(0.0, 300, 4000)
    made.ready[1].engine.submit(request, 0.0)
    made.tell(1, 1.0)
    made.happen(11.0)
    assert made.lost == [request]


def test_a_crash_loses_requests_and_counters_and_starts_again():
    made = estate(1, crashes_per_replica_day=1000.0)
    request = Request(0.0, 300, 4000)
    made.ready[0].engine.submit(request, 0.0)
    made.happen(made.next_at)
    assert made.lost == [request]
    assert states(made) == {ReplicaState.STARTING: 1}
    assert made.instances[0].engine.generation_tokens == 0
    made.happen(made.next_at)
    assert len(made.ready) == 1


def test_each_start_after_a_crash_takes_a_time_of_its_own():
    made = estate(1, crashes_per_replica_day=1000.0)
    took = []
    for _ in range(12):
        made.happen(made.next_at)
        crashed = made.instances[0].since
        made.happen(made.next_at)
        took.append(round(made.instances[0].since - crashed))
    assert set(took) <= set(STARTS_S)
    assert len(set(took)) > 6, "one long start would stand for all that follow"


def loads(router: Router, count: int, begin: float) -> Counter[str]:
    """Requests by replica, one a second."""
    picked = (router.pick(begin + place) for place in range(count))
    return Counter(one.name for one in picked if one is not None)


def test_behind_a_service_a_new_replica_fills_as_connections_are_made_anew():
    made = estate(2, clients=Clients(connections=100, lifetime_s=300))
    router = Service(made)
    loads(router, 2000, 0.0)
    made.tell(3, 2000.0)
    made.happen(made.next_at)
    soon = loads(router, 100, 2100.0)["replica-0002"] / 100
    later = loads(router, 3000, 4000.0)["replica-0002"] / 3000
    assert soon < 0.25
    assert later == pytest.approx(1 / 3, abs=0.06)


def test_where_engines_close_connections_a_new_replica_has_its_share_at_once():
    made = estate(2, clients=Clients(closed=True))
    router = Service(made)
    loads(router, 2000, 0.0)
    made.tell(3, 2000.0)
    made.happen(made.next_at)
    assert loads(router, 3000, 2100.0)["replica-0002"] / 3000 == pytest.approx(1 / 3, abs=0.03)


def test_clients_of_a_replica_that_leaves_connect_elsewhere_at_once():
    made = estate(3)
    router = Service(made)
    loads(router, 500, 0.0)
    made.tell(1, 500.0)
    assert set(loads(router, 200, 501.0)) == {"replica-0000"}


def test_an_inference_pool_sends_to_the_fewest_in_flight():
    made = estate(3)
    for _ in range(5):
        made.ready[0].engine.submit(Request(0.0, 300, 1000), 0.0)
    router = InferencePool(made)
    picked = []
    for _ in range(6):
        instance = router.pick(0.1)
        assert instance is not None
        instance.engine.submit(Request(0.1, 300, 1000), 0.1)
        picked.append(instance.name)
    assert Counter(picked) == {"replica-0001": 3, "replica-0002": 3}


@pytest.mark.parametrize("router", [Service, InferencePool])
def test_without_a_ready_replica_there_is_nowhere_to_go(router):
    assert router(estate(0)).pick(1.0) is None


def test_scrapes_are_lost_and_late_as_often_as_said():
    made = estate(2, scrapes=Scrapes(lost=0.2, late=0.1))
    prometheus = Prometheus(made.world, histograms=False)
    ages: Counter[float] = Counter()
    seen = 0
    for place in range(2000):
        for sample in prometheus.scrape(made.ready, 15.0 * place):
            ages[15.0 * place - sample.at] += 1
            seen += 1
    assert seen / 4000 == pytest.approx(0.8, abs=0.03)
    assert set(ages) == {0.0, 15.0}
    assert ages[15.0] / 4000 == pytest.approx(0.1, abs=0.02)


def test_a_scrape_says_what_the_engine_counts():
    made = estate(1, scrapes=Scrapes(lost=0.0, late=0.0))
    engine = made.ready[0].engine
    for place in range(40):
        engine.submit(Request(float(place), 300, 50), float(place))
    engine.advance(39.5)
    (sample,) = Prometheus(made.world, histograms=True).scrape(made.ready, 39.5)
    assert (sample.finished, sample.running, sample.waiting) == (39.0, 1.0, 0.0)
    assert sample.ttft is not None
    assert sample.prompt_lengths is not None
    assert sample.itl is not None
    assert sample.ttft.count == 40
    assert sample.prompt_lengths.mean == pytest.approx(300)
    assert sample.itl.quantile(0.5) == pytest.approx(0.02, abs=0.006)
    assert sample.kv_tokens == 24000
