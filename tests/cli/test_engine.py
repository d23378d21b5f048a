"""`plimsoll engine describe`, with a Python that answers as an engine's does."""

import json
import stat
import subprocess
import sys
from typing import Any

import pytest
import yaml

from plimsoll.cli.engine_script import METRIC, kind_of, plain
from plimsoll.facts.engine_files import read_engine_file
from plimsoll.facts.engines import hand_in
from tests.cli.running import plimsoll
from tests.facts.test_engine_files import told


@pytest.fixture(autouse=True)
def nothing_is_handed_in():
    yield
    hand_in(())


def engine(folder, text, code=0):
    """A program that reads what it is sent, and says what it is to say."""
    answer = folder / "answer"
    answer.write_text(text)
    program = folder / "python"
    program.write_text(f"#!/bin/sh\ncat > {folder}/sent\ncat {answer}\necho so it is >&2\nexit {code}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return program


def test_a_python_with_an_engine_is_asked_by_a_program_that_stands_alone(tmp_path):
    program = engine(tmp_path, told())
    done = plimsoll("engine", "describe", "--python", str(program), "-o", str(tmp_path / "file.json"))
    assert done.code == 0, done.err
    file = read_engine_file((tmp_path / "file.json").read_text())
    assert file.version == "0.34.1"
    assert "counted" in done.err
    sent = (tmp_path / "sent").read_text()
    assert "plimsoll" not in "".join(line for line in sent.splitlines() if "import" in line)
    compiled = subprocess.run([sys.executable, "-I", "-c", f"compile({sent!r}, 'x', 'exec')"], check=False)
    assert compiled.returncode == 0


def test_an_engine_that_fails_says_its_last_words(tmp_path):
    done = plimsoll("engine", "describe", "--python", str(engine(tmp_path, "", code=3)))
    assert done.code == 3
    assert "ended with 3: so it is" in done.err


def test_last_words_of_several_lines_are_told_on_one(tmp_path):
    silent = tmp_path / "python"
    silent.write_text("#!/bin/sh\ncat > /dev/null\nprintf 'no daemon\\n\\nsee the help\\n' >&2\nexit 1\n")
    silent.chmod(0o755)
    done = plimsoll("engine", "describe", "--python", str(silent))
    assert "ended with 1: no daemon see the help\n" in done.err


def test_an_image_is_run_without_network_where_containers_can_be_run(tmp_path, monkeypatch):
    program = engine(tmp_path, told())
    runner = tmp_path / "podman"
    runner.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/words\nexec {program}\n')
    runner.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    done = plimsoll("engine", "describe", "example.com/vllm:v0.34.1")
    assert done.code == 0, done.err
    assert read_engine_file(done.out).version == "0.34.1"
    words = (tmp_path / "words").read_text().split()
    assert words == [
        "run", "--rm", "--interactive", "--network=none", "--entrypoint=python3", "example.com/vllm:v0.34.1", "-I", "-",
    ]  # fmt: skip


def test_where_no_container_can_be_run_a_pod_says_it(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    done = plimsoll("engine", "describe", "example.com/vllm:v0.34.1")
    assert done.code == 3
    assert "--pod" in done.err
    printed = plimsoll("engine", "describe", "example.com/vllm:v0.34.1", "--pod")
    pod = yaml.safe_load(printed.out)
    (container,) = pod["spec"]["containers"]
    assert container["image"] == "example.com/vllm:v0.34.1"
    assert pod["spec"]["restartPolicy"] == "Never"
    log = tmp_path / "log"
    log.write_text(f"a line of the engine's\n{told()}\nanother\n")
    done = plimsoll("engine", "describe", "--from", str(log))
    assert read_engine_file(done.out).version == "0.34.1"


@pytest.mark.parametrize("words", [(), ("image", "--python", "p"), ("--pod", "--from", "f")])
def test_one_of_the_ways_is_named(words):
    done = plimsoll("engine", "describe", *words)
    assert done.code == 3
    assert "error:" in done.err


def test_what_cannot_be_used_is_said(tmp_path):
    done = plimsoll("engine", "describe", "--python", str(engine(tmp_path, json.dumps({"engine": "vllm"}))))
    assert done.code == 3
    assert "version" in done.err


class Action:
    nargs: int | None = None
    type: Any = None


def test_kinds_and_defaults_of_a_parser_in_the_words_of_the_files():
    action = Action()
    assert kind_of(action) == "str"
    action.type = int
    assert kind_of(action) == "int"
    action.nargs = 0
    assert kind_of(action) == "bool"
    assert (plain((1, {2: None})), plain("==SUPPRESS=="), plain(object())) == ([1, {"2": None}], None, None)
    assert METRIC.findall('Gauge(name="vllm:num_requests_running")') == ["vllm:num_requests_running"]
