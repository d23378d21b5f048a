"""The engine's own parser judges its words while the model comes: what it does not know ends the start at once."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from plimsoll.facts.failure import read_failure
from plimsoll_runtime import command
from plimsoll_runtime.judging import NO_FLAG, Judgement, refusal_in
from plimsoll_runtime.sources.trouble import Stopped

PARSER = f"""#!{sys.executable}
import argparse, sys, time
parser = argparse.ArgumentParser(prog="vllm")
serve = parser.add_subparsers().add_parser("serve")
serve.add_argument("model")
serve.add_argument("--max-num-seqs", type=int)
serve.add_argument("--dtype", choices=["auto", "half"])
serve.add_argument("--modules", nargs="+")
print("an import says something", flush=True)
parser.parse_args()
print("the engine starts", flush=True)
time.sleep(600)
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    program = tmp_path / "vllm"
    program.write_text(PARSER)
    program.chmod(0o755)
    return {"PATH": f"{tmp_path}:{os.environ['PATH']}"}  # noqa: TID251


def judged(environment: dict[str, str], *words: str) -> Judgement:
    """Once the parser has ended."""
    found = Judgement(("vllm", "serve", "org/model", *words), environment)
    found.wait()
    return found


@pytest.mark.parametrize("words", [(), ("--max-num-seqs", "8"), ("--modules", "a=b", "c=d")])
def test_words_that_the_parser_knows_pass(environment, words):
    assert judged(environment, *words).refusal is None


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("--swap-space=4",), "--swap-space=4"),
        (("--swap-space", "4", "--max-num-seqs", "8"), "--swap-space 4"),
        (("--max-num-seqs", "many"), "--max-num-seqs"),
        (("--dtype", "int8"), "--dtype"),
    ],
)
def test_words_that_it_does_not_know_are_named_and_ours_is_not(environment, words, named):
    refusal = judged(environment, *words).refusal
    assert refusal is not None
    assert refusal.word == "BadFlag"
    assert named in refusal.message
    assert NO_FLAG not in str(refusal)


@pytest.mark.parametrize("argv", [("vllm",), ("python3", "-m", "engine"), ("python3", "-c", "import time")])
def test_no_other_program_is_started_for_it(argv, environment):
    found = Judgement(argv, environment)
    assert found._process is None
    found.end()


def test_a_program_that_is_not_there_is_told_when_it_is_started():
    found = Judgement(("vllm", "serve", "m"), {"PATH": "/nowhere"})
    found.end()
    assert found.refusal is None


@pytest.mark.parametrize(
    "text", ["", "Traceback\nImportError: libcuda", f"error: unrecognized arguments: {NO_FLAG}"]
)
def test_what_is_no_refusal_judges_nothing(text):
    assert refusal_in(text) is None


def test_a_judgement_that_is_not_needed_any_more_leaves_no_process(tmp_path):
    program = tmp_path / "vllm"
    program.write_text("#!/bin/sh\nsleep 600 & wait\n")
    program.chmod(0o755)
    found = Judgement(("vllm", "serve", "m"), {"PATH": f"{tmp_path}:/usr/bin:/bin"})
    process = found._process
    assert process is not None
    found.end()
    assert process.returncode is not None
    assert found.refusal is None


def test_a_download_ends_where_the_words_are_refused(environment, tmp_path, monkeypatch):
    def bring(wishes, words, said, stopped):
        while not stopped():
            time.sleep(0.01)
        raise Stopped

    monkeypatch.setattr(command, "bring", bring)
    message = tmp_path / "message"
    own = ["serve", "--port", "0", "--termination-log", str(message), "--fetch", "hf://org/model"]
    code = command.main([*own, "--", "vllm", "serve", "org/model", "--swap-space=4"], environment)
    assert code != 0
    failure = read_failure(message.read_text())
    assert failure is not None
    assert failure.word == "BadFlag"
    assert "--swap-space=4" in failure.message
