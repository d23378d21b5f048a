"""One finding in the same words everywhere: conditions, the webhook's answer and the command line say the same of it."""

from __future__ import annotations

import pytest

from plimsoll import names
from plimsoll.cli import drawing
from plimsoll.cli.remarks import Style
from plimsoll.cli.report import plan_report
from plimsoll.planning.plan import Finding, Severity
from plimsoll.reconcile.admission import judged
from plimsoll.status.findings import sentence, where
from plimsoll.status.said import conditions_of
from plimsoll.status.told import LONGEST_MESSAGE
from tests.planning.asking import LLAMA_70B, inventory, planned, pool
from tests.status.stories import asked, story


def found(message: str, field: str | None = None, value: str | None = None, remedy: str = "") -> Finding:
    return Finding(
        severity=Severity.ERROR, reason="Any", message=message, field=field, value=value, remedy=remedy
    )


@pytest.mark.parametrize(
    ("finding", "told"),
    [
        (found("it is so"), "it is so"),
        (found("it is not known", "topology.tensor", "16"), "topology.tensor (16): it is not known"),
        (found("16 ranks are many", "topology.tensor", "16"), "topology.tensor (16): 16 ranks are many"),
        (found("no node is left", "topology"), "topology: no node is left"),
        (found("topology.tensor is 16, and 8 fit", "topology.tensor", "16"), "topology.tensor is 16, and 8 fit"),
        (found("slo.itl is 1,000 at most", "slo.itl", "1000"), "slo.itl is 1,000 at most"),
        (found("nobody said 4,096; set a.b", "a.b", "4096"), "nobody said 4,096; set a.b"),
        (found("longContext must name a base", "longContext", "yarn"), "longContext (yarn) must name a base"),
        (found("method is 'awq', which is old", "method", "awq"), "method is 'awq', which is old"),
        (found("2 of 9 replicas find GPUs", "replicas", "9"), "replicas (9): 2 of 9 replicas find GPUs"),
        (found("topology.tensor is 3", "topology", "3 in all"), "topology (3 in all): topology.tensor is 3"),
        (found("hf://a/b is old", "model.source", "hf://a/b"), "model.source (hf://a/b): hf://a/b is old"),
        (found("engine.env[10] is no name", "engine.env[1]", "x"), "engine.env[1] (x): engine.env[10] is no name"),
    ],
)  # fmt: skip
def test_the_field_and_its_value_are_told_once_each(finding: Finding, told: str) -> None:
    assert where(finding) == told
    assert sentence(finding) == told


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ("it is so", "it is so. What helps: less"),
        ("it is so.", "it is so. What helps: less"),
        ("did you mean x?", "did you mean x? What helps: less"),
    ],
)
def test_what_helps_stands_behind_one_stop(wrong: str, told: str) -> None:
    assert sentence(found(wrong, remedy="less")) == told


def test_a_huge_value_is_cut_and_the_remedy_is_not() -> None:
    said = sentence(found("must be small", "engine.extraArgs[0]", "x" * 100_000, "leave it out"))
    assert said.startswith("engine.extraArgs[0] (xxx")
    assert said.endswith("x…): must be small. What helps: leave it out")
    assert len(said) < 200


def test_nothing_is_so_long_that_a_condition_cuts_the_remedy() -> None:
    said = sentence(found("m" * 9_999, "f" * 9_999, "v" * 9_999, "r" * 9_999))
    assert len(said) <= LONGEST_MESSAGE
    assert ". What helps: rrr" in said


def test_a_value_of_several_lines_is_one_line() -> None:
    assert where(found("is no name", "model.name", "a\nb")) == r"model.name (a\nb): is no name"


@pytest.mark.parametrize(
    ("topology", "told"),
    [
        ({"tensor": 1}, "topology.tensor (1): no layout fits these devices"),
        ({"tensor": 1, "pipeline": 1}, "topology (tensor 1, pipeline 1): no layout fits these devices"),
        ({}, f"model.source ({LLAMA_70B}): no layout fits these devices"),
    ],
)
def test_what_was_fixed_is_told_where_nothing_fits(topology: dict[str, int], told: str) -> None:
    made = planned(asked(source=LLAMA_70B, topology=topology), pool("L4-24GB", 1))
    assert any(where(one).startswith(told) for one in made.findings)


def test_conditions_the_webhook_and_the_command_line_say_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    told = story(spec={"source": LLAMA_70B, "topology": {"tensor": 1}})
    plan = told.plan
    assert plan is not None
    (stalled,) = (one for one in conditions_of(told) if one.type == names.STALLED)
    assert stalled.message.startswith("topology.tensor (1): no layout fits these devices; nearest is")
    assert judged(plan, inventory(pool())).problems == (stalled.message,)
    drawing.show(plan_report(plan, Style()))
    assert f"DoesNotFit: {stalled.message}" in " ".join(capsys.readouterr().out.split())
