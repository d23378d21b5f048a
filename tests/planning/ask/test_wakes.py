"""A deployment that is to sleep is told at once where nobody could wake it as it says."""

import pytest

from plimsoll.planning.pinning import Wish
from plimsoll.planning.plan import Outcome, Severity
from plimsoll.planning.planner import PlanFacts, plan
from tests.planning.asking import deployment, finding, inventory, planned, pool, reasons

QUERY = {"query": 'sum(gateway_queue{llm="chat"})'}
BY_HAND = {"annotation": True}


def asked(wake):
    return deployment(scaling={"min": 0, "max": 4, "zero": {"wake": wake}})


def test_a_query_without_a_prometheus_is_told_with_what_would_answer_it():
    told = finding(planned(asked(QUERY)), "WakeUnanswered")
    assert (told.severity, told.field, told.value) == (
        Severity.WARNING,
        "scaling.zero.wake.query",
        QUERY["query"],
    )
    assert "prometheusUrl" in told.remedy


@pytest.mark.parametrize(
    ("wake", "config"),
    [(QUERY, {"prometheusUrl": "http://prometheus.monitoring:9090"}), (BY_HAND, {})],
    ids=["a Prometheus answers", "an annotation wakes it"],
)
def test_what_can_wake_it_is_not_told_of(wake, config):
    assert "WakeUnanswered" not in reasons(planned(asked(wake), config=config))


UNCLOSED = {"query": 'sum(gateway_queue{llm="chat"}'}


def test_a_query_whose_brackets_are_not_closed_is_refused_with_what_would_be_right():
    made = planned(asked(UNCLOSED), config={"prometheusUrl": "http://prometheus:9090"})
    told = finding(made, "QueryUnclosed")
    assert made.outcome is Outcome.INVALID
    assert (told.severity, told.field) == (Severity.ERROR, "scaling.zero.wake.query")
    assert "the ( at character 4 is not closed" in told.message
    assert told.remedy == "a ) that closes it"


def test_such_a_query_is_refused_also_while_nothing_is_known_of_the_model():
    deployed = asked(UNCLOSED)
    made = plan(deployed, inventory(pool()), PlanFacts(model=None, reading="it is read"))
    assert "QueryUnclosed" in reasons(made)


def test_a_plan_that_serves_is_scaled_as_before_when_its_query_is_edited_so():
    """The edit would else keep replicas that nobody needs, for a field from which no figure of the plan follows."""
    before = planned(asked(QUERY))
    made = planned(asked(UNCLOSED), pinned=before, wish=Wish(replicas=0))
    told = finding(made, "QueryUnclosed")
    assert (made.outcome, told.severity) == (before.outcome, Severity.WARNING)
    assert made.replicas == 0


def test_another_edit_beside_such_a_query_changes_nothing_that_serves():
    before = planned(asked(QUERY))
    edited = deployment(workload={"preset": "rag"}, scaling={"min": 0, "max": 4, "zero": {"wake": UNCLOSED}})
    made = planned(edited, pinned=before)
    assert made.outcome is Outcome.INVALID
    assert [one.digest for one in made.sets] == [one.digest for one in before.sets]


HERE = {
    "prometheusUrl": "http://mimir:8080/prometheus",
    "control": {"prometheusMatchLabels": {"cluster": "eu-1"}},
}


def test_a_query_that_does_not_say_which_of_several_clusters_is_told_what_would():
    told = finding(planned(asked(QUERY), config=HERE), "WakeOfAllClusters")
    assert (told.severity, told.field) == (Severity.WARNING, "scaling.zero.wake.query")
    assert told.remedy == '{cluster="eu-1"} in its selectors'


@pytest.mark.parametrize(
    ("wake", "config"),
    [
        ({"query": 'sum(gateway_queue{llm="chat", cluster="eu-1"})'}, HERE),
        ({"query": 'sum(gateway_queue{cluster=~".+"})'}, HERE),
        (BY_HAND, HERE),
        (QUERY, {**HERE, "control": {}}),
        (QUERY, {"control": HERE["control"]}),
    ],
    ids=["it names it", "it means all", "an annotation wakes it", "there is but one", "nobody answers"],
)
def test_what_counts_this_cluster_alone_is_not_told_so(wake, config):
    assert "WakeOfAllClusters" not in reasons(planned(asked(wake), config=config))


def test_a_label_is_named_by_its_whole_name():
    other = {"query": 'sum(gateway_queue{cluster_id="eu-1"})'}
    assert "WakeOfAllClusters" in reasons(planned(asked(other), config=HERE))


ZERO = {"wake": BY_HAND}


@pytest.mark.parametrize(
    ("spec", "why", "remedy"),
    [
        (
            {"scaling": {"zero": ZERO}},
            "without scaling.max the number stays as it is planned",
            "scaling.max, 1 or more",
        ),
        (
            {"scaling": {"zero": ZERO}, "replicas": 2},
            "spec.replicas holds 2",
            "leave replicas out, and set scaling.max",
        ),
        ({"scaling": {"zero": ZERO, "max": 3}, "replicas": 2}, "spec.replicas holds 2", "leave replicas out"),
    ],
    ids=["no scaling.max", "replicas", "replicas beside scaling.max"],
)
def test_one_that_would_never_sleep_is_told_what_keeps_it_awake(spec, why, remedy):
    told = finding(planned(deployment(**spec)), "NeverSleeps")
    assert told.severity is Severity.WARNING
    assert told.message == f"scaling.zero has no effect: {why}"
    assert told.remedy == remedy


def test_one_that_can_sleep_is_not_told_so():
    assert "NeverSleeps" not in reasons(planned(asked(BY_HAND)))
