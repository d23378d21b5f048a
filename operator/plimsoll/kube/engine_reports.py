"""Asks the supervisors of serving pods for their reports: now and then while an engine starts, and a last time once it serves.

Nobody waits for an answer: a turn says which pods there are, and takes the reports that have come so far. Asking is bounded in number,
in time and in bytes. A pod that does not answer is asked more and more rarely, and one that has reported everything is asked no more, but
where adapters come and go it is asked once a minute for as long as it serves.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from typing import Final

import aiohttp

from plimsoll.facts.report import MOST_REPORT, Report, ReportUnreadable, read_report
from plimsoll.facts.serving import PodSeen, Serving, Stage
from plimsoll.kube.pace import Pace

AT_ONCE: Final = 64
"""Pods that are asked at once. Ten thousand pods that cannot be reached, each tried once an hour, take a sixth of it."""
ANSWER_SECONDS: Final = 4.0
STARTING_SECONDS: Final = 15.0
RARELY_SECONDS: Final = 60.0
"""Between two questions about an engine that starts: at first, and when it takes long."""
LOOKS: Final = 4
"""How often an engine that serves is asked for the size of its cache, which not all of them report."""
LONGEST_SECONDS: Final = 3600.0
"""Between two attempts at a pod that does not answer."""
PATH: Final = "/facts"


@dataclass(slots=True)
class _Pod:
    key: str
    url: str
    restarts: int
    looks: int = 0
    entry: int = 0
    """Number of its entry among those that are due; older entries are void."""
    failures: int = 0
    done: bool = False
    report: Report | None = None


class EngineReports:
    """`wake` is called with the deployment (namespace/name) of a pod that reported something new."""

    def __init__(self, wake: Callable[[str], None], pace: Pace | None = None) -> None:
        self._wake = wake
        self._pace = pace or Pace()
        self._pods: dict[str, dict[str, _Pod]] = {}
        """Pods by deployment (namespace/name) and by their uid."""
        self._due: list[tuple[float, int, str, str]] = []
        self._order = count()
        self._news = asyncio.Event()
        self._asking: set[asyncio.Task[None]] = set()
        self.failures = 0

    def look(self, key: str, serving: Serving) -> None:
        """Takes the pods of a deployment as they are now: new ones are asked at once, those that are gone are forgotten."""
        known = self._pods.get(key, {})
        found: dict[str, _Pod] = {}
        for pod in (pod for seen in serving.sets for pod in seen.pods):
            url = _facts_url(pod)
            if url is None:
                continue
            before = known.get(pod.uid)
            if before is not None and (before.restarts, before.url) == (pod.restarts, url):
                found[pod.uid] = before
            else:
                found[pod.uid] = _Pod(key, url, pod.restarts)
                self._ask_at(self._pace.now(), key, pod.uid, found[pod.uid])
        if found:
            self._pods[key] = found
        else:
            self._pods.pop(key, None)

    def again(self, key: str) -> None:
        """The list of adapters has changed: each pod that loads adapters is asked now, and then more and more rarely."""
        for uid, pod in self._pods.get(key, {}).items():
            if pod.report is not None and pod.report.adapters is not None:
                pod.looks = 0
                self._ask_at(self._pace.now(), key, uid, pod)

    def forget(self, key: str) -> None:
        self._pods.pop(key, None)

    def of(self, key: str) -> Mapping[str, Report]:
        """Reports by the pod's uid, each of the engine's present start."""
        return {
            uid: pod.report for uid, pod in sorted(self._pods.get(key, {}).items()) if pod.report is not None
        }

    async def run(self) -> None:
        """Until cancelled."""
        connector = aiohttp.TCPConnector(limit=AT_ONCE, force_close=True)
        timeout = aiohttp.ClientTimeout(total=ANSWER_SECONDS)
        async with aiohttp.ClientSession(connector=connector, timeout=timeout, trust_env=False) as session:
            try:
                while True:
                    self._news.clear()
                    wait = self._start(session)
                    # Not by wait_for, which forgets that it was cancelled where the news come at the same time.
                    with suppress(TimeoutError):
                        async with asyncio.timeout(wait):
                            await self._news.wait()
            finally:
                for task in self._asking:
                    task.cancel()
                await asyncio.gather(*self._asking, return_exceptions=True)

    def _start(self, session: aiohttp.ClientSession) -> float | None:
        """Asks the pods that are due. Returns in how many seconds the next one is; None where none is, or where no more may be asked now."""
        now = self._pace.now()
        while self._due and len(self._asking) < AT_ONCE:
            due, entry, key, uid = self._due[0]
            if due > now:
                return due - now
            heapq.heappop(self._due)
            pod = self._pods.get(key, {}).get(uid)
            if pod is not None and not pod.done and pod.entry == entry:
                task = asyncio.create_task(self._ask(session, uid, pod), name=f"facts of {key}")
                self._asking.add(task)
                task.add_done_callback(self._answered)
        return None

    def _answered(self, task: asyncio.Task[None]) -> None:
        self._asking.discard(task)
        self._news.set()

    async def _ask(self, session: aiohttp.ClientSession, uid: str, pod: _Pod) -> None:
        try:
            report = await _fetch_report(session, pod.url)
        except (aiohttp.ClientError, TimeoutError, OSError, ReportUnreadable):
            self.failures += 1
            pod.failures += 1
            again = self._pace.backoff(pod.failures, first=STARTING_SECONDS, most=LONGEST_SECONDS)
            self._ask_at(self._pace.now() + again, pod.key, uid, pod)
            return
        pod.failures = 0
        pod.looks = 1 if report.serves and not (pod.report and pod.report.serves) else pod.looks + 1
        told = report.serves and (report.kv_tokens is not None or pod.looks >= LOOKS)
        pod.done = told and report.adapters is None
        if not pod.done:
            pause = min(RARELY_SECONDS, pod.looks * STARTING_SECONDS)
            if told and any(not one.settled for one in report.adapters or ()):
                pause = STARTING_SECONDS
            self._ask_at(self._pace.now() + pause, pod.key, uid, pod)
        # A pod that went away or restarted meanwhile has no entry any more, or another one.
        if report != pod.report and self._pods.get(pod.key, {}).get(uid) is pod:
            pod.report = report
            self._wake(pod.key)

    def _ask_at(self, due: float, key: str, uid: str, pod: _Pod) -> None:
        pod.entry = next(self._order)
        heapq.heappush(self._due, (due, pod.entry, key, uid))
        self._news.set()


def _facts_url(pod: PodSeen) -> str | None:
    """Address of the report; None where the pod does not answer yet or any more, and for workers, as their leader reports for the replica."""
    told = pod.stage in (Stage.LOADING, Stage.READY)
    if pod.runtime_port is None or not pod.address or not told or pod.rank != 0:
        return None
    host = f"[{pod.address}]" if ":" in pod.address else pod.address
    return f"http://{host}:{pod.runtime_port}{PATH}"


async def _fetch_report(session: aiohttp.ClientSession, url: str) -> Report:
    async with session.get(url, allow_redirects=False) as answer:
        if answer.status != 200:
            raise ReportUnreadable(f"it answers {answer.status}")
        text = await answer.content.read(MOST_REPORT + 1)
        while len(text) <= MOST_REPORT and (more := await answer.content.read(MOST_REPORT + 1 - len(text))):
            text += more
    if len(text) > MOST_REPORT:
        raise ReportUnreadable(f"it is longer than {MOST_REPORT} bytes")
    return read_report(text)
