"""A start that failed for memory is tried once more with less, and never a third time."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from plimsoll import names
from plimsoll.api.config import OperatorConfig
from plimsoll.api.defaults import effective
from plimsoll.control.retune.scene import changed
from plimsoll.facts.failure import Failure
from plimsoll.facts.serving import Beside, PodSeen, Serving, SetSeen, Stage
from plimsoll.planning.pinning import digest_before
from plimsoll.planning.plan import Origin, Severity
from plimsoll.reconcile.changing import before_of
from plimsoll.reconcile.decide import decide
from plimsoll.reconcile.decision import Decision
from plimsoll.reconcile.kept import Kept
from plimsoll.reconcile.seen import Seen
from plimsoll.render.revision import Revision
from tests.planning.asking import cpu_pool, deployment, facts, inventory, pool

SMALL = "Qwen/Qwen3-8B"


def asked(pools: Any = None, **spec: Any) -> Seen:
    made = deployment(spec.pop("source", SMALL), **spec)
    return Seen(deployment=made, inventory=inventory(*(pools or (pool(),))), facts=facts(made), now=1000.0)


def revisions(decision: Decision) -> dict[str, Revision]:
    return {
        one.ref.name: Revision.read(json.loads(json.dumps(one.body)))
        for one in decision.manifests
        if one.ref.kind == "ControllerRevision"
    }


def failing(
    set_: str, word: str, *, failed: str = "", restarts: int = 1, stage: Stage = Stage.FAILED
) -> SetSeen:
    pod = PodSeen(
        name=f"{set_}-0",
        uid=set_,
        stage=stage,
        restarts=restarts,
        failure=Failure(word, "no room", "less"),
        node="n",
    )
    return SetSeen(name=set_, replicas=1, pods=(pod,), failed=failed)


def turned(seen: Seen, before: Decision, *sets: SetSeen) -> tuple[Seen, Decision]:
    """The next turn, when what the last one kept was written and read back."""
    assert before.kept.plan is not None
    data = {**before.kept.beside(), names.PLAN_KEY: before.kept.plan.to_bytes().decode()}
    now = replace(
        seen,
        serving=Serving(sets=sets),
        revisions={**seen.revisions, **revisions(before)},
        kept=Kept.from_data(data),
    )
    return now, decide(now)


def lead(decision: Decision) -> str:
    return next(iter(decision.revisions))


def retried(word: str = "NoKvRoom", **spec: Any) -> tuple[Seen, Decision, Decision]:
    seen = asked(**spec)
    first = decide(seen)
    seen, second = turned(seen, first, failing(lead(first), word))
    return seen, first, second


@pytest.mark.parametrize(
    ("word", "field", "setting"),
    [
        ("NoKvRoom", "engine.maxSequences", "max_num_seqs"),
        ("TooManySequences", "engine.maxSequences", "max_num_seqs"),
        ("ProfileOutOfMemory", "engine.maxBatchedTokens", "max_num_batched_tokens"),
        ("GraphCapture", "memory.utilizationPercent", "utilization"),
        ("RequestLongerThanPool", "workload.contextTokens", "max_model_len"),
    ],
)
def test_what_did_not_fit_is_asked_for_in_less(word: str, field: str, setting: str) -> None:
    _, first, second = retried(word)
    before, after = first.plan.sets[0], second.plan.sets[0]
    assert getattr(after.settings, setting) < getattr(before.settings, setting)
    assert after.digest != before.digest
    assert second.kept.retry is not None
    assert (second.kept.retry.field, second.kept.retry.word) == (field, word)
    value = next(one for one in after.values if one.name == setting)
    assert (value.origin, value.source) == (Origin.LEARNED, f"a start that failed: {word}")
    assert second.plan.pinning is not None
    assert second.plan.pinning.reason == "SetFailed"


def test_a_step_is_not_made_too_small_for_the_guesses_of_all_that_may_run_beside_adapters() -> None:
    beside = {
        "adapters": {"items": [{"name": "a", "source": "hf://example/adapter"}], "maxRank": 16},
        "speculative": {"method": "ngram", "tokens": 4},
        "engine": {"maxSequences": 1000},
    }
    _, _, second = retried("ProfileOutOfMemory", **beside)
    settings = second.plan.sets[0].settings
    assert settings.max_num_seqs == 1000
    assert settings.max_num_batched_tokens == 5000


def test_a_group_is_asked_for_in_less_whichever_of_its_pods_had_no_room() -> None:
    seen = asked()
    first = decide(seen)
    there = failing(lead(first), "NoKvRoom")
    leader = replace(there.pods[0], uid="leader", failure=Failure("MemberLost", "rank 1 ended", "see it"))
    group = replace(there, pods_per_replica=2, pods=(leader, *there.pods))
    _, second = turned(seen, first, group)
    assert second.kept.retry is not None
    assert second.kept.retry.word == "NoKvRoom"


def test_how_an_engine_ended_before_is_no_start_that_fails_now_where_a_container_beside_it_does() -> None:
    seen = asked()
    first = decide(seen)
    there = failing(lead(first), "NoKvRoom")
    (fails,) = there.pods
    beside = replace(there, pods=(replace(fails, beside=Beside(name="istio-proxy")),))
    _, second = turned(seen, first, beside)
    assert second.kept.retry is None


def test_it_stands_over_turns_and_a_restart_of_the_operator() -> None:
    seen, first, second = retried()
    names_of = [lead(first), next(name for name in revisions(second) if name != lead(first))]
    seen, third = turned(
        seen, second, *(failing(lead(first), "NoKvRoom"), SetSeen(name=names_of[1], replicas=1))
    )
    assert third.kept.retry == second.kept.retry
    assert third.plan.sets[0].digest == second.plan.sets[0].digest
    assert third.plan.spec_digest == first.plan.spec_digest
    assert third.plan.pinning is not None
    assert third.plan.pinning.kept


def test_it_stands_over_an_upgrade_of_the_operator() -> None:
    seen, first, second = retried(toolCalling={"parser": "hermes"})
    before = digest_before(effective(seen.deployment.spec, seen.deployment.namespace, seen.config).spec)
    kept = second.kept
    assert kept.retry is not None
    assert kept.plan is not None
    assert kept.retry.spec != before
    written = replace(
        kept, retry=replace(kept.retry, spec=before), plan=replace(kept.plan, spec_digest=before)
    )
    new = next(name for name in revisions(second) if name != lead(first))
    sets = failing(lead(first), "NoKvRoom"), SetSeen(name=new, replicas=1)
    _, third = turned(seen, replace(second, kept=written), *sets)
    assert third.kept.retry == kept.retry
    assert third.plan.sets[0].digest == second.plan.sets[0].digest
    assert third.plan.pinning is not None
    assert third.plan.pinning.kept


def test_a_first_start_that_fails_after_an_upgrade_is_tried_once_more() -> None:
    seen = asked(toolCalling={"parser": "hermes"})
    first = decide(seen)
    assert first.kept.plan is not None
    before = digest_before(effective(seen.deployment.spec, seen.deployment.namespace, seen.config).spec)
    written = replace(first.kept, plan=replace(first.kept.plan, spec_digest=before))
    _, second = turned(seen, replace(first, kept=written), failing(lead(first), "NoKvRoom"))
    assert second.kept.retry is not None


def test_it_outlives_an_error_that_passes() -> None:
    seen, _first, second = retried()
    lost = replace(seen, facts=replace(seen.facts, model=None))
    serving = SetSeen(name=next(name for name in revisions(second)), replicas=1)
    _, third = turned(lost, second, serving)
    assert any(found.severity is Severity.ERROR for found in third.plan.findings)
    assert third.kept.retry == second.kept.retry


def test_it_outlives_a_preset_that_is_gone_for_a_while() -> None:
    preset = {"name": "many", "description": "Many at once.", "spec": {"engine": {"maxSequences": 64}}}
    there = OperatorConfig.model_validate({"presets": [preset]})
    seen = replace(asked(workload={"preset": "many"}), config=there)
    first = decide(seen)
    seen, second = turned(seen, first, failing(lead(first), "TooManySequences"))
    assert second.kept.retry is not None
    tried = SetSeen(name=next(name for name in revisions(second) if name != lead(first)), replicas=1)
    gone, third = turned(replace(seen, config=OperatorConfig()), second, tried)
    assert third.kept.retry == second.kept.retry
    _, fourth = turned(replace(gone, config=there), third, tried)
    assert fourth.kept.retry == second.kept.retry


def test_when_the_second_try_fails_too_nobody_goes_back_to_the_first_and_nothing_more_is_tried() -> None:
    seen, first, second = retried()
    old, new = lead(first), next(name for name in revisions(second) if name != lead(first))
    _, third = turned(seen, second, failing(old, "NoKvRoom"), failing(new, "NoKvRoom", restarts=4))
    assert third.kept.retry == second.kept.retry
    assert third.rollout is not None
    assert third.rollout.reason == "DeadlineExceeded"
    _, fourth = turned(seen, third, failing(new, "NoKvRoom", restarts=5))
    assert fourth.plan.sets[0].digest == second.plan.sets[0].digest


def test_the_failed_set_is_marked_as_given_up() -> None:
    _, first, second = retried()
    (mark,) = {
        one.body["metadata"]["annotations"].get(names.ANNOTATION_FAILED)
        for one in second.manifests
        if one.ref.kind == "ControllerRevision" and one.ref.name == lead(first)
    }
    assert "NoKvRoom" in str(mark)


@pytest.mark.parametrize(
    "word",
    ["CudaOutOfMemory", "WeightsDoNotFit", "GpuMemoryTaken", "BadFlag", "HostOutOfMemory", "Strange"],
)
def test_a_death_that_less_would_not_cure_or_that_is_no_start_s_is_not_tried_again(word: str) -> None:
    _, first, second = retried(word)
    assert second.kept.retry is None
    assert second.plan.sets[0].digest == first.plan.sets[0].digest


def test_a_set_that_serves_is_not_touched() -> None:
    seen = asked()
    first = decide(seen)
    name = lead(first)
    serves = PodSeen(name="p", uid="p", stage=Stage.READY, node="n")
    dying = failing(name, "NoKvRoom").pods[0]
    _, second = turned(seen, first, SetSeen(name=name, replicas=2, pods=(dying, serves)))
    assert second.kept.retry is None


def test_a_set_that_served_once_is_not_given_less_when_it_starts_again_without_room() -> None:
    seen = asked()
    first = decide(seen)
    name = lead(first)
    serves = PodSeen(name="p", uid="p", stage=Stage.READY, node="n")
    seen, second = turned(seen, first, SetSeen(name=name, replicas=1, pods=(serves,)))
    seen, third = turned(seen, second, SetSeen(name=name, replicas=1))
    _, fourth = turned(seen, third, failing(name, "NoKvRoom"))
    assert fourth.kept.retry is None
    assert fourth.kept.served == (name,)
    assert fourth.plan.sets[0].digest == first.plan.sets[0].digest


def test_an_engine_that_loads_again_is_waited_for() -> None:
    seen = asked()
    first = decide(seen)
    seen, second = turned(seen, first, failing(lead(first), "NoKvRoom", stage=Stage.LOADING))
    assert second.kept.retry is None
    _, third = turned(seen, second, failing(lead(first), "NoKvRoom"))
    assert third.kept.retry is not None


def test_what_its_owner_has_fixed_is_left_alone_and_another_setting_taken() -> None:
    _, _, second = retried("NoKvRoom", engine={"maxSequences": 64})
    assert second.kept.retry is not None
    assert second.kept.retry.field == "engine.maxBatchedTokens"
    _, first, third = retried("TooManySequences", engine={"maxSequences": 64})
    assert third.kept.retry is None
    assert third.plan.sets[0].digest == first.plan.sets[0].digest


def test_a_context_is_not_lowered_below_the_prompts_that_are_declared_and_another_setting_is_taken() -> None:
    lengths = {"inputTokens": {"p50": 8000, "p99": 9000}, "outputTokens": {"p99": 200}}
    seen, _, second = retried("RequestLongerThanPool", workload=lengths)
    assert second.kept.retry is not None
    assert second.kept.retry.field == "engine.maxSequences"
    before = replace(second.kept.retry, field="workload.contextTokens", before="9216", after="4608")
    kept = replace(second.kept, retry=before)
    _, third = turned(seen, replace(second, kept=kept), SetSeen(name=lead(second), replicas=1))
    assert third.kept.retry is None, "one that an earlier release lowered so stands no longer"
    assert third.plan.sets[0].digest == second.plan.sets[0].digest


def test_what_the_admin_has_set_for_the_namespace_is_fixed_too() -> None:
    fixed = {"namespace": "*", "spec": {"engine": {"maxSequences": 64}}}
    seen = replace(asked(), config=OperatorConfig.model_validate({"defaults": [fixed]}))
    first = decide(seen)
    _, second = turned(seen, first, failing(lead(first), "NoKvRoom"))
    assert second.kept.retry is not None
    assert second.kept.retry.field == "engine.maxBatchedTokens"
    _, third = turned(seen, first, failing(lead(first), "TooManySequences"))
    assert third.kept.retry is None


def test_what_a_preset_says_is_a_start_that_a_second_try_corrects() -> None:
    preset = {"name": "many", "description": "Many at once.", "spec": {"engine": {"maxSequences": 64}}}
    seen = asked(workload={"preset": "many"})
    seen = replace(seen, config=OperatorConfig.model_validate({"presets": [preset]}))
    first = decide(seen)
    _, second = turned(seen, first, failing(lead(first), "TooManySequences"))
    assert second.kept.retry is not None
    assert second.kept.retry.field == "engine.maxSequences"


def test_a_cache_on_cpus_that_is_fixed_by_its_other_field_is_left_alone() -> None:
    spec = {"topology": {"cpu": {}}, "memory": {"kvCacheSize": "4Gi"}}
    _, first, second = retried("HostOutOfMemory", pools=(cpu_pool(),), source="Qwen/Qwen3-0.6B", **spec)
    assert second.kept.retry is None
    assert second.plan.sets[0].digest == first.plan.sets[0].digest


def test_what_a_retune_changes_after_a_second_try_is_still_told_as_its_own() -> None:
    seen, _first, second = retried("TooManySequences")
    assert second.kept.plan is not None
    chosen = second.kept.plan.sets[0]
    planned = str(chosen.settings.max_num_seqs)
    made = changed(
        chosen, "maxSequences", "17", engine="vllm", version=second.plan.engine_version, why="full"
    )
    good = replace(second, kept=replace(second.kept, plan=replace(second.kept.plan, sets=(made,))))
    _, third = turned(seen, good, SetSeen(name="chat-new", replicas=1))
    (now,) = third.plan.sets
    assert now.settings.max_num_seqs == 17
    assert before_of(now) == {"maxSequences": planned}, "a day of calm takes it back"


def test_an_edit_or_a_person_s_word_begins_anew() -> None:
    seen, _, second = retried()
    edited = deployment(SMALL, workload={"contextTokens": 4096})
    _, third = turned(replace(seen, deployment=edited), second)
    assert third.kept.retry is None
    metadata = seen.deployment.metadata.model_copy(update={"annotations": {names.ANNOTATION_REPLAN: "now"}})
    again = seen.deployment.model_copy(update={"metadata": metadata})
    _, fourth = turned(replace(seen, deployment=again), second)
    assert fourth.kept.retry is None


@pytest.mark.parametrize("word", ["NoKvRoom", "HostOutOfMemory"])
def test_on_cpus_the_cache_is_what_is_less(word: str) -> None:
    _, first, second = retried(word, pools=(cpu_pool(),), source="Qwen/Qwen3-0.6B", topology={"cpu": {}})
    before, after = (one.plan.sets[0].settings.kv_cache_bytes for one in (first, second))
    assert before is not None
    assert after is not None
    if before > 2**30:
        assert after < before


def test_a_try_that_cannot_be_read_counts_as_none() -> None:
    assert Kept.from_data({"retry.json": "{"}).retry is None
