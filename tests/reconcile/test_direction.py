"""What control says reaches what should be there: replicas within bounds, a change that is tried, kept or taken back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from plimsoll.api.config import Control, OperatorConfig
from plimsoll.api.defaults import effective
from plimsoll.control.record import Record
from plimsoll.control.retune import Phase, RetuneMemory, Step
from plimsoll.control.retune.figures import Figures
from plimsoll.control.workload import Lengths, Observed
from plimsoll.facts.serving import Serving
from plimsoll.planning.pinning import digest_before
from plimsoll.planning.planner import PlanFacts
from plimsoll.reconcile.decide import decide
from plimsoll.reconcile.decision import Decision
from plimsoll.reconcile.direction import Direction
from plimsoll.reconcile.kept import Kept
from plimsoll.reconcile.loop.subject import subject_of
from plimsoll.reconcile.seen import Seen
from tests.planning.asking import deployment, facts
from tests.reconcile.test_decide import after, read_back, seen, serving

AUTO = {"scaling": {"min": 1, "max": 4}}


def targets(found: Decision) -> dict[str, int]:
    assert found.rollout is not None
    return {target.name: target.replicas for target in found.rollout.targets}


def directed(asked: Seen, replicas: int | None, retune: RetuneMemory | None = None) -> Seen:
    record = Record(replicas=replicas, retune=retune or RetuneMemory())
    return replace(asked, direction=Direction(record=record, reason="so it is"))


@pytest.mark.parametrize(("wish", "there"), [(1, 1), (3, 3), (9, 4), (0, 1)])
def test_replicas_are_those_that_control_says_within_the_bounds(wish: int, there: int) -> None:
    asked = seen(spec=AUTO)
    found = decide(directed(after(decide(asked), asked), wish))
    assert list(targets(found).values()) == [there]
    assert found.plan.replicas_reason == "so it is"


@pytest.mark.parametrize("spec", [{"replicas": 2, **AUTO}, {"scaling": {"min": 2}}])
def test_what_a_person_fixed_is_not_controls_to_change(spec: dict[str, object]) -> None:
    asked = seen(spec=spec)
    found = decide(directed(after(decide(asked), asked), 4))
    assert list(targets(found).values()) == [2]


def test_a_deployment_goes_to_no_replica_only_where_that_is_asked_for() -> None:
    zero = {"scaling": {"max": 4, "zero": {"wake": {"annotation": True}}}}
    asked = seen(spec=zero)
    found = decide(directed(after(decide(asked), asked), 0))
    assert list(targets(found).values()) == [0]
    assert found.plan.replicas_wanted == 0


def test_what_control_said_last_stands_until_it_speaks_again() -> None:
    asked = seen(spec=AUTO)
    said = directed(after(decide(asked), asked), 3)
    first = decide(said)
    data = {**first.kept.beside(), "plan.json": first.kept.plan.to_bytes().decode()}  # type: ignore[union-attr]
    restarted = replace(after(first, asked), kept=Kept.from_data(data), direction=None)
    assert restarted.kept.control is not None
    assert list(targets(decide(restarted)).values()) == [3]


def test_where_it_is_lost_the_number_of_the_pinned_plan_stands() -> None:
    asked = seen(spec=AUTO)
    first = decide(directed(after(decide(asked), asked), 3))
    lost = replace(after(first, asked), kept=Kept(plan=first.kept.plan), direction=None)
    assert list(targets(decide(lost)).values()) == [3]


def test_a_raised_minimum_counts_at_once() -> None:
    asked = seen(spec=AUTO)
    first = decide(directed(after(decide(asked), asked), 1))
    raised = replace(after(first, asked), deployment=deployment(scaling={"min": 3, "max": 4}))
    assert list(targets(decide(raised)).values()) == [3]


def test_an_edit_moves_as_many_replicas_as_the_traffic_needs() -> None:
    asked = seen(spec=AUTO)
    first = decide(directed(after(decide(asked), asked), 4))
    edited = deployment(**AUTO, workload={"contextTokens": 8192})
    found = decide(replace(after(first, asked), deployment=edited))
    assert found.plan.replicas_wanted == 4
    assert found.plan.sets[0].digest != first.plan.sets[0].digest


def step(
    plan_set: str,
    phase: Phase,
    before: str,
    *,
    after: str = "17",
    rolled: int = 1,
    surge: bool = True,
    replicas: int = 2,
) -> RetuneMemory:
    return RetuneMemory(
        step=Step(
            id="maxSequences-1", set=plan_set, setting="maxSequences", before=before, after=after,
            symptom="preemptions", why="too many run", phase=phase, began=1.0, since=1.0, deadline=2.0,
            replicas=replicas, surge=surge, spec="s", baseline=Figures(), rolled=rolled,
        )
    )  # fmt: skip


@pytest.fixture
def served() -> tuple[Seen, Decision]:
    asked = seen(spec={"replicas": 2})
    first = decide(asked)
    return after(first, asked), first


def settled(asked: Seen, retune: RetuneMemory) -> Decision:
    """What is decided once all that run with the change serve, as none goes for them before."""
    return decide(directed(after(decide(directed(asked, None, retune)), asked), None, retune))


@pytest.mark.parametrize(
    ("phase", "rolled", "surge", "counts"),
    [
        (Phase.PLANNED, 0, True, (2, None)),
        (Phase.CANARY, 1, True, (2, 1)),
        (Phase.CANARY, 1, False, (1, 1)),
        (Phase.JUDGING, 1, True, (2, 1)),
        (Phase.ROLLING, 2, True, (1, 2)),
        (Phase.ROLLING_BACK, 0, True, (2, None)),
    ],
)
def test_the_record_alone_says_how_many_run_with_a_change(
    served: tuple[Seen, Decision], phase: Phase, rolled: int, surge: bool, counts: tuple[int, int | None]
) -> None:
    asked, first = served
    (name,) = first.revisions
    chosen = first.plan.sets[0]
    retune = step(chosen.digest, phase, str(chosen.settings.max_num_seqs), rolled=rolled, surge=surge)
    found = settled(asked, retune)
    old, new = counts
    there = targets(found)
    assert there.pop(name) == old
    assert list(there.values()) == ([] if new is None else [new])
    if new is not None:
        (tried,) = set(found.revisions) - {name}
        assert found.revisions[tried].entry.settings.max_num_seqs == 17
        assert "17" in found.revisions[tried].leader["spec"]["containers"][0]["args"]
    assert [one.digest for one in found.plan.sets] == [chosen.digest]


def test_a_good_change_becomes_the_pinned_plan(served: tuple[Seen, Decision]) -> None:
    asked, first = served
    chosen = first.plan.sets[0]
    rolled = step(chosen.digest, Phase.VERIFYING, str(chosen.settings.max_num_seqs), rolled=2)
    all_with = settled(asked, rolled)
    assert rolled.step is not None
    done = replace(rolled, step=replace(rolled.step, phase=Phase.DONE))
    found = decide(directed(after(all_with, asked), None, done))
    (now,) = found.plan.sets
    assert (now.settings.max_num_seqs, now.replicas) == (17, 2)
    assert found.kept.plan is not None
    assert found.kept.plan.sets[0].digest == now.digest != chosen.digest
    (name,) = [name for name, one in found.revisions.items() if one.entry.digest == now.digest]
    assert targets(found)[name] == 2
    # The next turn has only the plan to go by.
    again = decide(replace(after(found, asked), direction=None))
    assert targets(again)[name] == 2


def test_a_crash_with_a_change_on_its_way_goes_on_as_it_was_written_down(
    served: tuple[Seen, Decision],
) -> None:
    asked, first = served
    chosen = first.plan.sets[0]
    retune = step(chosen.digest, Phase.JUDGING, str(chosen.settings.max_num_seqs))
    found = decide(directed(asked, None, retune))
    again = decide(replace(after(found, asked), direction=None))
    assert targets(again) == targets(found)
    assert set(read_back(again)) == set(read_back(found))


def test_what_is_tried_goes_on_over_an_upgrade_of_the_operator() -> None:
    asked = seen(spec={"replicas": 2, "toolCalling": {"parser": "hermes"}})
    first = decide(asked)
    spec = effective(asked.deployment.spec, asked.deployment.namespace, asked.config).spec
    chosen = first.plan.sets[0]
    tried = step(chosen.digest, Phase.JUDGING, str(chosen.settings.max_num_seqs))
    assert tried.step is not None
    older = replace(tried.step, spec=digest_before(spec))
    written = replace(tried, step=older, kept=replace(older, phase=Phase.DONE))
    kept = replace(first.kept, control=Record(retune=written))
    subject = subject_of(asked.deployment, kept, asked.config, {})
    assert subject is not None
    assert subject.record.retune.step is not None
    assert subject.record.retune.step.spec == subject.spec
    assert subject.record.retune.kept is not None
    assert subject.record.retune.kept.spec == subject.spec
    again = decide(replace(after(first, asked), kept=kept))
    assert again.kept.control == subject.record


def test_an_edit_of_the_spec_ends_what_was_tried(served: tuple[Seen, Decision]) -> None:
    asked, first = served
    chosen = first.plan.sets[0]
    retune = step(chosen.digest, Phase.JUDGING, str(chosen.settings.max_num_seqs))
    found = decide(directed(asked, None, retune))
    edited = replace(after(found, asked), deployment=deployment(replicas=2, workload={"contextTokens": 8192}))
    moving = decide(edited)
    assert moving.rollout is not None
    planned = {target.name for target in moving.rollout.targets if target.planned}
    assert not planned & set(found.revisions)


def test_a_change_that_all_replicas_have_goes_back_though_the_edit_that_ended_it_cannot_be_planned(
    served: tuple[Seen, Decision],
) -> None:
    asked, first = served
    (name,) = first.revisions
    chosen = first.plan.sets[0]
    verified = step(chosen.digest, Phase.VERIFYING, str(chosen.settings.max_num_seqs), rolled=2)
    all_with = settled(asked, verified)
    assert targets(all_with)[name] == 0
    edited = deployment(replicas=2, topology={"tensor": 3})
    wrong = replace(after(all_with, asked), deployment=edited, facts=facts(edited))
    back = decide(directed(wrong, None))
    (tried,) = set(targets(all_with)) - {name}
    assert targets(back)[name] > 0, "as others serve in their place"
    again = decide(replace(directed(wrong, None), serving=serving(back), kept=back.kept))
    assert targets(again)[tried] < 2
    stored = next(one.body["data"] for one in back.manifests if one.ref.name == "chat-plan")
    assert Kept.from_data(stored).control == Record(), "a restart does not begin it again"


@pytest.mark.parametrize(("phase", "rolled"), [(Phase.JUDGING, 1), (Phase.ROLLING, 2), (Phase.VERIFYING, 2)])
def test_what_is_tried_goes_on_while_nobody_can_read_the_model(
    served: tuple[Seen, Decision], phase: Phase, rolled: int
) -> None:
    asked, first = served
    chosen = first.plan.sets[0]
    retune = step(chosen.digest, phase, str(chosen.settings.max_num_seqs), rolled=rolled)
    found = settled(asked, retune)
    blind = replace(
        after(found, asked), facts=PlanFacts(model=None, problem="the hub is not reachable"),
        revisions={**read_back(first), **read_back(found)},
    )  # fmt: skip
    assert targets(decide(directed(blind, None, retune))) == targets(found)


def test_traffic_that_would_make_another_plan_is_told_and_changes_nothing() -> None:
    asked = seen(spec={"workload": {"concurrency": 4}})
    first = decide(asked)
    far = Observed(
        since=0.0, at=90_000.0, prompt=Lengths(p50=6000, p95=20_000, p99=30_000),
        output=Lengths(p50=900, p95=2000, p99=4000), requests=50_000.0, peak_rate=40.0, peak_inflight=900.0,
    )  # fmt: skip
    told = replace(after(first, asked), direction=Direction(record=Record(observed=far)))
    found = decide(told)
    assert found.better is not None
    assert (found.better.type, found.better.reason) == ("BetterPlanAvailable", "WorkloadDiffers")
    assert "concurrency 900" in found.better.message
    assert [one.digest for one in found.plan.sets] == [one.digest for one in first.plan.sets]
    near = replace(far, prompt=None, output=None, peak_inflight=4.0)
    assert decide(replace(told, direction=Direction(record=Record(observed=near)))).better is None


@pytest.mark.parametrize(
    ("spec", "is_told"),
    [({"scaling": {"min": 1}}, True), ({"scaling": {"max": 4}}, False), ({"replicas": 1}, False)],
)
def test_that_the_load_needs_more_replicas_is_told_where_only_the_plan_says_how_many_there_are(
    spec: dict[str, Any], is_told: bool
) -> None:
    asked = seen(spec=spec)
    first = decide(asked)
    busy = Observed(since=0.0, at=90_000.0, requests=50_000.0, peak_rate=30.0, peak_inflight=300.0)
    found = decide(replace(after(first, asked), direction=Direction(record=Record(observed=busy))))
    assert (found.better is not None) is is_told
    if found.better is not None:
        assert 'with requestsPerSecond "30" in spec.workload' in found.better.message


def test_nothing_is_tried_for_a_deployment_that_has_nothing_yet() -> None:
    asked = seen(spec=AUTO)
    retune = step("unknown", Phase.CANARY, "1")
    found = decide(directed(replace(asked, serving=Serving()), 2, retune))
    assert list(targets(found).values()) == [2]


@pytest.mark.parametrize(
    ("scaling", "interval_s", "window_s"),
    [({}, 15, 30.0), ({}, 60, 120.0), ({"upWindowSeconds": 30}, 60, 30.0)],
    ids=["as usual", "a slow loop", "a slow loop, and somebody says how long"],
)
def test_more_must_be_wanted_at_two_looks_where_nobody_says_how_long(
    scaling: dict[str, Any], interval_s: int, window_s: float
) -> None:
    asked = seen(spec={"scaling": {"max": 4, **scaling}})
    config = asked.config.model_copy(update={"control": Control(interval_seconds=interval_s)})
    subject = subject_of(asked.deployment, decide(asked).kept, config, {})
    assert subject is not None
    assert subject.up_window_s == window_s


@pytest.mark.parametrize(
    ("spec", "defaults", "fixed"),
    [
        ({"engine": {"maxSequences": 64, "watermarkPermille": 8}}, {}, ("watermark", "maxSequences")),
        ({}, {"maxSequences": 64}, ("maxSequences",)),
        ({"workload": {"preset": "chat"}}, {}, ()),
        ({"engine": {"maxSequences": 64}, "tuning": {"allow": ["maxSequences"]}}, {}, ()),
        ({}, {}, ()),
    ],
    ids=[
        "by the user",
        "by the admin",
        "by a preset, which planning may correct",
        "named as well",
        "by nobody",
    ],
)
def test_settings_that_a_person_has_set_are_not_retuned_by_themselves(
    spec: dict[str, Any], defaults: dict[str, Any], fixed: tuple[str, ...]
) -> None:
    asked = seen(spec=spec)
    given = {"defaults": [{"namespace": "*", "spec": {"engine": defaults}}]} if defaults else {}
    config = OperatorConfig.model_validate(given)
    subject = subject_of(asked.deployment, decide(asked).kept, config, {})
    assert subject is not None
    assert subject.consent.fixed == fixed
