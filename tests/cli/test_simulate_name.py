"""One resource is simulated at a time; of several, `--name` says which."""

import json
from pathlib import Path

import pytest
import yaml

from tests.cli.test_plan import resource
from tests.cli.test_simulate import SPEC, simulated

CHEAP = ("--routing", "service", "--policy", "static_peak")


@pytest.fixture
def several(tmp_path: Path) -> str:
    """Two of one name in unlike namespaces, and a third."""
    found = [json.loads(resource(name, **SPEC)) for name in ("chat", "chat", "other")]
    found[1]["metadata"]["namespace"] = "prod"
    file = tmp_path / "several.yaml"
    file.write_text(yaml.safe_dump_all(found))
    return str(file)


@pytest.fixture
def trace(tmp_path: Path) -> str:
    file = tmp_path / "rates.csv"
    file.write_text("t_s,rate_rps\n0,1\n60,1\n")
    return str(file)


def test_without_a_name_all_that_are_given_are_listed(several: str, trace: str):
    ran = simulated(several, trace)
    assert (ran.code, ran.err) == (
        3,
        "error: 3 resources are given (default/chat, prod/chat, default/other), and one is simulated at a time: say with --name which\n",
    )


@pytest.mark.parametrize(
    ("name", "said"),
    [("other", "default/other"), ("prod/chat", "prod/chat"), ("default/chat", "default/chat")],
)
def test_a_name_chooses_one_with_its_namespace_or_without(several: str, trace: str, name: str, said: str):
    ran = simulated(several, trace, "--name", name, *CHEAP)
    assert ran.code == 0
    assert ran.out.startswith(f"{said}\n")


def test_a_name_that_fits_none_or_several_is_told_what_there_is(several: str, trace: str):
    none, two = (simulated(several, trace, "--name", name) for name in ("chatt", "chat"))
    assert (none.code, two.code) == (3, 3)
    assert (
        "--name chatt: no resource that is given is called that; there are default/chat, prod/chat"
        in none.err
    )
    assert "--name chat: 2 are called that (default/chat, prod/chat); give the namespace too" in two.err


def test_of_a_single_resource_a_wrong_name_is_no_other_s(trace: str, tmp_path: Path):
    file = tmp_path / "llm.yaml"
    file.write_text(resource("chat", **SPEC))
    assert "there is default/chat" in simulated(str(file), trace, "--name", "other").err
