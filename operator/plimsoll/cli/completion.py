"""`plimsoll completion`: prints the script by which a shell completes commands, options and known names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import click
from click.shell_completion import BashComplete, FishComplete, ShellComplete, ZshComplete


class _Fish(FishComplete):
    """click's completion for fish, but without cutting the help of a word at its first comma."""

    source_template = FishComplete.source_template.replace('string split ","', 'string split --max 1 ","')


_SHELLS: Final[Mapping[str, type[ShellComplete]]] = {
    "bash": BashComplete,
    "zsh": ZshComplete,
    "fish": _Fish,
}


@click.command("completion")
@click.argument("shell", type=click.Choice(list(_SHELLS)))
@click.pass_context
def completion_command(ctx: click.Context, shell: str) -> None:
    """Print the completion script for SHELL.

    \b
    Example, for the shell you are in:
      source <(plimsoll completion bash)
    For good:
      plimsoll completion bash > ~/.local/share/bash-completion/completions/plimsoll
      plimsoll completion zsh  > "${fpath[1]}/_plimsoll"
      plimsoll completion fish > ~/.config/fish/completions/plimsoll.fish
    """
    # The template is filled here, as click's `source()` would also run a bash for its version, whichever shell the script is for.
    maker = _SHELLS[shell](ctx.find_root().command, {}, "plimsoll", "_PLIMSOLL_COMPLETE")
    click.echo(maker.source_template % maker.source_vars())
