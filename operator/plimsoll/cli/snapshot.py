"""`plimsoll snapshot`: writes a cluster into one file, so that plans can be made, shared and repeated without it."""

from __future__ import annotations

import click

from plimsoll.cli import inputs
from plimsoll.cli.drawing import many
from plimsoll.cli.errors import note
from plimsoll.cli.fleets import from_cluster
from plimsoll.cli.reaching import context_option
from plimsoll.cli.written import check_writable, write_file
from plimsoll.facts.snapshot import write_snapshot


@click.command("snapshot")
@context_option
@click.option(
    "-o", "--output", "file", metavar="FILE", help="Where to write; .json is read faster. Default: stdout."
)
@inputs.config_option
def snapshot_command(*, context: str, file: str | None, config_file: str | None) -> None:
    """Write what a plan needs of a cluster into one file: read only, and without secrets.

    Nodes, what pods request, ResourceSlices, LLMDeployments with their pinned plans and serving sets, what was learned,
    and the admin's config where it is given.

    \b
    Example:
      plimsoll snapshot --context prod -o prod.yaml
      plimsoll plan -f llm.yaml --snapshot prod.yaml
    """
    if file is not None:
        check_writable("-o", file, config_file)
    admin = None if config_file is None else inputs.config(config_file)
    taken = from_cluster(context or None, admin)
    text = write_snapshot(taken, "json" if file is not None and file.endswith(".json") else "yaml")
    if file is None:
        click.echo(text, nl=False)
        return
    write_file("-o", file, text)
    pods = "pods unseen" if taken.pods is None else f"{many(len(taken.pods), 'pod')} with requests"
    deployments = many(len(taken.deployments), "LLMDeployment")
    note([f"{file}: {many(len(taken.nodes), 'node')}, {pods}, {deployments}"])
