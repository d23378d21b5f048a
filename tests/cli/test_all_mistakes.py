"""What is wrong with files, fleet, config and the values of options is told in one answer, so that one run is enough to find it."""

from pathlib import Path

import pytest

from tests.cli.running import plimsoll
from tests.cli.test_plan import resource

CONFIG = "apiVersion: plimsoll.dev/v1alpha1\nkind: OperatorConfig\npricess: {}\n"
SLIP = resource("chat", replicas="3")
WRONG_FIELD = "spec.replicas: must be a whole number"


@pytest.fixture
def config(tmp_path: Path) -> str:
    file = tmp_path / "config.yaml"
    file.write_text(CONFIG)
    return str(file)


def test_resources_config_and_fleet_are_all_told(config: str):
    ran = plimsoll("plan", "-f", "-", "--config", config, "--fleet", "8xH1000,8L40S", stdin=SLIP)
    assert ran.code == 3
    for said in (WRONG_FIELD, "pricess: is no known field", "did you mean 8xL40S?"):
        assert said in ran.err
    assert ran.err.count("error:") == len(ran.err.splitlines())


def test_a_config_that_is_wrong_does_not_hide_that_no_fleet_is_named(config: str):
    ran = plimsoll("plan", "-f", "-", "--config", config, stdin=SLIP)
    assert ran.code == 3
    assert "no fleet is named" in ran.err
    assert "pricess" in ran.err


def test_every_what_if_is_told_and_the_file_s_mistakes_with_them():
    asked = ("--what-if", "speed=2", "--what-if", "users=many,gpu=H1000", "--what-if", "precision=fp3")
    ran = plimsoll("plan", "-f", "-", "--fleet", "8xH100", *asked, stdin=SLIP)
    assert ran.code == 3
    for said in (
        WRONG_FIELD,
        "--what-if: 'speed' is no change",
        "users must be a whole number, not 'many'",
        "--what-if users=many,gpu=H1000: ",
        "precision must be one of",
    ):
        assert said in ran.err
    assert ran.err.count("error:") == 5


def test_a_simulation_s_options_are_told_with_the_file_s_mistakes(tmp_path: Path):
    asked = (
        "--trace",
        str(tmp_path / "none.csv"),
        "--seed",
        "1",
        "--seed",
        "1",
        "--html",
        str(tmp_path / "none" / "x.html"),
    )
    ran = plimsoll("simulate", "-f", "-", "--fleet", "8xH100", *asked, stdin=SLIP)
    assert ran.code == 3
    for said in (
        WRONG_FIELD,
        "--seed 1 is given twice",
        "none.csv: cannot be read",
        "x.html: cannot be written",
    ):
        assert said in ran.err
    assert ran.err.count("error:") == 4


def test_a_file_that_is_not_there_does_not_hide_what_is_wrong_in_another(tmp_path: Path):
    missing, empty = tmp_path / "none.yaml", tmp_path / "empty"
    empty.mkdir()
    files = ("-f", str(missing), "-f", str(empty), "-f", "-")
    ran = plimsoll("plan", *files, "--fleet", "8xH100", stdin=SLIP)
    assert ran.code == 3
    for said in ("none.yaml: cannot be read", "empty: holds no file", WRONG_FIELD):
        assert said in ran.err
    assert ran.err.count("error:") == 3
