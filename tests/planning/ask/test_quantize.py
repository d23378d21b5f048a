"""Checkpoints that the engine reads only with its user's consent."""

import pytest

from plimsoll.planning.plan import Outcome
from tests.planning.asking import deployment, finding, planned, pool, reasons

FBGEMM = "meta-llama/Meta-Llama-3.1-405B-Instruct-FP8"
CONSENT = "--allow-deprecated-quantization"


def asked(version, *args):
    engine = {"version": version, "extraArgs": list(args)}
    return deployment(FBGEMM, replicas=1, engine=engine)


@pytest.mark.parametrize("version", ["0.20.2", "0.33.0"])
@pytest.mark.parametrize("args", [(), ("--no-allow-deprecated-quantization",)], ids=str)
def test_without_consent_it_is_refused_with_the_argument_that_gives_it(version, args):
    plan = planned(asked(version, *args))
    assert plan.outcome is Outcome.INVALID
    assert CONSENT in finding(plan, "QuantizationDeprecated").remedy


@pytest.mark.parametrize(("version", "args"), [("0.33.0", (CONSENT,)), ("0.18.0", ())])
def test_with_consent_or_where_none_is_asked_for_it_is_planned(version, args):
    plan = planned(asked(version, *args), pool("B200-SXM"))
    assert "QuantizationDeprecated" not in reasons(plan)
    assert plan.sets
