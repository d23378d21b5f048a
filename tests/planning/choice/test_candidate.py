"""Layouts worked out where memory is not simply a GPU's own: shared devices, and hosts."""

from dataclasses import replace
from fractions import Fraction

import pytest

from plimsoll.planning.choice import candidate
from plimsoll.planning.memory.ledger import build_ledger
from plimsoll.planning.memory.verdict import CONTEXT_AT_START
from plimsoll.planning.plan import Outcome
from tests.planning.asking import SMALL, cpu_pool, deployment, finding, planned, pool

CHAT = {"preset": "chat"}


def test_time_sliced_gpus_start_with_a_fixed_pool_within_one_part():
    made = planned(deployment(SMALL, workload=CHAT), pool("A10G-24GB", 4, sharing=4))
    chosen = made.sets[0]
    assert chosen.settings.kv_cache_bytes is not None
    assert chosen.settings.utilization <= 0.25
    resident = sum(term.bytes.high for term in chosen.ledger.terms if term.name != "headroom")
    assert resident <= chosen.ledger.device_bytes / 4
    assert chosen.cost.gpu_hours_per_hour == float(Fraction(1, 4))


def test_more_than_one_part_of_a_shared_gpu_is_refused_with_what_would_give_it():
    asked = deployment(SMALL, workload=CHAT, memory={"tenancySharePercent": 60})
    made = planned(asked, pool("A10G-24GB", 4, sharing=4))
    assert made.outcome is Outcome.DOES_NOT_FIT
    assert "unequal parts need MIG or DRA" in finding(made, "DoesNotFit").message
    assert planned(asked, pool("A10G-24GB", 4)).sets[0].settings.utilization <= 0.6


@pytest.mark.parametrize("memory", [{}, {"kvCacheSize": "1Gi"}])
def test_the_last_of_all_neighbours_on_a_shared_gpu_finds_free_what_its_start_asks_for(memory):
    made = planned(deployment(SMALL, workload=CHAT, memory=memory), pool("A10G-24GB", 4, sharing=4))
    device, asked = made.sets[0].hardware.memory_bytes, made.sets[0].settings.utilization
    assert asked * device <= device / 4 - CONTEXT_AT_START
    told = next(value for value in made.values if value.name == "utilization")
    assert told.value == f"{asked:.0%}"


def test_cpus_are_planned_only_where_they_are_asked_for_with_all_said_beforehand():
    made = planned(
        deployment(SMALL, workload=CHAT, topology={"cpu": {"cores": 8, "memory": "24Gi"}}), cpu_pool()
    )
    chosen = made.sets[0]
    assert chosen.hardware.vendor == "cpu"
    assert chosen.settings.kv_cache_bytes is not None
    assert chosen.resources.cpu_millis == 8000
    assert planned(deployment(SMALL, workload=CHAT), cpu_pool(), pool()).sets[0].hardware.vendor == "nvidia"


@pytest.mark.parametrize(("asked", "gib"), [("512Mi", 1), ("1.5Gi", 1), ("5Gi", 5), (None, 3)])
def test_a_cpu_cache_is_whole_gib_as_the_engine_reads_it_and_never_zero(asked, gib):
    cpu = {"kvCacheSize": asked} if asked else {"memory": f"{11 * 1024 + 1536}Mi"}
    made = planned(deployment(SMALL, workload={"contextTokens": 2048}, topology={"cpu": cpu}), cpu_pool())
    assert made.sets[0].settings.kv_cache_bytes == gib * 2**30


@pytest.mark.parametrize(("host", "cores"), [(1, 1), (2, 1), (4, 3), (8, 6), (64, 32), (None, 4)])
def test_a_replica_on_cpus_asks_for_no_core_that_its_smallest_host_lacks(host, cores):
    hosts = [replace(cpu_pool(), host_cpus=host), replace(cpu_pool(), key="larger", host_cpus=host and 96)]
    made = planned(deployment(SMALL, workload=CHAT, topology={"cpu": {}}), *hosts)
    assert made.sets[0].resources.cpu_millis == cores * 1000


@pytest.mark.parametrize(("said", "eager"), [(None, True), (False, False), (True, True)])
def test_an_engine_on_cpus_compiles_only_where_somebody_says_that_its_image_can(said, eager):
    asked = deployment(
        SMALL, workload=CHAT, topology={"cpu": {}}, engine={} if said is None else {"eager": said}
    )
    assert planned(asked, cpu_pool()).sets[0].settings.eager is eager
    assert planned(deployment(SMALL, workload=CHAT), pool()).sets[0].settings.eager is False


def test_plans_are_the_same_whether_ledgers_are_remembered_or_worked_out_anew(monkeypatch):
    """Resources that differ in one thing each that a ledger counts, one after the other and back again."""
    asked = [
        deployment(SMALL, workload=CHAT, **more)
        for more in (
            {},
            {"memory": {"utilizationPercent": 70}},
            {"engine": {"maxSequences": 7}},
            {"engine": {"version": "0.20.0"}},
            {"memory": {"kvCacheDtype": "fp8"}},
            {"quantization": {"method": "fp8"}},
        )
    ]
    places = [pool("A10G-24GB", 4, sharing=4), pool("A10G-24GB", 4), pool("H100-SXM-80GB", 8)]
    found = [planned(one, place) for one in [*asked, *asked] for place in places]
    monkeypatch.setattr(candidate, "_ledger", candidate._ledger.__wrapped__)
    assert [planned(one, place) for one in [*asked, *asked] for place in places] == found


def test_a_turn_after_another_of_the_same_deployment_works_out_no_ledger_again(monkeypatch):
    asked, made = deployment(SMALL, workload=CHAT), []

    def count(**given):
        made.append(given)
        return build_ledger(**given)

    monkeypatch.setattr(candidate, "build_ledger", count)
    candidate._ledger.cache_clear()
    first = planned(asked, pool("H100-SXM-80GB", 8))
    worked_out = len(made)
    assert worked_out
    assert planned(asked, pool("H100-SXM-80GB", 8)) == first
    assert len(made) == worked_out
