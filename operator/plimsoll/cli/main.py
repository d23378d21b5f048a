"""The group of all commands, how errors end, and the beginning of `--help`.
A command's module is loaded when it is asked for, so that completion and `--help` stay fast.
"""

from __future__ import annotations

import errno
import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

import click

import plimsoll
from plimsoll.cli.errors import BAD_INPUT, FITS, INTERRUPTED, UNREAD, BadInput, note

_CANNOT_HOLD_MORE: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
"""Errors of stdout that mean a full or broken disk. Such errors of files that an option names are told where they are written."""

COMMANDS: Final[Mapping[str, tuple[str, str]]] = {
    # name: (module, its one line in the list of commands)
    "plan": ("plan", "What will run where, why, and what it will do."),
    "explain": ("explain", "Where one value of a plan comes from."),
    "memory": ("memory", "Tables of what fits a GPU: by utilization, context, TP, KV dtype."),
    "import": ("bring", "Turn a vLLM command line or another operator's resource into an LLMDeployment."),
    "render": ("render", "Print the Kubernetes objects that the operator would apply."),
    "images": ("images", "List the images that a cluster needs, for mirrors without a way out."),
    "snapshot": ("snapshot", "Write all that a plan needs of a cluster into one file."),
    "learned": (
        "learned",
        "What starts and ramps have taught: list it, hand it on, or have it forgotten.",
    ),
    "doctor": ("doctor", "What keeps deployments in a cluster from serving, and what cures it."),
    "history": ("history", "What was decided on live traffic for a deployment, when and why."),
    "simulate": ("simulate", "Replay traffic against a plan, in virtual time, before anything is deployed."),
    "bench": ("bench", "Send load to an endpoint and measure what its users would see."),
    "ramp": ("ramp", "Raise the load on an endpoint until more stops paying, and say what stops it."),
    "engine": ("engine", "Describe an engine version that is not known yet, from its image."),
    "crd": ("crd", "Print the CustomResourceDefinition."),
    "gpus": ("catalogue", "List the accelerators that are known."),
    "models": ("catalogue", "List the models that are known without a network."),
    "completion": ("completion", "Print the completion script of a shell."),
}


_ELSEWHERE: Final = {
    "apply": "kubectl apply -f FILE does it, and the operator the rest; render prints what it would apply",
    "describe": "kubectl describe llm NAME tells it; doctor looks further",
    "diff": "render -f FILE | kubectl diff -f - does it",
    "get": "kubectl get llm lists them; doctor says what is wrong with them",
    "help": "write --help, also behind a command",
    "lint": "plan -f FILE and a fleet tells every mistake of the file",
    "load": "bench sends load, and ramp raises it",
    "status": "kubectl get llm tells it in a line; doctor says what is wrong, and history what was decided",
    "validate": "plan -f FILE and a fleet tells every mistake of the file",
    "version": "write --version",
}
"""Words for which other tools have a command, and what does the same here."""

_SPELLED: Final = {
    "--format": "--output",
    "--json": "-o json",
    "--policies": "--policy",
    "--yaml": "-o yaml",
}
"""Options as other tools spell them, which are near to none of ours, or to the wrong one; with what is written here."""


class SeenEnough(Exception):
    """Who reads our output (head, less) has seen enough. Of the error itself click would make exit code 1, which stands for nothing here, and 0 would say that all fits."""


class Commands(click.Group):
    """The commands in the order in which a newcomer needs them. Each module is loaded when its command is called."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise SeenEnough from None

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - the signature is click's
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:  # noqa: ARG002
        if name not in COMMANDS:
            return None
        module = importlib.import_module(f"plimsoll.cli.{COMMANDS[name][0]}")
        command: click.Command = getattr(module, f"{name}_command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            near = get_close_matches(args[0], COMMANDS, n=1)
            meant = _ELSEWHERE.get(args[0]) or (f"did you mean {near[0]}?" if near else "")
            hint = meant or f"commands are {', '.join(COMMANDS)}"
            ctx.fail(f"no such command {args[0]!r}: {hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(plimsoll.__version__, prog_name="plimsoll")
def cli() -> None:
    """Say what a language model needs, what fits where and why: without a GPU, without a cluster.

    \b
    What fits one GPU, as a table:
      plimsoll memory Qwen/Qwen3-32B --gpu H100
    A plan for a resource, on a fleet that you only describe:
      plimsoll plan -f llm.yaml --fleet 8xH100,16xL4
    The same on the nodes you have:
      kubectl get nodes -o yaml > nodes.yaml
      plimsoll plan -f llm.yaml --nodes nodes.yaml
    Why a value is what it is:
      plimsoll explain -f llm.yaml --nodes nodes.yaml max_model_len
    From a command line you run today:
      plimsoll import "vllm serve Qwen/Qwen3-32B --tensor-parallel-size 2" > llm.yaml

    Exit codes: 0 fits (a tight fit is said), 2 does not fit, 3 something in the input is wrong.
    """


def main() -> None:
    """The entry point."""
    called = Path(sys.argv[0]).name
    sys.exit(run(sys.argv[1:], "kubectl plimsoll" if called.startswith("kubectl-") else "plimsoll"))


def run(arguments: Sequence[str], program: str = "plimsoll") -> int:
    """Runs a command line and returns its exit code. Errors of the user's input become lines on stderr."""
    _open_what_is_closed()
    try:
        cli.main(list(arguments), prog_name=program, standalone_mode=False)
    except click.ClickException as error:
        if isinstance(error, click.NoSuchOption) and error.option_name in _SPELLED:
            asked = error.option_name
            error = click.UsageError(
                f"No such option {asked!r}. Did you mean {_SPELLED[asked]!r}?", error.ctx
            )
        error.show()
        return BAD_INPUT
    except click.Abort:
        note(["stopped by Ctrl-C before there was an answer"])
        return INTERRUPTED
    except SeenEnough:
        # What is still in the buffer goes nowhere, or Python would complain of it at exit.
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return UNREAD
    except OSError as error:
        if error.errno not in _CANNOT_HOLD_MORE:
            raise
        BadInput(f"stdout: cannot be written: {error.strerror}").show()
        # Python would complain once more at exit of what is still in the buffer.
        with suppress(OSError):
            sys.stdout.close()
        return BAD_INPUT
    except SystemExit as left:
        return left.code if isinstance(left.code, int) else FITS
    return FITS


def _open_what_is_closed() -> None:
    """Who closes a stream (`>&-`) wants nothing of it. Python then has None there, which would be a traceback at the first use."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115, PTH123 - for as long as the process lives
