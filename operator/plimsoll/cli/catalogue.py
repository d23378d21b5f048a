"""`plimsoll gpus` and `plimsoll models`: list the names that are known without further facts."""

from __future__ import annotations

import click

from plimsoll.cli import drawing
from plimsoll.cli.errors import note
from plimsoll.cli.output import output_option, print_data
from plimsoll.facts.dtypes import Dtype
from plimsoll.facts.gpus import Gpu, all_gpus
from plimsoll.facts.models import catalogue_names


@click.command("gpus")
@output_option
def gpus_command(*, output: str) -> None:
    """List the accelerators that are known: names for --gpu, --fleet and topology.gpuProducts.

    \b
    Example:
      plimsoll gpus | grep -i h100
    """
    if output != "text":
        print_data([_data(gpu) for gpu in all_gpus()], output)
        return
    rows = [_row(gpu) for gpu in all_gpus()]
    heads = ("NAME", "VENDOR", "ARCHITECTURE", "GIB", "KNOWN", "GB/S", "BF16 TFLOPS", "FP8", "LINK")
    drawing.show([drawing.table(heads, rows, left=(0, 1, 2, 4, 8))])


def _data(gpu: Gpu) -> dict[str, object]:
    return {
        "name": gpu.name,
        "vendor": gpu.vendor.value,
        "architecture": gpu.architecture,
        "memoryBytes": gpu.memory_bytes,
        "memoryMeasured": gpu.memory_measured,
        "bytesPerSecond": int(gpu.bandwidth),
        "flops": {dtype.value: int(flops) for dtype, flops in gpu.flops.items()},
        "link": {"kind": gpu.link.kind.value, "gpus": gpu.link.domain},
    }


def _row(gpu: Gpu) -> tuple[str, ...]:
    return (
        gpu.name,
        gpu.vendor.value,
        gpu.architecture,
        drawing.gib(gpu.memory_bytes),
        "measured" if gpu.memory_measured else "datasheet",
        drawing.count(gpu.bandwidth / 1e9),
        drawing.count(gpu.flops[Dtype.BFLOAT16] / 1e12) if Dtype.BFLOAT16 in gpu.flops else "-",
        drawing.count(gpu.flops[Dtype.FP8] / 1e12) if Dtype.FP8 in gpu.flops else "-",
        gpu.link.kind.value + (f" x{gpu.link.domain}" if gpu.link.domain > 1 else ""),
    )


@click.command("models")
@click.argument("part", default="")
@output_option
def models_command(part: str, *, output: str) -> None:
    """List the models that are known without a network, or those whose name holds PART.

    Quantized variants of these names (-FP8, -AWQ, -GPTQ-Int4, ...) are known too.

    \b
    Example:
      plimsoll models qwen3
    """
    found = [name for name in catalogue_names() if part.casefold() in name.casefold()]
    if output != "text":
        print_data(found, output)
    else:
        click.echo("".join(f"{name}\n" for name in found), nl=False)
    if not found:
        note([f"no known model's name holds {part!r}; `plimsoll models` alone lists all"])
