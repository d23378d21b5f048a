"""How commands name the cluster that they read, and what they say when it cannot be read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeVar

import click

from plimsoll.api.base import DNS_LABEL
from plimsoll.cli.errors import BadInput

_F = TypeVar("_F", bound=Callable[..., Any])

CURRENT: Final = ""
"""The value of --context without a name, which means the kubeconfig's current context."""

context_option = click.option(
    "--context",
    is_flag=False,
    flag_value=CURRENT,
    default=CURRENT,
    metavar="[KUBECONTEXT]",
    help="The cluster, by its context. Default: the current one.",
)


def namespace_option(help_: str) -> Callable[[_F], _F]:
    """`-n`, which is no path: with a / in it another address would be asked, where nothing is."""

    def checked(_context: click.Context, _param: click.Parameter, value: str | None) -> str | None:
        if value is not None and not re.fullmatch(DNS_LABEL, value):
            raise BadInput(f"--namespace: {value!r} is no namespace's name: small letters, digits and dashes")
        return value

    return click.option("-n", "--namespace", metavar="NAMESPACE", callback=checked, help=help_)


@contextmanager
def reaching(context: str | None) -> Iterator[None]:
    """A context around code that reads a cluster, which turns its errors into BadInput on the --context option."""
    from plimsoll.kube.by_hand import ClusterUnreadable, ContextUnknown  # noqa: PLC0415 - the client loads for a second

    try:
        yield
    except ClusterUnreadable as error:
        if not context:
            raise BadInput(f"--context: {error}") from None
        # What was taken for the context's name may have been meant as the command's argument: explain --context max_num_seqs.
        alone = "; for the current one, --context stands last" if isinstance(error, ContextUnknown) else ""
        raise BadInput(f"--context {context}: {error}{alone}") from None
