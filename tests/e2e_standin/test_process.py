"""A stand-in engine as a process: how it refuses, starts, is told to end, and fails."""

import http.client
import json
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from plimsoll.simulate.interference import Interference
from standin.told import TIMES, read_times, write_times

ROOT = Path(__file__).parents[2]


@contextmanager
def engine(*options: str, words: tuple[str, ...] = ()) -> Iterator[subprocess.Popen[str]]:
    """On whatever port is free."""
    told = ["serve", "tiny", "--port=0", "--host", "127.0.0.1", *words]
    argv = [sys.executable, "-m", "standin", *options, *told]
    with subprocess.Popen(argv, cwd=ROOT / "e2e", stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def address(process: subprocess.Popen[str]) -> str:
    """Where it listens, once it does."""
    assert process.stderr is not None
    for line in process.stderr:
        if "Starting vLLM server on " in line:
            return line.rpartition(" ")[2].strip()
    raise AssertionError("it ended before it listened")


def asked(url: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return answer.read().decode()


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--nosuch-flag",), 2, "unrecognized arguments: --nosuch-flag"),
        (("--max-num-seqs", "0"), 1, "Input should be greater than or equal to 1"),
    ],
)
def test_flags_that_are_refused_end_it(words: tuple[str, ...], code: int, said: str):
    with engine(words=words) as process:
        _, log = process.communicate(timeout=60)
    assert process.returncode == code
    assert said in log


def test_a_signal_ends_a_start():
    with engine("--start-seconds", "600") as process:
        assert process.stderr is not None
        assert "vLLM API server version 0.33.0" in process.stderr.readline()
        process.terminate()
        assert process.wait(60) != 0


def test_its_log_tells_a_starts_phases():
    with engine("--start-seconds", "0.6") as process:
        assert process.stderr is not None
        phases = [process.stderr.readline() for _ in range(6)]
        assert asked(f"{address(process)}/health") == ""
    marks = (
        "version 0.33.0",
        "Initializing a V1",
        "Starting to load",
        "Model loading took",
        "KV cache size",
        "init engine",
    )
    assert all(mark in line for mark, line in zip(marks, phases, strict=True))


@pytest.mark.parametrize(
    ("words", "tokens", "finish"),
    [((), 2000, "abort"), (("--shutdown-timeout", "60"), 200, "length")],
)
def test_told_to_end_it_aborts_or_drains(words: tuple[str, ...], tokens: int, finish: str):
    with engine(words=words) as process:
        body = {"prompt": [1], "max_tokens": tokens, "stream": True}
        request = urllib.request.Request(
            f"{address(process)}/v1/completions",
            json.dumps(body).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            answer.readline()
            process.terminate()
            events = [json.loads(line[6:]) for line in answer if line.startswith(b"data: {")]
        assert process.wait(60) == 0
    assert events[-1]["choices"][0]["finish_reason"] == finish


@pytest.mark.parametrize(("what", "code"), [("crash", 1), ("oom", -signal.SIGKILL)])
def test_it_dies_when_it_is_to(what: str, code: int):
    with engine() as process:
        with suppress(OSError, http.client.HTTPException):
            asked(f"{address(process)}/standin/{what}", {})
        assert process.wait(60) == code


def test_faults_come_by_themselves_where_they_are_asked_for():
    with engine("--crash-after", "0.1") as process:
        _, log = process.communicate(timeout=60)
        assert process.returncode == 1
    assert "EngineDeadError" in log


def test_step_times_may_be_handed_in(tmp_path: Path):
    file = tmp_path / "times.json"
    stops = Interference(rate=2.0, length_s=0.001)
    file.write_text(write_times(replace(TIMES, request=0.25), stops))
    times, interference = read_times(file.read_text())
    assert (times.request, interference) == (0.25, stops)
    with engine("--times", str(file)) as process:
        url = address(process)
        asked(f"{url}/v1/completions", {"prompt": [1], "max_tokens": 1})
        page = asked(f"{url}/metrics")
    (total,) = [line for line in page.splitlines() if line.startswith("vllm:time_to_first_token_seconds_sum")]
    assert float(total.split()[-1]) > 0.25
