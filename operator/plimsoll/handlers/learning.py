"""Keeps what is learned from engines' starts in the cluster: it is read before the first turn, and written soon after it changed, by the
leading process alone.

A person may remove entries from the kept object at any time, which takes effect at the next look, and so does a change of the admin's seed.
Nothing here ends the process: what cannot be read or written is tried again, and meanwhile plans are made with what is known. Text that
cannot be read (a typo, or what a newer release wrote) is left as it is until somebody has corrected it.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import Final

from plimsoll import names
from plimsoll.facts.learned import NOTHING, Learned, added, export_learned, import_learned
from plimsoll.facts.learned_rows import LearnedError
from plimsoll.handlers.ending import LESSONS_SECONDS, ended
from plimsoll.kube.engine_reports import EngineReports
from plimsoll.kube.errors import Conflict, KubeError
from plimsoll.kube.learned_store import LearnedStore, Stored
from plimsoll.reconcile.lessons.measured import Measured

LOG: Final = logging.getLogger(__name__)
SOON_SECONDS: Final = 5.0
"""How long to wait before writing what was learned, as starts come in bursts and are written together."""
LOOK_SECONDS: Final = 60.0
"""Between two looks at what somebody may have changed."""


class Learning:
    def __init__(self, measured: Measured, reports: EngineReports, store: LearnedStore | None) -> None:
        """Without a store what was learned is lost at the end of the process."""
        self._measured = measured
        self._reports = reports
        self._store = store
        self._readable = False
        """Whether the kept object is readable now. If it is not, it is not written over."""
        self._version: str | None = None
        self._seed = ""

    async def load(self) -> None:
        """Reads what was learned before, so that the first plans know it."""
        with suppress(KubeError):
            await self._look()

    async def follow(self) -> None:
        """Runs until cancelled, while another process leads: reads what that one writes, so that all webhooks judge alike."""
        while True:
            await self.load()
            await asyncio.sleep(LOOK_SECONDS)

    async def run(self) -> None:
        """Runs until cancelled, and then writes what is not written yet."""
        asking = asyncio.create_task(self._reports.run(), name="ask engines")
        try:
            while True:
                # Not by wait_for, which forgets that it was cancelled where something was learned at the same time.
                with suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_SECONDS):
                        await self._measured.changed.wait()
                    await asyncio.sleep(SOON_SECONDS)
                await self._keep()
        finally:
            await ended(asking)
            if self._measured.changed.is_set():
                await self._keep_last()

    async def _keep_last(self) -> None:
        try:
            async with asyncio.timeout(LESSONS_SECONDS):
                await self._keep(last=True)
        except TimeoutError:
            LOG.warning("what was learned last is lost: the API server did not answer in time")

    async def _keep(self, *, last: bool = False) -> None:
        if self._store is None:
            self._measured.changed.clear()
            self._measured.kept = self._measured.own
            return
        try:
            await self._look()
            if not self._readable:
                if not last:
                    await asyncio.sleep(LOOK_SECONDS)
            elif self._measured.changed.is_set():
                own = self._measured.own
                self._version = await self._store.write(export_learned(own), self._version or "")
                self._measured.kept = own
                # It is cleared only after the write has succeeded, and not if something was learned while the write was under way.
                if self._measured.own is own:
                    self._measured.changed.clear()
        except Conflict:
            # What somebody else has written is read at the next look.
            LOG.info("%s was changed by somebody else", names.LEARNED)
        except KubeError as error:
            LOG.warning("what was learned cannot be kept now: %s", error)
            if not last:
                await asyncio.sleep(LOOK_SECONDS)

    async def _look(self) -> None:
        """Reads the kept object and the seed, and takes over what others have changed in them."""
        if self._store is None:
            return
        seed, stored = await self._store.read_seed(), await self._store.read()
        own, strange = self._measured.own, self._measured.seed
        if stored.version != self._version:
            there = _learned(stored, names.LEARNED)
            self._version, self._readable = stored.version, there is not None
            if there is not None:
                # The object holds, even where the version is one of our own whose answer was lost. What was learned since then is added.
                own = added(there, own, since=self._measured.kept)
                self._measured.kept = there
        if seed.version != self._seed:
            self._seed = seed.version
            there = _learned(seed, names.LEARNED_SEED)
            strange = strange if there is None else there
        if own is not self._measured.own or strange is not self._measured.seed:
            self._measured.know(own, strange)


def _learned(stored: Stored, name: str) -> Learned | None:
    """What is stored; None where it cannot be read."""
    if stored.text is None:
        return NOTHING
    try:
        return import_learned(stored.text)
    except LearnedError as error:
        LOG.warning("ConfigMap %s cannot be read; what was known of it stands: %s", name, error)
        return None
