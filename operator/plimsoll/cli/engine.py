"""`plimsoll engine describe`: makes the facts of an engine version that this release has no file for, by asking the engine's own image.

A small program runs in the image's Python and asks vLLM's parser; no model is loaded, and no GPU is needed. Where no container can be run here,
the same program is printed as a pod, or is run by a Python that has the engine installed.
"""

from __future__ import annotations

import shutil
import subprocess
from importlib import resources
from typing import Final

import click
import yaml

from plimsoll.cli.errors import BadInput, note
from plimsoll.cli.inputs import read_text
from plimsoll.cli.written import check_writable, write_file
from plimsoll.facts.engine_files import EngineFileError, describe, engine_file_text, read_told

RUNNERS: Final = ("podman", "docker", "nerdctl")
WAIT_SECONDS: Final = 1800
"""How long a container may take. Its image has to be pulled first, which may be 10 GB and more."""
LAST_WORDS: Final = 2000


@click.group("engine")
def engine_command() -> None:
    """Engine versions: have one known that this release has no file for.

    \b
    Example:
      plimsoll engine describe vllm/vllm-openai:v0.34.0 -o vllm-0.34.0.json
    """


@engine_command.command("describe")
@click.argument("image", required=False)
@click.option(
    "--python", metavar="PROGRAM", help="A Python that has the engine installed, in place of an image."
)
@click.option("--from", "told", metavar="FILE", help="What --pod has printed; - is standard input.")
@click.option(
    "--pod", is_flag=True, help="Print a pod that says it in its log, in place of running the image here."
)
@click.option("-o", "--output", type=click.Path(dir_okay=False), help="File. Default: standard output.")
def describe_command(
    *, image: str | None, python: str | None, told: str | None, pod: bool, output: str | None
) -> None:
    """Write the file about the engine version in IMAGE: its flags, their defaults and values, its variables and metrics.

    With the file an admin makes the version known: as `facts` of its entry in engines.versions of the admin's file. How a version
    counts memory no image tells; that is taken from the nearest version that is known, and plans say so.

    \b
    Examples:
      plimsoll engine describe vllm/vllm-openai:v0.34.0 -o vllm-0.34.0.json
      plimsoll engine describe --python .venv/bin/python
      plimsoll engine describe vllm/vllm-openai:v0.34.0 --pod | kubectl apply -f -
      kubectl logs plimsoll-describe | plimsoll engine describe --from -
    """
    if sum(one is not None for one in (image, python, told)) != 1:
        raise BadInput("name one of IMAGE, --python and --from")
    if pod:
        if image is None:
            raise BadInput("--pod: name the IMAGE that it runs")
        click.echo(yaml.safe_dump(_pod(image), sort_keys=False), nl=False)
        return
    if output is not None:
        check_writable("-o", output, told, python)
    text = _told(image, python, told)
    try:
        file, notes = describe(read_told(text))
    except EngineFileError as error:
        raise BadInput(f"what the engine told cannot be used: {error}") from None
    note(notes)
    if output is None:
        click.echo(engine_file_text(file), nl=False)
    else:
        write_file("-o", output, engine_file_text(file))


def _told(image: str | None, python: str | None, told: str | None) -> str:
    if told is not None:
        text = read_text(told).decode("utf-8", "replace")
        # A log also has lines of the engine's libraries.
        return next((line for line in text.splitlines() if line.startswith('{"engine"')), text)
    if python is not None:
        return _run([python, "-I", "-"], python)
    runner = next((found for name in RUNNERS if (found := shutil.which(name))), None)
    if runner is None:
        raise BadInput(
            f"none of {', '.join(RUNNERS)} is on the PATH: print a pod with --pod, or name a Python with --python"
        )
    # Nothing is fetched in the container, so it gets no network.
    where = ["run", "--rm", "--interactive", "--network=none", "--entrypoint=python3", str(image)]
    return _run([runner, *where, "-I", "-"], str(image))


def _run(words: list[str], who: str) -> str:
    try:
        done = subprocess.run(  # noqa: S603 - words of ours, and a name that the caller gave
            words, input=_script(), capture_output=True, text=True, check=False, timeout=WAIT_SECONDS
        )
    except OSError as error:
        raise BadInput(f"{words[0]} cannot be run: {error.strerror or error}") from None
    except subprocess.TimeoutExpired:
        raise BadInput(f"{who} said nothing within {WAIT_SECONDS} s") from None
    if done.returncode:
        raise BadInput(f"{who} ended with {done.returncode}: {' '.join(done.stderr[-LAST_WORDS:].split())}")
    return done.stdout


def _script() -> str:
    return resources.files("plimsoll.cli").joinpath("engine_script.py").read_text("utf-8")


def _pod(image: str) -> dict[str, object]:
    container = {
        "name": "describe",
        "image": image,
        "command": ["python3", "-I", "-c", _script().replace("$", "$$")],
        "env": [{"name": "HOME", "value": "/tmp"}],  # noqa: S108 - the pod's own
        "resources": {"requests": {"cpu": "1", "memory": "2Gi"}, "limits": {"memory": "4Gi"}},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "plimsoll-describe"},
        "spec": {
            "automountServiceAccountToken": False,
            "containers": [container],
            "restartPolicy": "Never",
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": 2000,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
        },
    }
