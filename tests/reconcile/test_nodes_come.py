"""Whether a rollout waits for nodes that are to be made, or gives up what asks for nodes that nobody has."""

from __future__ import annotations

import pytest

from plimsoll.facts.inventory import Pool
from plimsoll.reconcile.decide import decide
from plimsoll.reconcile.rolling import rules_for
from tests.planning.asking import pool
from tests.reconcile.test_decide import seen


@pytest.mark.parametrize(
    ("there", "come"),
    [(pool(nodes=1), False), (pool(free={}, declared_nodes=1), True)],
    ids=["a node is there", "a class of nodes is declared"],
)
def test_nodes_come_only_where_the_plan_waits_for_a_declared_class(there: Pool, come: bool) -> None:
    asked = seen(pools=(there,))
    made = decide(asked)
    assert rules_for(asked, asked.deployment.spec, made.plan, made.revisions).nodes_come is come
