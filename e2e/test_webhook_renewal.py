"""A webhook's certificate on a real API server: made, told, renewed and shown by two replicas, with no call refused on the way.

A quarter of a year passes on a clock of the test's own; what is made counts on the API server's.
"""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any, Final, cast

from cluster import Cluster
from cluster.processes import free_port
from common import PATIENCE_SECONDS
from plimsoll.handlers.admission import Admission, ReviewCounts, WebhookOptions
from plimsoll.handlers.webhook import Webhook
from plimsoll.kube.certificates import RENEW_AFTER, SETTLE
from plimsoll.kube.credentials import Access
from plimsoll.kube.door import Door
from plimsoll.kube.errors import KubeError
from plimsoll.kube.keeping import STRATEGIC

HERE: Final = "127.0.0.1"
SECRET: Final = "webhook"
PROBE: Final = "probe.plimsoll.dev"
HOOKS: Final = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"


class Always:
    """Lets everything in, and counts how often it was asked."""

    def __init__(self) -> None:
        self.counts = ReviewCounts()

    async def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        return {"uid": request["uid"], "allowed": True}

    def close(self) -> None:
        pass


@asynccontextmanager
async def replicas(
    door: Door, place: str, ports: tuple[int, int], now: Callable[[], float]
) -> AsyncIterator[tuple[Webhook, Webhook]]:
    """Two operators' webhooks, of which the first acts."""
    made = tuple(
        Webhook(
            cast(Admission, Always()),
            door,
            WebhookOptions(port=port, hosts=(HERE,), secret=SECRET, configuration=place),
            namespace=place,
            host=HERE,
            leads=lambda leads=number == 0: leads,  # type: ignore[misc]
            now=now,
        )
        for number, port in enumerate(ports)
    )
    try:
        yield made[0], made[1]
    finally:
        for one in made:
            await one.close()


async def trusted(door: Door, configuration: str, ports: tuple[int, int]) -> None:
    """Whoever trusts what the API server is told accepts what both show."""
    hooks = (await door.get(f"{HOOKS}/{configuration}"))["webhooks"]
    for hook, port in zip(hooks, ports, strict=True):
        bundle = base64.b64decode(hook["clientConfig"]["caBundle"]).decode()
        _, writer = await asyncio.open_connection(HERE, port, ssl=ssl.create_default_context(cadata=bundle))
        writer.close()
        await writer.wait_closed()


async def heard(door: Door, place: str) -> None:
    """Returns once the API server goes by the configuration as it is now: a hook that nobody answers is seen to be asked."""
    path, maps = f"{HOOKS}/{place}", f"/api/v1/namespaces/{place}/configmaps"
    hooks = (await door.get(path))["webhooks"]
    condition = {"name": "probe", "expression": "object.metadata.?name.orValue('') == 'probe'"}
    probe = {
        **hooks[0],
        "name": PROBE,
        "clientConfig": {"url": f"https://{HERE}:{free_port()}/nobody"},
        "matchConditions": [condition],
    }
    await door.patch(path, {"webhooks": [probe]}, manager="test", content=STRATEGIC)
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            try:
                await door.create(maps, {"metadata": {"name": "probe"}}, manager="test")
            except KubeError as error:
                if PROBE in str(error):
                    break
            else:
                await door.delete(f"{maps}/probe")
            await asyncio.sleep(0.05)
    gone = {"webhooks": [{"$patch": "delete", "name": PROBE}]}
    await door.patch(path, gone, manager="test", content=STRATEGIC)


def test_a_certificate_is_renewed_without_a_call_refused(cluster: Cluster, namespace: str) -> None:
    try:
        asyncio.run(renews(cluster, namespace))
    finally:
        cluster.api.delete(f"{HOOKS}/{namespace}")


async def renews(cluster: Cluster, place: str) -> None:
    ports = (free_port(), free_port())
    begins = datetime.now(UTC) - RENEW_AFTER  # noqa: TID251 - the API server has no other clock
    clock = [begins]

    def now() -> float:
        return clock[0].timestamp()

    cluster.api.create(f"/api/v1/namespaces/{place}/secrets", {"metadata": {"name": SECRET}})
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    hooks = [
        {
            "name": f"replica-{number}.plimsoll.dev",
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "failurePolicy": "Fail",
            "clientConfig": {"url": f"https://{HERE}:{port}/validate"},
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": place}},
            "rules": [rule],
        }
        for number, port in enumerate(ports)
    ]
    cluster.api.create(HOOKS, {"metadata": {"name": place}, "webhooks": hooks})
    maps = f"/api/v1/namespaces/{place}/configmaps"

    async def called(door: Door) -> None:
        await door.create(maps, {"metadata": {"generateName": "one-"}}, manager="test")

    async with (
        Door(await Access.find(file=str(cluster.kubeconfig))) as door,
        replicas(door, place, ports, now) as (first, second),
    ):

        async def look() -> tuple[str, str]:
            """Both look, the one that acts first, and are called on the way."""
            for one in (first, second):
                await one.look()
                await trusted(door, place, ports)
                await called(door)
            data = (await door.get(f"/api/v1/namespaces/{place}/secrets/{SECRET}"))["data"]
            return data["tls.crt"], data["ca.crt"]

        await first.look()
        await second.look()
        await heard(door, place)
        shown, authorities = await look()
        assert await look() == (shown, authorities)
        clock[0] = begins + RENEW_AFTER
        announced, both = await look()
        assert announced == shown
        assert both != authorities
        assert await look() == (announced, both)
        # In earnest minutes pass, here the API server is waited for.
        await heard(door, place)
        clock[0] += SETTLE
        renewed, bundle = await look()
        assert renewed != shown
        assert bundle == both

    # New connections, so that what is shown now is looked at by the API server itself.
    async with (
        Door(await Access.find(file=str(cluster.kubeconfig))) as door,
        replicas(door, place, ports, now) as again,
    ):
        for one in again:
            await one.look()
        for _ in range(10):
            await called(door)
