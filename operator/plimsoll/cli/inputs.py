"""Reads what commands are given: resources, the admin's config, models, GPUs. All problems are told at once.

The fleet is read by `fleets`. Nothing is fetched unless `--online` is given, and what is fetched is then told on stderr.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

import click
from pydantic import ValidationError

from plimsoll.api.config import OperatorConfig
from plimsoll.api.loading import load_config, load_deployments
from plimsoll.api.problems import Problem, SpecError, problems_of
from plimsoll.api.v1alpha1.deployment import LLMDeployment
from plimsoll.api.v1alpha1.model import ModelSpec
from plimsoll.cli.errors import BadInput, note
from plimsoll.facts.engine_files import handed_in
from plimsoll.facts.engines import EngineFacts, UnknownEngineError, engine_facts
from plimsoll.facts.gpus import Gpu, UnknownGpu, all_gpus, gpu_named
from plimsoll.facts.model import ModelFacts
from plimsoll.facts.models import catalogue_names
from plimsoll.facts.resolve import HubAccess, ModelUnknown, Resolver

_OF_RESOURCES: Final = (".yaml", ".yml", ".json")

files_option = click.option(
    "-f",
    "--filename",
    "files",
    multiple=True,
    type=click.Path(),
    metavar="FILE",
    help="LLMDeployments, one or several, or a folder of such files; - is stdin. May be given more than once.",
)
online_option = click.option(
    "--online", is_flag=True, help="Ask the model hub about models that the catalogue does not know."
)
config_option = click.option(
    "--config",
    "config_file",
    metavar="FILE",
    help="The admin's OperatorConfig: prices, node classes, presets.",
)


_MEANT: Final = (
    # an option of the command, words that it does not have, and what is written here
    ("--fleet", (("--gpu", "--gpus"), "GPUs are a fleet, as --fleet 8xH100")),
    (
        "--trace",
        (
            ("-n", "--namespace", "--requests", "--num-requests", "--num-prompts", "--limit"),
            "how much of a trace is replayed is said by --days and --scale, and whose it is by --name NAME or NAMESPACE/NAME",
        ),
    ),
    ("--filename", (("-n", "--namespace"), "each resource says its namespace itself, in metadata.namespace")),
)
"""In this order, as the first that the command has is told."""


class OfFiles(click.Command):
    """A command that takes resources by -f. For a file's name without the option, and for options that other tools have, it says what was meant,
    where click would only complain of an argument or propose another option.
    """

    allow_extra_args = True

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            known = {name for option in self.params for name in option.opts}
            meant = next(
                (said for name, (words, said) in _MEANT if name in known and error.option_name in words), None
            )
            if meant is not None:
                ctx.fail(f"no such option {error.option_name}: {meant}")
            raise

    def invoke(self, ctx: click.Context) -> Any:
        words = [*ctx.args, ctx.params.get("field") or ""]
        file = next((word for word in words if word.endswith(_OF_RESOURCES)), None)
        if file is not None:
            ctx.fail(f"{file} stands there alone; a file of resources is given as -f {file}")
        if ctx.args:
            ctx.fail(f"{ctx.args[0]!r} is a word too many; files of resources are given as -f FILE")
        return super().invoke(ctx)


def tokens(text: str) -> int:
    """A number of tokens in the engine's own notation: 32768, 32K, or 32k for 32,000."""
    from plimsoll.cli.importing.values import size  # noqa: PLC0415 - with it come all that `import` can read

    return size(text)


class Tokens(click.ParamType[int]):
    """The type of an option that is a number of tokens."""

    name = "tokens"

    def __init__(self, *, least: int) -> None:
        self.least = least

    def convert(self, value: str | int, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            found = tokens(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)
        if found < self.least:
            self.fail(f"{value} is too few; use at least {self.least}", param, ctx)
        return found


def gpu_names(_context: click.Context, _option: click.Parameter, typed: str) -> list[str]:
    """Names of GPUs, for completion."""
    return [one.name for one in all_gpus() if one.name.lower().startswith(typed.lower())]


def model_names(_context: click.Context, _argument: click.Parameter, typed: str) -> list[str]:
    """Names of models of which any part begins with what is typed, for completion."""
    wanted = typed.lower()
    return [
        name for name in catalogue_names() if name.lower().startswith(wanted) or f"/{wanted}" in name.lower()
    ]


def read_text(name: str) -> bytes:
    """A file's bytes, or stdin's."""
    try:
        return sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        raise BadInput(f"{name}: cannot be read: {error.strerror}; name a file, or - for stdin") from None


def _files_of(name: str) -> list[str]:
    """The files that a name stands for: of a folder those that kubectl would read too, in the order of their names."""
    folder = Path(name)
    if name == "-" or not folder.is_dir():
        return [name]
    inside = resource_files(folder)
    if not inside:
        raise BadInput(f"{name}: holds no file that ends in .yaml, .yml or .json")
    return inside


def resource_files(folder: Path) -> list[str]:
    return sorted(str(file) for file in folder.iterdir() if file.suffix in _OF_RESOURCES)


def deployments(files: Sequence[str]) -> list[LLMDeployment]:
    """All resources of all files, or all their problems."""
    found: list[LLMDeployment] = []
    problems: list[Problem | str] = []
    opened: list[tuple[str, str]] = []
    for name in files:
        try:
            opened += [(name, file) for file in _files_of(name)]
        except BadInput as error:
            problems += error.lines
    for name, path in opened:
        file = "stdin" if path == "-" else path
        try:
            text = read_text(path)
        except BadInput as error:
            problems += error.lines
            continue
        loaded = load_deployments(text, file=file, one_of_many=path != name)
        if loaded.passed_over and not loaded.problems:
            note([f"{file}: passed over, as a plan reads nothing of it: {', '.join(loaded.passed_over)}"])
        if loaded.passed_over and loaded.problems and path != "-":
            _tell_import(path, loaded.passed_over)
        found += loaded.deployments
        problems += loaded.problems
    if opened and not found and not problems:
        raise BadInput(f"{', '.join(files)}: no LLMDeployment in it")
    names = Counter(f"{one.namespace}/{one.name}" for one in found)
    if len(opened) > 1:
        problems += [
            Problem(
                "metadata.name",
                name,
                f"stands {times} times in these files; give each resource a name of its own",
            )
            for name, times in names.items()
            if times > 1
        ]
    if problems:
        raise BadInput(*problems)
    return found


def _tell_import(path: str, kinds: Sequence[str]) -> None:
    from plimsoll.cli.importing import is_read  # noqa: PLC0415 - with it comes all that `import` can read

    if any(is_read(kind.partition(" ")[0]) for kind in kinds):
        note([f"plimsoll import -f {path} > llm.yaml makes an LLMDeployment of what serves a model there"])


def config(name: str | None) -> OperatorConfig:
    try:
        return handed_in(OperatorConfig() if name is None else load_config(read_text(name), file=name))
    except SpecError as error:
        raise BadInput(*error.problems) from None


def gpu(name: str) -> Gpu:
    try:
        return gpu_named(name)
    except UnknownGpu as error:
        if "," in name or re.match(r"\d+x", name):
            raise BadInput(f"--gpu: {name!r} is a fleet; give one GPU by its name, as H100") from None
        raise BadInput(f"--gpu: {error} (`plimsoll gpus` lists them all)") from None


def engine(version: str | None) -> EngineFacts:
    try:
        found = engine_facts("vllm", version)
    except (UnknownEngineError, ValueError) as error:
        raise BadInput(f"--engine-version: {error}") from None
    # For an unknown version elsewhere the newest facts are used, but what a person types here has to be a release.
    if found.release is None:
        newest = found.facts_version
        raise BadInput(
            f"--engine-version: {version!r} names no release of {found.profile.title}; write it as {newest}"
        )
    return found


def model_named(name: str, *, online: bool) -> ModelFacts:
    """The facts of a model that a person names on the command line."""
    try:
        found = _resolver(OperatorConfig(), online=online).resolve_name(name)
    except ModelUnknown as error:
        raise BadInput(_with_hint(error, online=online)) from None
    except ValidationError as error:
        raise BadInput(*problems_of(error, ModelSpec)) from None
    _tell_fetched(found)
    return found


def model_of(spec: ModelSpec, admin: OperatorConfig, *, online: bool) -> ModelFacts | str:
    """The facts of a resource's model, or a sentence on why there are none, which the plan tells."""
    try:
        found = _resolver(admin, online=online).resolve(spec)
    except ModelUnknown as error:
        # The plan names the source itself.
        return _with_hint(error, online=online).removeprefix(f"model {error.source}: ")
    _tell_fetched(found)
    return found


def _tell_fetched(found: ModelFacts) -> None:
    if found.origin.startswith("hub"):
        note([f"{found.source}: config and tensor headers read from the hub at {found.revision}"])


def _with_hint(error: ModelUnknown, *, online: bool) -> str:
    if online or "offline" not in error.reason:
        return str(error)
    name = error.source.removeprefix("hf://")
    known, begun = catalogue_names(), name.rpartition("/")[2].casefold()
    near = [one for one in known if one.rpartition("/")[2].casefold().startswith(begun)]
    near = list(dict.fromkeys([*near, *get_close_matches(name, known, n=3, cutoff=0.8)]))[:3]
    meant = f"did you mean {', '.join(near)}? " if near else ""
    return f"{error} ({meant}--online asks the hub)"


def _resolver(admin: OperatorConfig, *, online: bool) -> Resolver:
    """A resolver with mirror and proxy of the admin's config. Where that names none, the hub's client reads the usual variables."""
    network = admin.network
    hub = HubAccess(endpoint=network.hub_endpoint, proxy=network.https_proxy) if online else None
    return Resolver(hub=hub, folders=True)
