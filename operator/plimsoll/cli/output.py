"""The `-o` option of every command that answers with data."""

from __future__ import annotations

import json

import click
import yaml

output_option = click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json", "yaml"]),
    default="text",
    show_default=True,
    help="For people, or for programs.",
)


def print_data(data: object, output: str) -> None:
    """Prints one document on stdout, with the same bytes for the same data."""
    if output == "json":
        click.echo(json.dumps(data, indent=2, ensure_ascii=False))
    else:
        click.echo(yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=110), nl=False)
