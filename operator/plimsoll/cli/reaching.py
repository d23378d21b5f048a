"""How every command names the cluster it looks at, and what it says when that cannot be read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import click

from plimsoll.cli.errors import BadInput

CURRENT: Final = ""
"""--context without a name: the kubeconfig's current one."""

context_option = click.option(
    "--context",
    is_flag=False,
    flag_value=CURRENT,
    default=CURRENT,
    metavar="[KUBECONTEXT]",
    help="The cluster, by its context. Default: the current one.",
)


@contextmanager
def reaching(context: str | None) -> Iterator[None]:
    """Around what reads a cluster: one that cannot be read is told as the context's fault."""
    from plimsoll.kube.reader import ClusterUnreadable  # noqa: PLC0415 - the client loads for a second

    try:
        yield
    except ClusterUnreadable as error:
        raise BadInput(f"--context{f' {context}' if context else ''}: {error}") from None
