"""A deployment that is to sleep is told at once where nobody could wake it as it says."""

import pytest

from plimsoll.planning.plan import Severity
from tests.planning.asking import deployment, finding, planned, reasons

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
