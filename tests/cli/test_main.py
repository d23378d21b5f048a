"""The command as a whole: help, exit codes of wrong use, completion, and that it starts fast enough to complete."""

import subprocess
import sys
from pathlib import Path

import pytest

from plimsoll import __version__
from plimsoll.api.crd import crd_yaml
from plimsoll.cli.main import COMMANDS, cli
from plimsoll.facts.gpus import all_gpus
from tests.cli.running import plimsoll


def test_help_alone_says_how_to_make_a_first_plan():
    ran = plimsoll("--help")
    assert ran.code == 0
    for words in ("plimsoll plan -f llm.yaml", "kubectl get nodes -o yaml", "Exit codes: 0 fits", "import"):
        assert words in ran.out


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example(name: str):
    ran = plimsoll(name, "--help")
    assert ran.code == 0
    assert "Example" in ran.out
    assert f"plimsoll {name}" in ran.out


@pytest.mark.parametrize(
    ("module", "words"),
    [("plimsoll.cli", "plimsoll plan -f llm.yaml"), ("plimsoll", "python -m plimsoll.cli")],
)
def test_without_being_installed_it_is_a_module_that_the_operator_s_own_help_names(module: str, words: str):
    ran = subprocess.run([sys.executable, "-m", module, "--help"], capture_output=True, text=True, check=True)
    assert words in " ".join(ran.stdout.split())


def test_the_version_is_the_package_s():
    assert plimsoll("--version").out == f"plimsoll, version {__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["plam"], "plam"),
        (["plan", "--snapshoot", "x"], "--snapshoot"),
        (["plan", "-o", "xml"], "xml"),
        (["memory", "Qwen/Qwen3-32B"], "--gpu"),
        (["memory", "Qwen/Qwen3-32B", "--gpu", "H100", "--utilization", "0.9"], "0.9"),
        (["completion", "tcsh"], "tcsh"),
    ],
)
def test_a_wrong_command_line_ends_with_3_and_names_what_is_wrong(arguments: list[str], named: str):
    ran = plimsoll(*arguments)
    assert ran.code == 3
    assert named in ran.err
    assert ran.out == ""
    assert "Traceback" not in ran.err


def test_the_crd_is_printed_as_it_is_generated():
    assert plimsoll("crd").out == crd_yaml()


def test_all_accelerators_are_listed():
    listed = plimsoll("gpus").out.splitlines()[1:]
    assert [line.split()[0] for line in listed] == [gpu.name for gpu in all_gpus()]


def test_models_are_found_by_a_part_of_their_name():
    lines = plimsoll("models", "qwen3-32").out.splitlines()
    assert "Qwen/Qwen3-32B" in lines
    assert all("qwen3-32" in line.lower() for line in lines)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_a_script_for_this_command(shell: str):
    ran = plimsoll("completion", shell)
    assert ran.code == 0
    assert f"_PLIMSOLL_COMPLETE={shell}_complete" in ran.out


def test_fish_shows_the_whole_of_what_is_said_of_an_option():
    script = plimsoll("completion", "fish").out
    assert 'set -l metadata (string split --max 1 "," $completion);' in script


def test_a_shell_is_offered_the_commands_and_options():
    from click.shell_completion import BashComplete  # noqa: PLC0415

    complete = BashComplete(cli, {}, "plimsoll", "_PLIMSOLL_COMPLETE")
    assert "plan" in [item.value for item in complete.get_completions([], "pl")]
    assert "--snapshot" in [item.value for item in complete.get_completions(["plan"], "--s")]
    offered = complete.get_completions(["memory", "Qwen/Qwen3-32B", "--gpu"], "h100")
    assert "H100-SXM-80GB" in [item.value for item in offered]
    assert "Qwen/Qwen3-32B" in [item.value for item in complete.get_completions(["memory"], "qwen3-32")]


def test_plain_output_has_no_colours_and_no_trailing_spaces():
    out = plimsoll("gpus").out
    assert "\x1b" not in out
    assert all(line == line.rstrip() for line in out.splitlines())


@pytest.mark.parametrize("called", ["plimsoll", "kubectl-plimsoll"])
def test_both_names_of_the_program_run(called: str):
    program = Path(sys.executable).with_name(called)
    run = subprocess.run([program, "--help"], check=True, capture_output=True, text=True)
    assert run.stdout.startswith(f"Usage: {called.replace('kubectl-', 'kubectl ')}")


def test_help_needs_no_planner_and_no_cluster_client():
    script = (
        "import sys; from plimsoll.cli.main import run; run(['--help']); "
        "print([name for name in ('kubernetes', 'huggingface_hub', 'plimsoll.planning') if name in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert run.stdout.endswith("[]\n")


def test_what_is_answered_without_the_hub_does_not_load_its_client():
    script = (
        "import sys; from plimsoll.cli.main import run; run(['memory', 'Qwen/Qwen3-32B', '--gpu', 'H100', '--tp', '2']); "
        "import plimsoll.cli.plan; "
        "print([name for name in ('kubernetes', 'huggingface_hub', 'httpx2', 'jinja2') if name in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert run.stdout.endswith("[]\n")


def test_a_reader_that_stops_early_is_no_error():
    script = f"{sys.executable} -c 'from plimsoll.cli.main import main; main()' gpus | head -1"
    run = subprocess.run(["bash", "-o", "pipefail", "-c", script], check=True, capture_output=True, text=True)
    assert run.stderr == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device here is always full")
@pytest.mark.parametrize("output", ["text", "json"])
def test_an_answer_that_finds_no_space_ends_in_a_line_and_not_in_a_traceback(output: str):
    script = "from plimsoll.cli.main import main; main()"
    with Path("/dev/full").open("w") as full:
        asked = [sys.executable, "-c", script, "memory", "Qwen/Qwen3-32B", "--gpu", "H100", "-o", output]
        run = subprocess.run(asked, check=False, stdout=full, stderr=subprocess.PIPE, text=True)
    assert (run.returncode, run.stderr) == (3, "error: stdout: cannot be written: No space left on device\n")


@pytest.mark.parametrize(
    ("asked", "code", "out", "err"),
    [
        ("gpus >&-", 0, "", ""),
        ("gpus --no-such-option >&-", 3, "", "No such option"),
        ("gpus 2>&-", 0, "H100", ""),
        ("gpus --no-such-option 2>&-", 3, "", ""),
        ("plan -f - --fleet 8xH100 <&-", 3, "", "error: stdin: no LLMDeployment in it"),
    ],
)
def test_a_stream_that_is_closed_is_not_missed(asked: str, code: int, out: str, err: str):
    script = f"{sys.executable} -c 'from plimsoll.cli.main import main; main()' {asked}"
    run = subprocess.run(["bash", "-c", script], check=False, capture_output=True, text=True)
    assert run.returncode == code
    assert out in run.stdout
    assert err in run.stderr
    assert "Traceback" not in run.stderr
