"""Load on replicas that no engine serves: what each would publish under it, moved on while a test watches.

Requests take as long as a replica is busy with others, as engines' do, so that half the replicas look twice as full.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from cluster.api import Object
from cluster.metrics import MetricsServer
from cluster.metrics.pages import Page
from common import is_ready
from turns.beside import Beside

SLOTS: Final = 64
BLOCKS: Final = 1024
BLOCK: Final = 16
LENGTH_BOUNDS: Final = ("100", "200", "500", "1000", "2000", "5000", "+Inf")


class Traffic(Beside):
    """`page` is where a pod's metrics are, `pods` says which are there; use it with `with`."""

    every_s = 0.2

    def __init__(self, page: Callable[[Object], Page], pods: Callable[[], list[Object]]) -> None:
        super().__init__()
        self._page, self._pods = page, pods
        self.inflight = 0.0
        """Requests of all replicas together."""
        self.each: float | None = None
        """Of every replica, however many there are, in place of that."""
        self.seconds = 2.0
        """That each of them takes."""
        self.preempted: Callable[[Object], float] = lambda pod: 0.0  # noqa: ARG005
        """For each finished request of a pod."""
        self._last: float | None = None

    def look(self) -> None:
        now = time.monotonic()
        # On a busy machine a list may come too late; what passed meanwhile is made up for with the next one.
        self._move(self.every_s if self._last is None else now - self._last)
        self._last = now

    def _move(self, passed: float) -> None:
        pods = [pod for pod in self._pods() if is_ready(pod)]
        for pod in pods:
            each = self.inflight / len(pods) if self.each is None else self.each
            running = min(each, SLOTS)
            page = self._page(pod)
            _publish(page, running, each - running)
            done = passed * running / self.seconds
            page.add("vllm:request_success_total", done, finished_reason="stop")
            page.add("vllm:num_preemptions_total", done * self.preempted(pod))
            page.add("vllm:prompt_tokens_total", 300 * done)
            page.add("vllm:generation_tokens_total", 600 * done)
            for name, bounds, value in (
                ("vllm:time_to_first_token_seconds", ("0.1", "0.5", "1", "5", "+Inf"), 0.3),
                ("vllm:inter_token_latency_seconds", ("0.01", "0.05", "0.1", "0.5", "+Inf"), 0.02),
                ("vllm:e2e_request_latency_seconds", ("1", "2", "5", "10", "+Inf"), 1.5),
                ("vllm:request_prompt_tokens", LENGTH_BOUNDS, 300.0),
                ("vllm:request_generation_tokens", LENGTH_BOUNDS, 600.0),
            ):
                _count(page, name, bounds, value, done)


def stand_in(server: MetricsServer) -> Callable[[Object], Page]:
    """Pages where `PodDiscovery.stand_in` looks for them."""

    def page(pod: Object) -> Page:
        return server.page(f"{pod['metadata']['namespace']}/{pod['metadata']['name']}")

    return page


def _publish(page: Page, running: float, waiting: float) -> None:
    page.set("vllm:num_requests_running", running)
    page.set("vllm:num_requests_waiting", waiting)
    page.set("vllm:kv_cache_usage_perc", min(1.0, running / SLOTS))
    page.set("vllm:cache_config_info", 1.0, num_gpu_blocks=str(BLOCKS), block_size=str(BLOCK))


def _count(page: Page, name: str, bounds: tuple[str, ...], value: float, count: float) -> None:
    for bound in bounds:
        page.add(f"{name}_bucket", count if value <= float(bound) else 0.0, le=bound)
    page.add(f"{name}_sum", count * value)
