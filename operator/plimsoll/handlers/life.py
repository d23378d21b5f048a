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
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import kopf

from plimsoll import __version__
from plimsoll.facts.capabilities import NONE
from plimsoll.facts.inventory import Inventory
from plimsoll.facts.resolve import HubAccess, Resolver
from plimsoll.handlers import telemetry
from plimsoll.handlers.admission import Admission, WebhookOptions
from plimsoll.handlers.alerted import Alerted
from plimsoll.handlers.connected import Connected
from plimsoll.handlers.ending import KOPF_SECONDS, end_by_force, ended, raise_end, unless
from plimsoll.handlers.events import registry_of, settings_of
from plimsoll.handlers.garbage import collect_seldom
from plimsoll.handlers.health import Metric, Probe, serve_health
from plimsoll.handlers.learning import Learning
from plimsoll.handlers.metrics import control_of
from plimsoll.handlers.options import Options
from plimsoll.handlers.restored import restored
from plimsoll.handlers.wakes import Wakes
from plimsoll.kube.credentials import Access, configuration
from plimsoll.kube.door import Door
from plimsoll.kube.engine_reports import EngineReports
from plimsoll.kube.learned_store import LearnedStore
from plimsoll.kube.lease import LEASE_CALL_SECONDS, Lease
from plimsoll.kube.missed import Missed
from plimsoll.kube.pace import Pace
from plimsoll.kube.rights import Rights
from plimsoll.prometheus import own
from plimsoll.reconcile.models import Models
from plimsoll.reconcile.resources import Resources
from plimsoll.reconcile.token import mark_of
from plimsoll.reconcile.turn import turn
from plimsoll.reconcile.world import World

if TYPE_CHECKING:
    from plimsoll.handlers.webhook import Webhook

LOG: Final = logging.getLogger(__name__)
MOVED_SECONDS: Final = 1.0
"""After a change of the fleet it is waited this long before the deployments are woken that wait for a change."""

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
        if options.alerts is not None:
            self._alerted = Alerted(options.alerts, known=self._known, wake=self._evaluate)
        self._stop = asyncio.Event()
        self._hungry: asyncio.TimerHandle | None = None
        self._selectors: dict[str, Mapping[str, str]] = {}
        self._served = NONE

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
                lease = Lease(own, options.lease_namespace, options.identity, pace=self.pace)
            may_write: Callable[[], bool] = (lambda: True) if lease is None else (lambda: lease.held)
            door = await stack.enter_async_context(Door(access, pace=self.pace, may_write=may_write))
            self.resources = Resources()
            self.wakes = Wakes(self._turn, clock=self.pace.now)
            self.connected = Connected(
                door,
                options.config,
                wake=self._wake,
                moved=self._moved,
                identity=options.identity,
                namespaces=options.namespaces,
            )
            spaces = options.namespaces
            self.missed = Missed(
                door, self.resources, self._seen, partial(restored, self), pace=self.pace, namespaces=spaces
            )
            self.world = self._world()
            self.learning = self._learning(door)
            self.control = control_of(self.world, self._wake, options.config)
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
        stack.push_async_callback(self.connected.stop)
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
            await self.connected.start()
            self._sees = True

    async def _prepare(self) -> None:
        """Gets what the first turn needs: everything in the cluster, and what was learned before."""
        await self._see()
        await self.learning.load()

    def _answer(
        self, options: WebhookOptions, keeping: Door, asking: Door, leads: Callable[[], bool]
    ) -> None:
        # The library for certificates takes 9 MB, which are needed only with a webhook.
        from plimsoll.handlers.webhook import Webhook  # noqa: PLC0415

        self._admission = Admission(
            self.world, Rights(asking), inventory=self._fleet_for, namespaces=self.options.namespaces
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
        with self.connected.divided(selector):
            return self.world.inventory(key)

    async def _lead(self, lease: Lease) -> bool:
        """Waits for the Lease. Returns whether it was taken before the end was asked for."""
        LOG.info("waiting for the Lease as %s", lease.identity)
        following = None if self._webhook is None else asyncio.create_task(self.learning.follow())
        got = await unless(self._stop, lease.acquire(), self._webhook)
        await ended(following)
        if self._webhook is not None and self._webhook.done():
            self._webhook.result()
        return got and lease.held

    async def _work(self, load: Callable[[], Any], lease: Lease | None) -> None:
        stop_kopf = asyncio.Event()
        tasks: dict[str, asyncio.Task[Any]] = {"stop": asyncio.create_task(self._stop.wait())}
        if lease is not None:
            tasks["lease"] = asyncio.create_task(lease.keep())
        if self._webhook is not None:
            tasks["webhook"] = self._webhook
        try:
            if not await unless(self._stop, self._prepare(), tasks.get("lease"), tasks.get("webhook")):
                raise_end(tasks)
                return
            self._served = self.connected.capabilities()
            tasks["learning"] = asyncio.create_task(self.learning.run())
            tasks["turns"] = asyncio.create_task(self.wakes.run())
            tasks["control"] = asyncio.create_task(self.control.run())
            tasks["kopf"] = asyncio.create_task(self._events(load, stop_kopf))
            self.missed.start()
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
            await self.missed.stop()
            await self.connected.stop()
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
            registry=registry_of(self._told, load),
            settings=settings_of(spaces),
            standalone=True,
            clusterwide=not spaces,
            namespaces=spaces,
            stop_flag=stop,
        )
        # kopf has set its own handlers of signals; these put ours back.
        self.handle_signals()
        await kopf.run_tasks(tasks, ignored=others)

    async def _turn(self, key: str) -> float | None:
        return await turn(self.world, key)

    def _learning(self, door: Door) -> Learning:
        reports = EngineReports(self._wake, self.pace)
        self.world.measured.reports, self.world.measured.began = reports, time.time()
        place = self.options.own_namespace
        return Learning(self.world.measured, reports, None if place is None else LearnedStore(door, place))

    def _world(self) -> World:
        options = self.options
        config = options.config
        network = config.network
        hub = None
        if not options.offline and not network.offline:
            hub = HubAccess(endpoint=network.hub_endpoint, proxy=network.https_proxy)
        return World(
            cluster=self.connected,
            resources=self.resources,
            models=Models(Resolver(hub=hub), self.pace.now),
            facts_pods=self.connected.sight.facts_pods,
            now=time.time,
            config=config,
            mark=mark_of(__version__, config),
        )

    def _told(self, key: str, uid: str, body: Mapping[str, Any] | None) -> None:
        """Takes an event of kopf's watch."""
        self.missed.heard()
        self._seen(key, uid, body)

    def _seen(self, key: str, uid: str, body: Mapping[str, Any] | None) -> None:
        before = self.resources.bearer(key)
        if body is None:
            self.resources.remove(key, uid=uid)
            self.connected.forget(uid)
            if key in self.resources:
                return  # it was made again meanwhile, and that has been told already
        elif not self.resources.put(key, body):
            return
        after = self.resources.bearer(key)
        if before is not None and (after is None or after.uid != before.uid):
            # Forgotten before the next turn, which may be of another resource of this name.
            self.world.forget(key)
        self._select(key, body)
        self.wakes.wake(key)

    def _select(self, key: str, body: Mapping[str, Any] | None) -> None:
        """Divides the fleet's pools by the node labels that a resource names."""
        spec = {} if body is None else body.get("spec") or {}
        named = (spec.get("topology") or {}).get("nodeSelector") or {}
        if self._selectors.get(key, {}) == named:
            return
        self._selectors[key] = named
        if not named:
            del self._selectors[key]
        defaults = [one.spec.topology.node_selector for one in self.options.config.defaults]
        presets = [one.spec.topology.node_selector for one in self.options.config.presets]
        self.connected.select([*self._selectors.values(), *defaults, *presets])

    def _wake(self, key: str) -> None:
        """A child or a pod of a deployment has changed. Where the deployment is gone, the garbage collector takes care of its children."""
        if key in self.resources:
            self.wakes.wake(key)

    def _known(self, key: str) -> bool:
        return key in self.resources

    def _evaluate(self, key: str) -> None:
        """An alert is about a deployment: it gets a full turn, even if nothing of it has changed, and the control loop looks at metrics."""
        self.world.looked_at[key] = 0.0
        self.wakes.wake(key)
        self.control.soon()

    def _moved(self) -> None:
        if self._hungry is None:
            self._hungry = asyncio.get_running_loop().call_later(MOVED_SECONDS, self._feed)

    def _feed(self) -> None:
        self._hungry = None
        served, before = self.connected.capabilities(), self._served
        self._served = served
        # If other kinds are served now every deployment is woken, as its objects may depend on that.
        for key in sorted(self.world.hungry if served == before else self.resources):
            # Its own objects do not show what it waits for, so the turn must not skip it because they have not changed.
            self.world.looked_at[key] = 0.0
            self.wakes.wake(key)

    def _probe(self, door: Door, lease: Lease | None) -> Probe:
        def alive_at() -> float:
            times = [self.connected.sight.alive_at(), self.missed.alive_at()] if self._sees else []
            if lease is not None:
                times.append(lease.tried_at)
            return min(times, default=self.pace.now())

        def since() -> float | None:
            return min(self.wakes.counts.running.values(), default=None)

        return Probe(
            now=self.pace.now,
            alive_at=alive_at,
            deaf_seconds=lambda: self.missed.deaf_seconds,
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
        leads = lease is None or lease.held
        yield telemetry.single(own.LEADS, float(leads))
        yield telemetry.single(own.DEPLOYMENTS, len(self.resources))
        yield from telemetry.process()
        yield from telemetry.turns(self.wakes.counts, waiting=self.wakes.waiting)
        yield from telemetry.control(self.control)
        if self._admission is not None:
            yield from telemetry.reviews(self._admission.counts, listens=self._unheard() is None)
        yield from telemetry.calls(door.calls.count)
        if leads and self.ready.is_set():
            # Only the leading process tells of the fleet and of deployments.
            yield from telemetry.fleet(self.connected.inventory())
            yield from telemetry.deployments(self.world.books)
            if self._alerted is not None:
                yield telemetry.alerts(self._alerted.results)
