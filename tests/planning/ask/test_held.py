"""A number of replicas and bounds for it together: which of them holds is said."""

import pytest

from plimsoll.planning.plan import Severity
from tests.planning.asking import deployment, finding, planned, reasons


@pytest.mark.parametrize(
    ("scaling", "field"),
    [({"max": 8}, "scaling.max"), ({"min": 1}, "scaling.min"), ({"min": 1, "max": 8}, "scaling.max")],
)
def test_bounds_beside_a_number_of_replicas_are_said_to_have_no_effect(scaling, field):
    made = planned(deployment(replicas=2, scaling=scaling))
    told = finding(made, "NotScaled")
    assert (told.severity, told.field) == (Severity.WARNING, field)
    assert "spec.replicas holds 2" in told.message
    assert made.sets[0].replicas == 2


@pytest.mark.parametrize("spec", [{"replicas": 2}, {"scaling": {"max": 8}}, {}])
def test_either_alone_is_not_told_of(spec):
    assert "NotScaled" not in reasons(planned(deployment(**spec)))
