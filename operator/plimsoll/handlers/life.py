"""The operator's process from start to end: it takes the Lease, sees what is in the cluster, takes turns, and gives everything back.

The Lease is taken without kopf and before the process acts. When it is lost the process ends at once, as another one leads then.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import kopf

from plimsoll import __version__
from plimsoll.facts.inventory import Inventory
from plimsoll.handlers import telemetry
from plimsoll.handlers.admission import Admission, WebhookOptions
from plimsoll.handlers.alerted import Alerted
from plimsoll.handlers.ending import KOPF_SECONDS, end_by_force, ended, raise_end, unless
from plimsoll.handlers.events import registry_of, settings_of
from plimsoll.handlers.garbage import collect_seldom
from plimsoll.handlers.health import Metric, Probe, serve_health
from plimsoll.handlers.options import Options
from plimsoll.handlers.waking import Waking
from plimsoll.kube.credentials import Access, configuration
from plimsoll.kube.door import Door
from plimsoll.kube.lease import LEASE_CALL_SECONDS, Lease
from plimsoll.kube.pace import Pace
from plimsoll.kube.rights import Rights
from plimsoll.prometheus import own

if TYPE_CHECKING:
    from plimsoll.handlers.webhook import Webhook

LOG: Final = logging.getLogger(__name__)
REVIEW_SECONDS: Final = 2.0
"""Timeout of a question about a user's rights, for whose answer somebody waits."""


class Life:
    def __init__(self, options: Options) -> None:
        self.options = options
        self.pace = Pace()
        self.ready = asyncio.Event()
        """Set once everything in the cluster has been seen and turns are taken."""
        self._sees = False
        self._webhook: asyncio.Task[None] | None = None
        self._hook: Webhook | None = None
        self._admission: Admission | None = None
        self._alerted: Alerted | None = None
        self._stop = asyncio.Event()

    def stop(self) -> None:
        """Asks the process to end. Running turns are given a little time to finish."""
        if self.options.signals and not self._stop.is_set():
            end_by_force()
        self._stop.set()

    def handle_signals(self) -> None:
        """Lets SIGTERM and SIGINT stop it, if the options say so. Signals are for a whole process, so a Life within another one leaves them."""
        if self.options.signals:
            for number in (signal.SIGTERM, signal.SIGINT):
                asyncio.get_running_loop().add_signal_handler(number, self.stop)

    async def run(self) -> None:
        """Runs until it is stopped. Raises LeaseLost where another process took over."""
        self.handle_signals()
        options = self.options
        load: Callable[[], Any] = lambda: configuration(options.context, options.kubeconfig)  # noqa: E731
        access = Access(load, self.pace)
        async with contextlib.AsyncExitStack() as stack:
            lease: Lease | None = None
            if options.lease_namespace is not None:
                own = await stack.enter_async_context(
                    Door(access, pace=self.pace, reads=1, writes=1, seconds=LEASE_CALL_SECONDS)
                )
                watches = ", ".join(sorted(options.namespaces)) or "all namespaces"
                lease = Lease(own, options.lease_namespace, options.identity, watches=watches, pace=self.pace)
            may_write: Callable[[], bool] = (lambda: True) if lease is None else (lambda: lease.held)
            door = await stack.enter_async_context(Door(access, pace=self.pace, may_write=may_write))
            self.waking = waking = Waking(options, door, self.pace)
            if options.alerts is not None:
                known = waking.resources.__contains__
                self._alerted = Alerted(options.alerts, known=known, wake=waking.evaluate)
            if options.port is not None:
                runner = await serve_health(self._probe(door, lease), options.host, options.port)
                stack.push_async_callback(runner.cleanup)
            if options.webhook is not None and not await self._open_webhook(
                options.webhook, access, stack, may_write
            ):
                return
            if lease is not None and not await self._lead(lease):
                return
            await self._work(load, lease)

    async def _open_webhook(
        self,
        options: WebhookOptions,
        access: Access,
        stack: contextlib.AsyncExitStack,
        leads: Callable[[], bool],
    ) -> bool:
        """Whether the webhook was started before the end was asked for."""
        stack.push_async_callback(self.waking.connected.stop)
        # A standby may not write, but asks for a user's rights too, which stores nothing. So this door writes without the Lease.
        asking = await stack.enter_async_context(Door(access, pace=self.pace, seconds=REVIEW_SECONDS))
        # This one does as well: a standby may have to make the first certificate, and such writes cannot overwrite each other.
        keeping = await stack.enter_async_context(Door(access, pace=self.pace))
        if not await unless(self._stop, self._see()):
            return False
        self._answer(options, keeping, asking, leads)
        stack.push_async_callback(ended, self._webhook)
        return True

    async def _see(self) -> None:
        """Sees the whole cluster once. A standby with a webhook needs that too, as its answers depend on the fleet."""
        if not self._sees:
            await self.waking.connected.start()
            self._sees = True

    async def _prepare(self) -> None:
        """Gets what the first turn needs: everything in the cluster, and what was learned before."""
        await self._see()
        await self.waking.learning.load()

    def _answer(
        self, options: WebhookOptions, keeping: Door, asking: Door, leads: Callable[[], bool]
    ) -> None:
        # The library for certificates takes 9 MB, which are needed only with a webhook.
        from plimsoll.handlers.webhook import Webhook  # noqa: PLC0415

        self._admission = Admission(
            self.waking.world, Rights(asking), inventory=self._fleet_for, namespaces=self.options.namespaces
        )
        self._hook = Webhook(
            self._admission,
            keeping,
            options,
            namespace=self.options.own_namespace or "default",
            host=self.options.host,
            leads=leads,
            now=time.time,
        )
        self._webhook = asyncio.create_task(self._hook.run(), name="webhook")

    def _fleet_for(self, key: str, selector: Mapping[str, str]) -> Inventory:
        with self.waking.connected.divided(selector):
            return self.waking.world.inventory(key)

    async def _lead(self, lease: Lease) -> bool:
        """Waits for the Lease. Returns whether it was taken before the end was asked for."""
        LOG.info("waiting for the Lease as %s", lease.identity)
        following = None if self._webhook is None else asyncio.create_task(self.waking.learning.follow())
        got = await unless(self._stop, lease.acquire(), self._webhook)
        await ended(following)
        if self._webhook is not None and self._webhook.done():
            self._webhook.result()
        return got and lease.held

    async def _work(self, load: Callable[[], Any], lease: Lease | None) -> None:
        waking, stop_kopf = self.waking, asyncio.Event()
        tasks: dict[str, asyncio.Task[Any]] = {"stop": asyncio.create_task(self._stop.wait())}
        if lease is not None:
            tasks["lease"] = asyncio.create_task(lease.keep())
        if self._webhook is not None:
            tasks["webhook"] = self._webhook
        try:
            if not await unless(self._stop, self._prepare(), tasks.get("lease"), tasks.get("webhook")):
                raise_end(tasks)
                return
            waking.served = waking.connected.capabilities()
            tasks["learning"] = asyncio.create_task(waking.learning.run())
            tasks["turns"] = asyncio.create_task(waking.wakes.run())
            tasks["control"] = asyncio.create_task(waking.control.run())
            tasks["kopf"] = asyncio.create_task(self._events(load, stop_kopf))
            waking.missed.start()
            if self._alerted is not None:
                tasks["alerts"] = asyncio.create_task(self._alerted.run(self.options.host))
            collect_seldom()
            self.ready.set()
            LOG.info("Plimsoll %s takes turns", __version__)
            await asyncio.wait(set(tasks.values()), return_when=asyncio.FIRST_COMPLETED)
            raise_end(tasks)
        finally:
            self.stop()
            # Turns are finished first. kopf ends last, as its end cancels all tasks that began after it.
            await ended(tasks.pop("control", None))
            await ended(tasks.pop("turns", None))
            await ended(tasks.pop("learning", None))
            await ended(tasks.pop("webhook", None))
            await ended(tasks.pop("alerts", None))
            await waking.missed.stop()
            await waking.connected.stop()
            if lease is not None:
                await ended(tasks.pop("lease"))
                await lease.release()
            await ended(tasks.pop("stop"))
            stop_kopf.set()
            if "kopf" in tasks:
                await asyncio.wait({tasks["kopf"]}, timeout=KOPF_SECONDS)
                await ended(tasks["kopf"])

    async def _events(self, load: Callable[[], Any], stop: asyncio.Event) -> None:
        spaces = self.options.namespaces
        others = asyncio.all_tasks()
        # Without an identity kopf asks the system for the user's name, which there is none of in a pod.
        identity: Any = self.options.identity
        tasks = await kopf.spawn_tasks(
            identity=identity,
            registry=registry_of(self.waking.told, load, self.pace),
            settings=settings_of(spaces),
            standalone=True,
            clusterwide=not spaces,
            namespaces=spaces,
            stop_flag=stop,
        )
        # kopf has set its own handlers of signals; these put ours back.
        self.handle_signals()
        await kopf.run_tasks(tasks, ignored=others)

    def _probe(self, door: Door, lease: Lease | None) -> Probe:
        waking = self.waking

        def alive_at() -> float:
            times = [waking.connected.sight.alive_at(), waking.missed.alive_at()] if self._sees else []
            if lease is not None:
                times.append(lease.tried_at)
            return min(times, default=self.pace.now())

        def since() -> float | None:
            return min(waking.wakes.counts.running.values(), default=None)

        return Probe(
            now=self.pace.now,
            alive_at=alive_at,
            deaf_seconds=lambda: waking.missed.deaf_seconds,
            unready=lambda: self._unready(lease),
            turns_since=since,
            metrics=lambda: self._metrics(door, lease),
        )

    def _unready(self, lease: Lease | None) -> str | None:
        """Why the process is not ready; None where it is. A standby that waits for the Lease is ready, as an upgrade must not wait for it
        to lead."""
        waits = lease is not None and not lease.held
        if lease is not None and waits and not lease.holder:
            return "the Lease has not been seen yet"
        if not self.ready.is_set() and not waits:
            return "what is in the cluster has not been seen yet"
        unheard = self._unheard()
        return None if unheard is None else f"the webhook does not listen yet: {unheard}"

    def _unheard(self) -> str | None:
        """Why the webhook does not answer; None where it does, or where there is none."""
        if self.options.webhook is None:
            return None
        return "what is in the cluster has not been seen yet" if self._hook is None else self._hook.unheard

    def _metrics(self, door: Door, lease: Lease | None) -> Iterator[Metric]:
        waking = self.waking
        # Who holds the Lease and never comes to take turns, as a right is missing, would look like one that acts.
        acts = self.ready.is_set() and (lease is None or lease.held)
        yield telemetry.single(own.LEADS, float(acts))
        yield telemetry.single(own.DEPLOYMENTS, len(waking.resources))
        yield from telemetry.process()
        yield from telemetry.turns(waking.wakes.counts, waiting=waking.wakes.waiting)
        yield from telemetry.control(waking.control)
        if self._admission is not None:
            yield from telemetry.reviews(self._admission.counts, listens=self._unheard() is None)
        yield from telemetry.calls(door.calls.count)
        if acts:
            # Only the leading process tells of the fleet and of deployments.
            yield from telemetry.fleet(waking.connected.inventory())
            yield from telemetry.deployments(waking.world.books)
            if self._alerted is not None:
                yield telemetry.alerts(self._alerted.results)
