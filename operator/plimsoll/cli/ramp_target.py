"""What `plimsoll ramp` measures: an address, or a deployment in a cluster with its Service, its pods and its plan."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic import ValidationError

from plimsoll import names
from plimsoll.cli import ramp_plan
from plimsoll.cli.errors import BadInput, note
from plimsoll.cli.reaching import reaching
from plimsoll.load.engine import PodName

_NAME: Final = re.compile(r"(?:(?P<namespace>[a-z0-9-]+)/)?(?P<name>[a-z0-9]([a-z0-9-]*[a-z0-9])?)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    url: str
    pages: tuple[str, ...] = ()
    """Addresses of each pod's metrics; none where only the address is known."""
    pods: frozenset[PodName] = frozenset()
    """The pods whose GPUs are the deployment's; none where only the address is known."""
    held: ramp_plan.Held | None = None
    deployment: Mapping[str, Any] | None = None
    """The deployment's object in the cluster; None where only the address is known."""


def target(what: str | None, *, url: str | None, namespace: str | None, context: str | None) -> Target:
    """The target of a command line. `what` is the argument, `url` the option that replaces a Service's own address."""
    if what is None or "://" in what:
        address = _only(what, url)
        if namespace is not None:
            raise BadInput(
                f"-n {namespace}: belongs to the NAME of a deployment; {address} is an address already"
            )
        return Target(url=address)
    found = _NAME.fullmatch(what)
    if found is None:
        raise BadInput(
            f"{what!r} is neither an address (http://HOST:PORT) nor the name of a {names.KIND} (NAME or NAMESPACE/NAME)"
        )
    if namespace is not None and found["namespace"] not in (None, namespace):
        raise BadInput(f"-n {namespace}: {what!r} names another namespace")
    return _deployment(found["name"], found["namespace"] or namespace, url, context)


def _only(what: str | None, url: str | None) -> str:
    if what is not None and url is not None:
        raise BadInput(f"--url {url}: {what} is an address already; give one of them")
    given = what or url
    if given is None:
        raise BadInput(f"nothing to measure: give the NAME of a {names.KIND}, or an address")
    return given


def _deployment(name: str, namespace: str | None, url: str | None, context: str | None) -> Target:
    from plimsoll.kube.endpoint import read_endpoint  # noqa: PLC0415 - the client loads for a second

    try:
        with reaching(context):
            endpoint = read_endpoint(name, namespace, context)
    except LookupError as error:
        raise BadInput(f"NAME: {error.args[0]}") from None
    note(endpoint.notes)
    address = url or endpoint.url
    if address is None:
        raise BadInput(
            f"{endpoint.title} has no Service with an address yet; `plimsoll doctor {name}` says what keeps it, "
            "--url HTTP://HOST:PORT measures another address"
        )
    held = _held(endpoint.plan, endpoint.deployment)
    return Target(
        url=address,
        pages=() if url else endpoint.pages,
        pods=endpoint.pods,
        held=held,
        deployment=endpoint.deployment,
    )


def _held(plan: str | None, deployment: Mapping[str, Any]) -> ramp_plan.Held | None:
    try:
        held, why = ramp_plan.from_cluster(plan, deployment)
    except ValidationError:
        note(["the deployment cannot be read as this version has it; nothing is compared"])
        return None
    if why is not None:
        note([why])
    return held
