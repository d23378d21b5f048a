"""A file that a command would write is never one that it reads: that is refused before the work, by whatever name it goes."""

import os
from pathlib import Path

import pytest

from tests.cli.running import plimsoll
from tests.cli.test_engine import engine
from tests.cli.test_plan import resource
from tests.facts.test_engine_files import told

FLEET = ("--fleet", "8xL40S")
ENDPOINT = "http://127.0.0.1:9"
"""Where nobody listens: what would go on to the work says that."""


@pytest.fixture(autouse=True)
def inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that commands stand in, with one file of each kind; the resource has a link and a second name too."""
    monkeypatch.chdir(tmp_path)
    Path("llm.yaml").write_text(resource("chat"))
    Path("rates.csv").write_text("t_s,rate_rps\n0,1\n60,1\n")
    Path("config.yaml").write_text("prices: {}\n")
    Path("plan.json").write_text("{}")
    Path("link.html").symlink_to("llm.yaml")
    os.link("llm.yaml", "twin.html")
    return tmp_path


def held(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}


SIMULATE = ("simulate", "-f", "llm.yaml", *FLEET, "--trace", "rates.csv")


@pytest.mark.parametrize(
    ("line", "option", "written", "read"),
    [
        (SIMULATE, "--html", "llm.yaml", "llm.yaml"),
        (SIMULATE, "--html", "./rates.csv", "rates.csv"),
        (SIMULATE, "--html", "link.html", "llm.yaml"),
        (SIMULATE, "--html", "twin.html", "llm.yaml"),
        ((*SIMULATE, "--config", "config.yaml"), "--html", "config.yaml", "config.yaml"),
        (("simulate", "-f", ".", *FLEET, "--trace", "rates.csv"), "--html", "llm.yaml", "."),
        (("simulate", "--snapshot", "plan.json", "--trace", "rates.csv"), "--html", "plan.json", "plan.json"),
        (("ramp", ENDPOINT, "--plan", "plan.json"), "--html", "plan.json", "plan.json"),
        (("ramp", ENDPOINT, "-f", "llm.yaml", *FLEET), "--html", "llm.yaml", "llm.yaml"),
        (("snapshot", "--config", "config.yaml"), "-o", "config.yaml", "config.yaml"),
        (("engine", "describe", "--from", "plan.json"), "-o", "plan.json", "plan.json"),
    ],
)
def test_what_would_be_written_over_an_input_is_refused_and_the_input_stays(
    line: tuple[str, ...], option: str, written: str, read: str, inputs: Path
) -> None:
    before = held(inputs)
    ran = plimsoll(*line, option, written)
    said = f"error: {option} {written}: {read} is read from there, and would be lost; name another file\n"
    assert (ran.code, ran.out) == (3, "")
    assert said in ran.err
    assert held(inputs) == before


def test_what_is_no_input_is_written_over_though_it_stands_in_the_same_folder(inputs: Path) -> None:
    (inputs / "old.html").write_text("an older page")
    cheap = ("--routing", "service", "--policy", "static_peak")
    ran = plimsoll("simulate", "-f", "llm.yaml", *FLEET, "--trace", "rates.csv", *cheap, "--html", "old.html")
    assert ran.code == 0, ran.err
    assert (inputs / "old.html").read_text().startswith("<!doctype html>")


def test_what_cannot_be_written_is_told_before_an_engine_is_asked(tmp_path: Path) -> None:
    program = engine(tmp_path, told())
    ran = plimsoll("engine", "describe", "--python", str(program), "-o", "none/file.json")
    assert (ran.code, ran.err) == (
        3,
        "error: -o none/file.json: cannot be written: No such file or directory\n",
    )
    assert not (tmp_path / "sent").exists()
