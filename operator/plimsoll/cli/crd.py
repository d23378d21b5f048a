"""`plimsoll crd`: the CustomResourceDefinition, to pipe into kubectl."""

from __future__ import annotations

import click

from plimsoll.api.crd import crd_yaml


@click.command("crd")
def crd_command() -> None:
    """Print the CustomResourceDefinition of LLMDeployment.

    \b
    Example:
      plimsoll crd | kubectl apply --server-side -f -
    """
    click.echo(crd_yaml(), nl=False)
