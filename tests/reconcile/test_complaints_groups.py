"""What users of other operators complained about in replicas over nodes, where the objects of each turn show that it is not so here.

Each test is named after the complaint; what a scheduler does with such groups is in `tests/control/rollout/test_complaints.py`.
"""

from __future__ import annotations

from dataclasses import replace

from plimsoll.reconcile.decide import decide
from tests.reconcile.test_complaints import grouped, of_kind, over_nodes
from tests.reconcile.test_decide import hashes


def test_an_engine_over_nodes_waits_for_gpus_that_its_pods_do_not_bring_together() -> None:
    """AIBrix 927 and 1604: a placement group that was never filled, as too few GPUs joined, or under other addresses than were asked
    for. Here both pods bring all that the layout needs, and every one is known by the address that the engine asks for."""
    topology = {"tensor": 8, "pipeline": 2, "executor": "ray"}
    decision = decide(over_nodes(replicas=1, topology=topology))
    pods = [one["spec"]["template"]["spec"]["containers"][0] for one in of_kind(decision, "StatefulSet")]
    (revision,) = decision.revisions.values()
    assert (
        sum(int(pod["resources"]["limits"]["nvidia.com/gpu"]) for pod in pods) == revision.entry.layout.gpus
    )
    head, other = sorted((" ".join(pod["args"]) for pod in pods), key=lambda words: "--head" not in words)
    assert "ray start --head --port=6379" in head
    assert "--address=$(PLIMSOLL_LEADER):6379" in other
    assert "vllm serve" not in other, "one engine, in the head alone"
    for pod, words in zip(pods, (head, other), strict=True):
        assert "--node-ip-address=$(VLLM_HOST_IP)" in words
        (address,) = (one["valueFrom"] for one in pod["env"] if one["name"] == "VLLM_HOST_IP")
        assert address["fieldRef"]["fieldPath"] == "status.podIP"


def test_the_leader_of_a_group_is_killed_twice_by_one_update() -> None:
    """LeaderWorkerSet 291: its workers' restart, which the update had brought, restarted it once more. Here what serves goes once,
    what comes is made once, and nothing of either is touched in between."""
    asked = over_nodes(replicas=2)
    decision = decide(asked)
    edited = over_nodes(replicas=2, podAnnotations={"team": "b"}).deployment
    there: list[dict[str, str]] = []
    for _ in range(12):
        there.append({ref: at for ref, at in hashes(decision).items() if ref.startswith("StatefulSet")})
        decision = decide(replace(grouped(decision, asked), deployment=edited))
    assert decision.rollout is not None
    assert decision.rollout.settled
    assert there[0].keys().isdisjoint(there[-1])
    for name in {name for objects in there for name in objects}:
        (digest,) = {objects[name] for objects in there if name in objects}
        turns = [number for number, objects in enumerate(there) if name in objects]
        assert digest
        assert turns == list(range(turns[0], turns[-1] + 1)), f"{name} went and came again"
