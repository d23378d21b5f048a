"""From a real engine's preemptions, through a real Prometheus, to the change that the operator would make, with the sizes of that engine,
and on to a second engine that runs with it, is judged beside the first, and goes as it preempts as many.

A change that is kept, from the alert on, is `test_alerted_retune`'s; what it brings benchmarks/retune.py measures.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from asking import Engine
from cluster import Cluster
from cluster.images import Recipe
from cluster.metrics import Prometheus
from plimsoll import names
from preempting import (
    SEQUENCES,
    START_SECONDS,
    USERS,
    Load,
    admin,
    arguments,
    retunes,
    spec,
    state,
    under,
    until,
    with_model,
)
from real import Namespace
from turns.running import Desk, Operator

pytestmark = [pytest.mark.real_node, pytest.mark.real_engine]


@pytest.fixture
def space(real_cluster: Cluster) -> Iterator[Namespace]:
    with with_model(real_cluster, "preempting") as made:
        yield made


@pytest.fixture
def prometheus(space: Namespace) -> Iterator[Prometheus]:
    leaders = f"{names.LABEL_LEADER}=true"
    with space.cluster.prometheus(
        namespaces=[space.name], selector=leaders, port="http", interval_ms=1000
    ) as one:
        yield one


@pytest.fixture
def desk(
    space: Namespace, prometheus: Prometheus, supervisor_image: Recipe, tmp_path: Path
) -> Iterator[Desk]:
    # Twenty requests tell little, and enough: what is kept by chance is looked at again once it serves alone.
    quick = {"canarySeconds": 4, "canaryRequests": 20, "canaryLimitSeconds": 1200}
    file = tmp_path / "admin.json"
    file.write_text(admin(prometheus.url, supervisor_image.reference, restarts=quick))
    args = ("--standalone", f"--lease-namespace={space.name}", f"--config={file}", "--log-level=debug")
    with Operator(space.cluster, tmp_path, args=args):
        yield Desk(space.cluster, space.name)


def test_preemptions_of_a_real_engine_ask_for_as_many_requests_as_its_pool_holds_and_what_brings_none_of_it_is_taken_back(
    desk: Desk, prometheus: Prometheus
) -> None:
    # What the patch says again is the engine's last word: whatever a retune asks for, as many run as before.
    tuning = {"allow": ["maxSequences"]}
    desk.apply(**spec(1, {"mode": "dryRun", **tuning}, stubborn=True))
    until(desk, lambda: desk.condition("Ready") == ("True", "Serving"))
    (served,), (before,) = desk.deployments(), arguments(desk)
    service = desk.cluster.api.get(f"/api/v1/namespaces/{desk.namespace}/services/chat")
    url = f"http://{service['spec']['clusterIP']}"
    assert Engine(url=url).answers(START_SECONDS)
    with Load(url, USERS) as load:
        under(load, desk, lambda: retunes(desk))
        preempted = prometheus.query("sum(vllm:num_preemptions_total)")[0].value
        (change,) = retunes(desk)
        assert preempted > 0
        assert (change["setting"], change["before"]) == ("maxSequences", str(SEQUENCES)), change
        # By the lengths that are asked for the pool holds nine; those that were seen so far are a sample.
        assert 8 <= int(change["after"]) <= 12, change
        assert set(desk.deployments()) == {served}, "nothing is done in a dry run"
        desk.apply(**spec(1, {"mode": "auto", **tuning}, stubborn=True))
        under(load, desk, lambda: state(desk) == "Canary")
    # The second engine starts sooner while nobody asks the first one, and whoever asks then finds both.
    until(desk, lambda: state(desk) == "Judging")
    tried = int(desk.get()["status"]["tuning"]["after"])
    assert desk.deployments()[served] == 1, "the canary comes beside the one that serves"
    assert sorted(arguments(desk)) == sorted([before, with_sequences(before, tried)])
    with Load(url, USERS, seed=2) as load:
        under(load, desk, lambda: failed(desk))
    # What a person may do, now that no setting helps, may be told beside it.
    (ended,) = failed(desk)
    assert (ended["setting"], ended["after"]) == ("maxSequences", str(tried)), ended
    until(desk, lambda: desk.deployments() == {served: 1} and arguments(desk) == [before])
    until(desk, lambda: desk.condition("Ready") == ("True", "Serving"))
    assert Engine(url=url).answers(START_SECONDS)
    said = {one["reason"] for one in desk.items("v1/events")}
    steps = {"Suggested", "Planned", "Canary", "Judging", "RollingBack", "Failed"}
    assert {f"Retune{step}" for step in steps} <= said


def failed(desk: Desk) -> list[dict[str, str]]:
    return [one for one in retunes(desk) if one["state"] == "Failed"]


def with_sequences(args: list[str], number: int) -> list[str]:
    """The plan's own word, which comes before that of the patch."""
    changed, place = list(args), args.index("--max-num-seqs")
    changed[place + 1] = str(number)
    return changed
