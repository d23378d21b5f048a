"""Which change wakes which deployment: one of its own, of its children or pods, of the fleet, or what an alert tells of.

The parts that turns work with are put together here, as nearly each of them tells of changes or is told of them.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any, Final

from plimsoll import __version__
from plimsoll.facts.capabilities import NONE
from plimsoll.facts.resolve import HubAccess, Resolver
from plimsoll.handlers.connected import Connected
from plimsoll.handlers.control import control_of
from plimsoll.handlers.learning import Learning
from plimsoll.handlers.options import Options
from plimsoll.handlers.wakes import Wakes
from plimsoll.kube.door import Door
from plimsoll.kube.engine_reports import EngineReports
from plimsoll.kube.learned_store import LearnedStore
from plimsoll.kube.missed import Missed
from plimsoll.kube.pace import Pace
from plimsoll.reconcile.models import Models
from plimsoll.reconcile.resources import Resources
from plimsoll.reconcile.token import mark_of
from plimsoll.reconcile.turn import turn
from plimsoll.reconcile.world import World

MOVED_SECONDS: Final = 1.0
"""After a change of the fleet it is waited this long before the deployments are woken that wait for a change."""


class Waking:
    def __init__(self, options: Options, door: Door, pace: Pace) -> None:
        config, spaces = options.config, options.namespaces
        self._config = config
        self.resources = Resources()
        self.wakes = Wakes(self._turn, clock=pace.now)
        self.connected = Connected(
            door,
            config,
            wake=self._wake,
            moved=self._moved,
            identity=options.identity,
            namespaces=spaces,
        )
        self.missed = Missed(door, self.resources, self.seen, self.restored, pace=pace, namespaces=spaces)
        self.world = _world(options, self.connected, self.resources, pace)
        reports, place = EngineReports(self._wake, pace), options.own_namespace
        self.world.measured.reports, self.world.measured.began = reports, time.time()
        store = None if place is None else LearnedStore(door, place)
        self.learning = Learning(self.world.measured, reports, store)
        self.control = control_of(self.world, self._wake, config)
        self.served = NONE
        """Kinds that the API server had when turns began, or at the last change of the fleet."""
        self._hungry: asyncio.TimerHandle | None = None
        self._selectors: dict[str, Mapping[str, str]] = {}

    async def _turn(self, key: str) -> float | None:
        return await turn(self.world, key)

    def told(self, key: str, uid: str, body: Mapping[str, Any] | None) -> None:
        """Takes an event of kopf's watch."""
        self.missed.heard()
        self.seen(key, uid, body)

    def seen(self, key: str, uid: str, body: Mapping[str, Any] | None) -> None:
        """Takes a resource as it is now, or None where it is gone."""
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
        defaults = [one.spec.topology.node_selector for one in self._config.defaults]
        presets = [one.spec.topology.node_selector for one in self._config.presets]
        self.connected.select([*self._selectors.values(), *defaults, *presets])

    def restored(self, key: str, uid: str) -> None:
        """The data of the cluster were restored from a backup: each status is written anew, as an old one stands there."""
        self.world.untold.add(key)
        self.connected.restored(uid)
        self.wakes.wake(key)

    def _wake(self, key: str) -> None:
        """A child or a pod of a deployment has changed. Where the deployment is gone, the garbage collector takes care of its children."""
        if key in self.resources:
            self.wakes.wake(key)

    def evaluate(self, key: str) -> None:
        """An alert is about a deployment: it gets a full turn, even if nothing of it has changed, and the control loop looks at metrics."""
        self._look(key)
        self.control.soon()

    def _look(self, key: str) -> None:
        """A full turn, which is not skipped although the deployment's own objects have not changed."""
        self.world.looked_at[key] = 0.0
        self.wakes.wake(key)

    def _moved(self) -> None:
        if self._hungry is None:
            self._hungry = asyncio.get_running_loop().call_later(MOVED_SECONDS, self._feed)

    def _feed(self) -> None:
        self._hungry = None
        served, before = self.connected.capabilities(), self.served
        self.served = served
        # If other kinds are served now every deployment is woken, as its objects may depend on that.
        for key in sorted(self.world.hungry if served == before else self.resources):
            # Its own objects do not show what it waits for.
            self._look(key)


def _world(options: Options, connected: Connected, resources: Resources, pace: Pace) -> World:
    config = options.config
    network = config.network
    hub = None
    if not options.offline and not network.offline:
        hub = HubAccess(endpoint=network.hub_endpoint, proxy=network.https_proxy)
    return World(
        cluster=connected,
        resources=resources,
        models=Models(Resolver(hub=hub), pace.now),
        facts_pods=connected.sight.facts_pods,
        now=time.time,
        config=config,
        mark=mark_of(__version__, config),
    )
