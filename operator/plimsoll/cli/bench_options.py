"""The options that `bench` and `ramp` share, and what they mean: the endpoint, the shape of the load, the targets.

Other tools' names of the same options are accepted too, so that an existing command line works as it is.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

import click

from plimsoll.cli.errors import BadInput, note
from plimsoll.load.client import Api, Endpoint
from plimsoll.load.lengths import Lengths, parse_lengths
from plimsoll.load.problems import LoadError
from plimsoll.load.slo import Slo, parse_slo

Command = TypeVar("Command", bound=Callable[..., Any])

# From vllm bench serve, genai-perf and guidellm.
_SAME: Final[Mapping[str, str]] = {
    "--request-rate": "--rate",
    "--max-concurrency": "--concurrency",
    "--num-prompts": "--requests",
    "--request-count": "--requests",
    "--max-requests": "--requests",
    "--max-seconds": "--duration",
    "--benchmark-duration": "--duration",
    "--random-input-len": "--input-tokens",
    "--synthetic-input-tokens-mean": "--input-tokens",
    "--isl": "--input-tokens",
    "--random-output-len": "--output-tokens",
    "--output-tokens-mean": "--output-tokens",
    "--osl": "--output-tokens",
    "--random-prefix-len": "--prefix-tokens",
    "--random-seed": "--seed",
    "--goodput": "--slo",
}
_ADDRESS: Final = frozenset({"--url", "--base-url", "--target"})
"""Options by which other tools take what is an argument here."""
_UNITS: Final[Mapping[str, int]] = {"": 1, "s": 1, "m": 60, "h": 3600}


class LoadCommand(click.Command):
    """A command that also accepts other tools' names for its options."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        own = {name for option in self.params for name in option.opts}
        return super().parse_args(ctx, [word for given in args if (word := _renamed(given, own))])


def _renamed(word: str, own: set[str]) -> str:
    name, equals, value = word.partition("=")
    if name in _ADDRESS and name not in own:
        return value
    same = _SAME.get(name.replace("_", "-"), name)
    return f"{same}{equals}{value}" if same in own else word


def seconds(text: str) -> float:
    """The type of an option that is a duration."""
    found = re.fullmatch(r"([0-9]{1,7}(?:\.[0-9]{1,3})?)([smh]?)", text)
    if found is None:
        raise click.BadParameter(f"{text!r} is no time; write 60, 90s, 5m or 2h")
    return float(found[1]) * _UNITS[found[2]]


def positive(text: str) -> float:
    """The type of an option that is a finite number above zero."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise click.BadParameter(f"{text!r} is no number above 0, such as 4 or 0.5")
    return number


def endpoint_options(command: Command) -> Command:
    """Adds the options on where requests are sent and what they name."""
    for option in (
        click.option(
            "--timeout",
            "timeout_s",
            type=seconds,
            metavar="TIME",
            default="600s",
            show_default=True,
            help="Given to one request.",
        ),
        click.option(
            "--header", "headers", multiple=True, metavar="'NAME: VALUE'", help="Sent with every request."
        ),
        click.option(
            "--api-key",
            envvar="OPENAI_API_KEY",
            show_envvar=True,
            metavar="KEY",
            help="Sent as bearer token.",
        ),
        click.option(
            "--endpoint-type",
            type=click.Choice([one.value for one in Api]),
            default=Api.CHAT.value,
            show_default=True,
            help="Which of the two streaming forms to speak.",
        ),
        click.option("--model", metavar="NAME", help="As served. Default: what the endpoint lists first."),
    ):
        command = option(command)
    return command


def shape_options(command: Command) -> Command:
    """Adds the options on what requests look like, and on the targets."""
    for option in (
        click.option(
            "--slo", metavar="TARGETS", help="ttft=1000,itl=50 (also tpot, e2e), in ms, kept for 99 of 100."
        ),
        click.option(
            "--seed",
            type=click.IntRange(0, 2**31),
            default=0,
            show_default=True,
            help="Same seed, same arrivals and lengths.",
        ),
        click.option(
            "--prefix-count",
            type=click.IntRange(1, 100000),
            default=1,
            show_default=True,
            help="Different beginnings.",
        ),
        click.option(
            "--prefix-tokens",
            type=click.IntRange(0, 16_777_216),
            default=0,
            help="Tokens at the start of prompts that are shared; part of --input-tokens.",
        ),
        click.option(
            "--output-tokens", metavar="LENGTH", help="Of an answer, in the same forms.  [default: 128]"
        ),
        click.option(
            "--input-tokens",
            metavar="LENGTH",
            help="Of a prompt: 512, 100..400, or p50=512,p95=2048 (log-normal).  [default: 512]",
        ),
    ):
        command = option(command)
    return command


def endpoint(
    url: str,
    *,
    model: str | None,
    endpoint_type: str,
    api_key: str | None,
    headers: tuple[str, ...],
    timeout_s: float,
) -> Endpoint:
    said = {}
    for header in headers:
        name, colon, value = header.partition(":")
        if not colon or not re.fullmatch(r"[A-Za-z0-9-]+", name.strip()) or not value.strip().isprintable():
            raise BadInput(f"--header: {header!r} is no header; write 'NAME: VALUE'")
        said[name.strip()] = value.strip()
    # A key that was read from a file has the end of its line.
    if key := (api_key or "").strip():
        if not key.isprintable():
            raise BadInput(
                "--api-key: holds what cannot be printed, as the end of a line; give the key alone"
            )
        said["Authorization"] = f"Bearer {key}"
    if timeout_s <= 0:
        raise BadInput("--timeout: 0 gives requests no time; write 60, 90s, 5m or 2h")
    return Endpoint(url=url, api=Api(endpoint_type), model=model, headers=said, timeout_s=timeout_s)


def lengths(text: str | None, otherwise: int, option: str) -> Lengths:
    return _told(lambda: parse_lengths(text or str(otherwise), option))


def refuse_lengths(input_tokens: str | None, output_tokens: str | None, prefix_tokens: int) -> None:
    """Refuses what would be passed over beside a trace of requests, whose own lengths are played."""
    named = {
        "--input-tokens": input_tokens,
        "--output-tokens": output_tokens,
        "--prefix-tokens": prefix_tokens or None,
    }
    if given := [name for name, value in named.items() if value is not None]:
        raise BadInput(
            f"{given[0]}: the trace has lengths of its own; leave it out, or have a trace of times alone or of rates"
        )


def check_prefix(prefix_tokens: int, prompts: Lengths) -> None:
    """Refuses prompts that are all beginning: the engine has them in its cache, so that TTFT would be of no prefill. Says where some are."""
    if prefix_tokens == 0 or (share := prompts.share_within(prefix_tokens)) < 0.01:
        return
    told = f"--prefix-tokens: {prefix_tokens} are a part of --input-tokens {prompts}"
    if share > 0.99:
        raise BadInput(
            f"{told}, and leave a prompt nothing of its own, so that TTFT would be of cached prompts; "
            "give the length of the whole prompt as --input-tokens"
        )
    note([f"{told}; {share:.0%} of the prompts have nothing else, and their TTFT is of cached prompts"])


def slo(text: str | None) -> Slo | None:
    return None if text is None else _told(lambda: parse_slo(text))


Answer = TypeVar("Answer")


def _told(parse: Callable[[], Answer]) -> Answer:
    try:
        return parse()
    except LoadError as error:
        raise BadInput(str(error)) from None
