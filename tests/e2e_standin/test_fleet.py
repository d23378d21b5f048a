"""Many stand-in engines behind one port, as a Prometheus and clients find them."""

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from common import eventually
from plimsoll.facts.pod_sample import PodSample
from plimsoll.prometheus.exposition import sample_of
from plimsoll.prometheus.vocabulary import vocabulary
from standin.fleet import Fleet
from standin.instance import Instance, State
from standin.told import Told


@pytest.fixture
def fleet() -> Iterator[Fleet]:
    with Fleet() as running:
        yield running


def page(fleet: Fleet, name: str) -> str:
    target = fleet.target("team", name)
    with urllib.request.urlopen(f"http://{target.address}{target.path}", timeout=90) as answer:
        return str(answer.read().decode())


def sample(fleet: Fleet, name: str) -> PodSample:
    return sample_of(page(fleet, name), vocabulary([Told().facts.metrics]), pod=name, at=0.0)


def test_traffic_is_spread_over_all_that_serve(fleet: Fleet):
    for name in ("a", "b", "c"):
        fleet.add("team", name)
    fleet.tell("team", "c", Instance.hang)
    fleet.load(200, input_tokens=20, output_tokens=2)
    assert eventually(lambda: min(sample(fleet, name).finished or 0 for name in ("a", "b")) > 5)
    assert sample(fleet, "c").finished == 0
    assert fleet.counted[1] == 0


def test_more_than_it_can_do_waits(fleet: Fleet):
    fleet.add("team", "a")
    fleet.load(400, input_tokens=500, output_tokens=500)
    assert eventually(lambda: (sample(fleet, "a").waiting or 0) > 0)
    assert (sample(fleet, "a").running or 0) <= Told().limits.max_num_seqs


def test_nobody_takes_what_comes_when_nobody_serves(fleet: Fleet):
    fleet.load(200)
    assert eventually(lambda: fleet.counted[1] > 0)


def test_a_pod_that_is_gone_is_not_found(fleet: Fleet):
    fleet.add("team", "a")
    assert "vllm:num_requests_running" in page(fleet, "a")
    fleet.remove("team", "a")
    with pytest.raises(urllib.error.HTTPError, match="404") as caught:
        page(fleet, "a")
    caught.value.close()


def test_a_crash_begins_counters_anew(fleet: Fleet):
    fleet.add("team", "a")
    fleet.load(200, input_tokens=20, output_tokens=2)
    assert eventually(lambda: (sample(fleet, "a").finished or 0) > 0)
    fleet.load(0)
    fleet.crash("team", "a")
    assert sample(fleet, "a").finished == 0
    assert fleet.tell("team", "a", lambda one: one.state) is State.SERVING


def body(name: str, *words: str, ready: bool = True) -> dict[str, Any]:
    return {
        "metadata": {"namespace": "team", "name": name},
        "spec": {"containers": [{"image": "vllm:v0.33.0", "args": ["serve", "m", *words]}]},
        "status": {"conditions": [{"type": "Ready", "status": str(ready)}]},
    }


def test_pods_of_a_cluster_serve_when_they_are_ready_with_what_they_are_told(fleet: Fleet):
    fleet.keep([body("a", "--max-num-seqs", "4"), body("b", ready=False)])
    assert fleet.pods == [("team", "a")]
    before = fleet.tell("team", "a", lambda one: one)
    fleet.keep([body("a", "--max-num-seqs", "4"), body("b")])
    assert fleet.tell("team", "a", lambda one: one) is before
    fleet.keep([body("a", "--max-num-seqs", "8")])
    assert fleet.tell("team", "a", lambda one: one.told.limits.max_num_seqs) == 8
    assert fleet.pods == [("team", "a")]


def test_a_container_that_was_started_again_begins_anew(fleet: Fleet):
    one = body("a")
    fleet.keep([one])
    before = fleet.tell("team", "a", lambda instance: instance)
    fleet.keep([one])
    assert fleet.tell("team", "a", lambda instance: instance) is before
    one["status"]["containerStatuses"] = [{"name": "engine", "restartCount": 1}]
    fleet.keep([one])
    assert fleet.tell("team", "a", lambda instance: instance) is not before


def test_each_pod_answers_at_its_own_address(fleet: Fleet):
    url = fleet.add("team", "a")
    asked = json.dumps({"prompt": "one two three", "max_tokens": 3}).encode()
    request = urllib.request.Request(f"{url}/v1/completions", asked, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=90) as answer:
        assert json.load(answer)["usage"] == {"prompt_tokens": 4, "total_tokens": 7, "completion_tokens": 3}
    assert sample(fleet, "a").finished == 1
