"""What is kept for pods that are on no node yet, wherever the others of them went."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plimsoll.api.config import OperatorConfig
from plimsoll.facts.groups import Reservation
from plimsoll.facts.serving import PodSeen, Serving, SetSeen, Stage
from plimsoll.reconcile.decide import decide
from plimsoll.reconcile.promises import promises
from plimsoll.reconcile.seen import Seen
from tests.planning.asking import LLAMA, deployment, facts, inventory, planned, pool
from tests.reconcile.test_decide import after, seen, serving


def test_each_pool_is_held_for_all_that_may_still_come_to_it() -> None:
    """Half are placed, in whichever pool; nobody else is to plan on what the other half may need."""
    pools = pool(nodes=1, zone="a"), pool(nodes=1, zone="b")
    asked = deployment(source=LLAMA, replicas=8)
    made = planned(asked, *pools)

    def kept_for(serving: Serving) -> tuple[Reservation, ...]:
        seen = Seen(
            deployment=asked, inventory=inventory(*pools), facts=facts(asked), now=0.0, serving=serving
        )
        return promises(seen, made, ["chat-a"])

    total = {one.pool: one.pods for one in kept_for(Serving())}
    assert sum(total.values()) == 8
    bound = tuple(PodSeen(name=str(n), uid=str(n), stage=Stage.READY, node="n") for n in range(4))
    half = Serving(sets=(SetSeen(name="chat-a", replicas=8, pods=bound),))
    left = {one.pool: one.pods for one in kept_for(half)}
    assert left == {key: min(4, pods) for key, pods in total.items()}
    whole = Serving(sets=(SetSeen(name="chat-a", replicas=8, pods=bound * 2),))
    assert kept_for(whole) == ()


@pytest.mark.parametrize(
    "stands",
    [
        {"paused": True},
        {"paused": True, "workload": {"contextTokens": 8192}},
        {"workload": {"preset": "nobody-knows-this"}},
        {"topology": {"gpuProducts": ["H1000"]}},
        {"podPatches": [{"op": "remove", "path": "/spec/nothing/of/it"}]},
    ],
    ids=["paused", "paused and edited", "a preset that is not there", "a GPU that nobody knows",
         "cannot be written down"],
)  # fmt: skip
def test_pods_that_are_still_to_come_while_nothing_is_changed_keep_what_was_promised_to_them(
    stands: dict[str, object],
) -> None:
    admin = OperatorConfig.model_validate({"trust": {"podPatches": {"allow": ["/spec/nothing/*"]}}})
    asked = seen(spec={"replicas": 3}, config=admin)
    first = decide(asked)
    (there,) = serving(first).sets
    on_its_way = replace(there, pods=(*there.pods[:1], replace(there.pods[1], node=None)))
    edited = deployment(**{"replicas": 3, **stands})
    kept = replace(after(first, asked), serving=Serving(sets=(on_its_way,)), deployment=edited)
    assert sum(one.pods for one in decide(kept).reservations) == 2
    assert decide(replace(kept, serving=serving(first))).reservations == ()
