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
    from plimsoll.kube.by_hand import ClusterUnreadable, ContextUnknown  # noqa: PLC0415 - the client loads for a second

    try:
        yield
    except ClusterUnreadable as error:
        if not context:
            raise BadInput(f"--context: {error}") from None
        # The word may have been meant for the command: explain --context max_num_seqs.
        alone = "; for the current one, --context stands last" if isinstance(error, ContextUnknown) else ""
        raise BadInput(f"--context {context}: {error}{alone}") from None
