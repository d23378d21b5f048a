"""A pinned plan of several sets: which of them gets how many replicas, and when a further one stands by."""

from dataclasses import replace

import pytest

from plimsoll.planning.pinning import Wish
from plimsoll.planning.plan import Outcome
from tests.planning.asking import deployment, planned, pool

CHAT = {"preset": "chat"}


def test_more_replicas_than_the_pinned_hardware_holds_add_a_set_beside_it():
    first = planned(deployment(workload=CHAT, replicas=8), pool(nodes=1))
    own = pool(free={0: 1}, held={"team-a/chat": 8})
    again = planned(deployment(workload=CHAT, replicas=10), own, pool("L40S-48GB", 4), pinned=first)
    assert again.replicas == 10
    assert again.sets[0].digest == first.sets[0].digest
    assert again.sets[0].replicas == 8
    assert again.sets[1].hardware.gpu == "L40S-48GB"
    short = planned(deployment(workload=CHAT, replicas=10), own, pinned=first)
    assert (short.outcome, short.replicas, short.replicas_wanted) == (Outcome.SHORT, 8, 10)


CHEAP, DEAR = "A100-SXM-80GB", "H100-SXM-80GB"
MIXED = {"workload": CHAT, "scaling": {"max": 9}, "topology": {"tensor": 1}}


def two_pools(cheap, dear):
    """With so many GPUs of each held by the deployment, of two cheap and four dear ones."""
    return (
        pool(CHEAP, nodes=1, free={2 - cheap: 1}, held={"team-a/chat": cheap}, price_per_hour="16"),
        pool(DEAR, nodes=1, free={4 - dear: 1}, held={"team-a/chat": dear}, price_per_hour="64"),
    )


def by_gpu(made):
    return {one.hardware.gpu: one.replicas for one in made.sets}


def test_whoever_finds_no_more_devices_gets_a_set_without_replicas_on_the_cheapest_others():
    asked = deployment(**MIXED)
    first = planned(asked, *two_pools(0, 0), wish=Wish(replicas=2))
    assert by_gpu(first) == {CHEAP: 2}
    again = planned(asked, *two_pools(2, 0), pinned=first, wish=Wish(replicas=2))
    assert by_gpu(again) == {CHEAP: 2}
    full = planned(asked, *two_pools(2, 0), pinned=first, wish=Wish(replicas=2, further=True))
    assert by_gpu(full) == {CHEAP: 2, DEAR: 0}
    assert full.sets[0] == first.sets[0]
    assert planned(asked, *two_pools(2, 0), pinned=full, wish=Wish(replicas=2, further=True)) == full
    cheap, _ = two_pools(2, 0)
    taken = pool(DEAR, nodes=1, free={0: 1}, price_per_hour="64")
    nowhere = planned(asked, cheap, taken, pinned=first, wish=Wish(replicas=2, further=True))
    assert by_gpu(nowhere) == {CHEAP: 2}


@pytest.mark.parametrize(
    ("there", "wished", "after"),
    [
        ((2, 1), (2, 3), (2, 3)),
        ((1, 3), (2, 2), (2, 2)),
        ((2, 2), (1, 2), (1, 2)),
        ((2, 2), (2, 6), (2, 4)),
        ((2, 2), None, (2, 3)),
    ],
    ids=[
        "more",
        "another mix of as many",
        "of the first set",
        "as far as there is room",
        "nobody says whose",
    ],
)
def test_each_set_gets_the_replicas_that_are_wished_for_it(there, wished, after):
    asked = deployment(**MIXED)
    first = planned(asked, *two_pools(0, 0), wish=Wish(replicas=2))
    full = planned(asked, *two_pools(2, 0), pinned=first, wish=Wish(replicas=2, further=True))
    digests = [one.digest for one in full.sets]
    stood = Wish(replicas=sum(there), shares=dict(zip(digests, there, strict=True)))
    mixed = planned(asked, *two_pools(2, 0), pinned=full, wish=stood)
    assert tuple(by_gpu(mixed).values()) == there
    wish = Wish(replicas=5)
    if wished is not None:
        wish = Wish(replicas=sum(wished), shares=dict(zip(digests, wished, strict=True)))
    moved = planned(asked, *two_pools(*there), pinned=mixed, wish=wish)
    assert tuple(by_gpu(moved).values()) == after


def test_a_pinned_mix_keeps_the_replicas_that_its_load_needs():
    asked = deployment(workload=CHAT | {"concurrency": 2000})
    pools = (pool(free={3: 1}, devices_per_node=8), pool("L4-24GB", 8))
    first = planned(asked, *pools)
    assert len(first.sets) == 2
    assert [one.replicas for one in planned(asked, *pools, pinned=first).sets] == [
        one.replicas for one in first.sets
    ]


def test_a_set_beside_the_pinned_one_gets_no_devices_that_the_pinned_one_holds():
    first = planned(deployment(workload=CHAT, replicas=2, topology={"tensor": 4}), pool(nodes=1))
    own = pool(free={0: 1}, held={"team-a/chat": 8})
    asked = deployment(workload=CHAT, replicas=3)
    stands = replace(first, spec_digest=planned(asked, own).spec_digest)
    again = planned(asked, own, pinned=stands)
    assert (again.replicas, again.devices, again.outcome) == (2, 8, Outcome.SHORT)
