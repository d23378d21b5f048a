"""What is given to the programs on their command lines, and a slip in it, which is told before anything is measured."""

import importlib
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import arguments
import autoscaling_kept

COUNT = "is not a whole number above 0"
ZERO = "is not a whole number from 0 on"
AMOUNT = "is not a number above 0"
NO_FOLDER = "cannot be written: No such file or directory; name a file in a folder that is there"


Refused = Callable[..., str]
"""Runs a program with these words, which it refuses, and gives what it says."""


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Refused:
    def run(program: str, *words: str) -> str:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", [program, *words])
        with pytest.raises(SystemExit) as ended:
            importlib.import_module(program).main()
        assert ended.value.code == 2
        return capsys.readouterr().err

    return run


@pytest.mark.parametrize(
    ("program", "given", "told"),
    [
        ("autoscaling", "--sweep-seeds -1", ZERO),
        ("autoscaling", "--resume none/kept", f"argument --resume: none/kept {NO_FOLDER}"),
        ("autoscaling", "--resume .", "argument --resume: . cannot be written: Is a directory"),
        (
            "autoscaling",
            "--kept nowhere",
            "argument --kept: no file nowhere; name one that --resume has written",
        ),
        ("cold_start", "--runs 0", COUNT),
        ("control_scale", "--deployments 0", COUNT),
        ("control_scale", "--deployments 10 -3", "--deployments"),
        ("crashes", "--every 0", COUNT),
        ("crashes", "--quiet-seconds nan", AMOUNT),
        ("engine_arithmetic", "--gpu H1000", "H1000"),
        ("engine_arithmetic", "--model no/such", "the catalogue knows no model no/such"),
        ("engine_arithmetic", "--tensor 0", COUNT),
        ("kv_accuracy", "nowhere.jsonl", "no file nowhere.jsonl"),
        ("learning", "nowhere.jsonl", "no file nowhere.jsonl"),
        ("longest_gap", "--requests 0", COUNT),
        ("longest_gap", "--share 0", AMOUNT),
        ("longest_gap", "--sequences 0", COUNT),
        ("on_gpu", "--gpu H1000", "H1000"),
        ("on_gpu", "--gpu H100 --shapes 1024", "as 1024:256"),
        ("on_gpu", "--gpu H100 --users 0", COUNT),
        ("planning_speed", "--repeats 0", COUNT),
        ("reconcile", "--start 100,many", COUNT),
        ("reconcile", "--burst 0", COUNT),
        ("reconcile", "--idle-minutes 0", AMOUNT),
        ("retune", "--seeds 0", COUNT),
        ("retune", "--kept none/kept.json", f"argument --kept: none/kept.json {NO_FOLDER}"),
        ("standin_fidelity", "--turns 0", COUNT),
        ("standin_fidelity", "--kept none/kept.json", NO_FOLDER),
        ("standin_fidelity", "--span 0", AMOUNT),
        ("storms", "--story nowhere.json", "holds no story"),
        ("storms", "--seeds 0", COUNT),
        ("testbed", "--cycles 0", COUNT),
    ],
)
def test_a_slip_is_told_in_a_line_and_nothing_is_measured(
    program: str, given: str, told: str, refused: Refused
) -> None:
    assert told in refused(program, *given.split()).splitlines()[-1]


@pytest.mark.parametrize("program", ["kv_accuracy", "learning"])
def test_a_file_of_something_else_is_told_with_its_line(
    program: str, refused: Refused, tmp_path: Path
) -> None:
    file = tmp_path / "table.csv"
    file.write_text('{"model": "a"}\na,b\n')
    assert "table.csv, line 2: no JSON object" in refused(program, str(file))


@pytest.mark.parametrize(("program", "text"), [("retune", "[]"), ("standin_fidelity", "{")])
def test_a_file_that_a_program_did_not_write_is_nothing_to_go_on_from(
    program: str, text: str, refused: Refused, tmp_path: Path
) -> None:
    file = tmp_path / "kept.json"
    file.write_text(text)
    assert "was not written by this program" in refused(program, "--kept", str(file))


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("rates.csv", "--resume rates.csv is a trace that is played; name another file"),
        ("link", "--resume link is a trace that is played; name another file"),
        ("notes.txt", "argument --resume: notes.txt was not written by this program"),
    ],
)
def test_no_line_is_added_to_a_trace_or_to_a_file_of_something_else(
    file: str, said: str, refused: Refused, tmp_path: Path
) -> None:
    for name in ("rates.csv", "notes.txt"):
        (tmp_path / name).write_text("[t_s],rate_rps\n0,1\n" if name == "rates.csv" else "0,1\n")
    (tmp_path / "link").symlink_to("rates.csv")
    assert said in refused("autoscaling", "rates.csv", "--resume", file).splitlines()[-1]


@pytest.mark.parametrize(
    "text", ["", "\n", '\n["size", "scored", [1, 2', '\n["size", "tuned", "cell", {}]\n']
)
def test_a_run_goes_on_from_a_file_of_its_own_however_it_was_stopped(text: str, tmp_path: Path) -> None:
    file = tmp_path / "kept"
    assert arguments.lines_kept(str(file)) == file
    assert not file.exists()
    file.write_text(text)
    assert arguments.lines_kept(str(file)) == file
    assert file.read_text() == text


def test_tables_are_not_printed_of_a_file_that_holds_no_line_of_them(tmp_path: Path) -> None:
    file = tmp_path / "kept.jsonl"
    file.write_bytes(b"\xff\xfe\n5\n{}\n[]\n")
    with pytest.raises(autoscaling_kept.NothingKept, match="holds no cell"):
        autoscaling_kept.last_of(file)
