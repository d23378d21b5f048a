"""One engine in virtual time: continuous batching over a paged cache, step by step, but without taking every step.

What a step does: each decoding sequence gets one token, and a new block where its last one is full; what is left of the
token budget goes to prompts, in chunks, in the order of arrival. A request is admitted when its whole prompt finds blocks
above the watermark. Where blocks run out, the youngest is put back to the head of the queue and later computed anew.
Between two events the batch is constant, so that any number of steps that only decode is taken at once, in closed form;
`tests/simulate` holds a step-by-step twin that must agree. No clock and no chance in here: the caller says how far to go.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from heapq import heappop, heappush
from math import ceil, inf, sqrt

from plimsoll.simulate.meters import ITL, LATENCY, TOKENS, TTFT, Histogram
from plimsoll.simulate.prefixes import PREFIX_BLOCK, Prefixes
from plimsoll.simulate.request import Request
from plimsoll.simulate.steps import Limits, StepTimes
from plimsoll.simulate.tables import Growth


class Engine:
    """State between two steps. `now` is the end of the last step taken, which may be a little after what was asked for."""

    def __init__(
        self,
        times: StepTimes,
        limits: Limits,
        *,
        histograms: bool = True,
        prefix_tokens: int = PREFIX_BLOCK,
    ) -> None:
        """Without `histograms`, those that tell of whole requests stay empty: where nobody reads them they are a good part of the cost.

        `prefix_tokens`: what an id of a request's prefix stands for."""
        self.times = times
        self.limits = limits
        self.histograms = histograms
        self._tables = limits.tables
        self._prefix_tokens = prefix_tokens
        self._start()

    def _start(self) -> None:
        limits = self.limits
        self.now = 0.0
        self.finished: list[Request] = []
        """Answered since the owner last emptied it."""
        self.waiting: deque[Request] = deque()
        self.queued = 0
        """Those that the last step left waiting: what the gauge says. Who came since then is in `waiting` only."""
        self.running: dict[int, Request] = {}
        """By order of admission, so the last is the youngest."""
        self.free_blocks = limits.blocks
        self.preemptions = self.finished_count = self.refused = 0
        self.longest_stall = 0.0
        """The longest that an answer under way stood still while its sequence was preempted."""
        self.prompt_tokens = self.generation_tokens = self.prefix_queries = self.prefix_hits = 0
        """Counters, as all below: they begin anew with the process."""
        self.ttft = Histogram(TTFT)
        self.itl = Histogram(ITL)
        self.e2e = Histogram(LATENCY)
        self.prompt_lengths = Histogram(TOKENS)
        self.output_lengths = Histogram(TOKENS)
        self._partial: Request | None = None
        """The one whose prompt did not fit the last step whole: always the youngest."""
        self._decoding = 0
        self._kv_read = 0
        """Cached tokens of all that decode."""
        self._step = 0
        self._began = 0.0
        """When the last step began: where steps are chosen ahead, the next one was chosen then."""
        self._orders = 0
        self._ends: list[tuple[int, int, Request]] = []
        """Heap of (last step, order, request); those put back or aborted are skipped when they come up."""
        self._growth = Growth(self._tables)
        self._prefixes = Prefixes(self._tables, self._prefix_tokens)

    # What the owner does

    def submit(self, request: Request, at: float) -> bool:
        """Hand a request over at a time not before the last one; False where the engine refuses it."""
        self.advance(at)
        limits = self.limits
        if limits.max_queued is not None and len(self.waiting) >= limits.max_queued:
            self.refused += 1
            return False
        if request.input_tokens >= limits.max_model_len:
            return False
        request.output_tokens = max(
            1, min(request.output_tokens, limits.max_model_len - request.input_tokens)
        )
        if not self.running and not self.waiting and self.now < at:
            self.now = at
        request.came_at = at
        self.waiting.append(request)
        return True

    def advance(self, until: float) -> None:
        """Take every step that begins before `until`."""
        while self.now < until:
            if self._partial is not None or (self.waiting and self._admissible(self._budget())):
                self._take_step()
            elif self._decoding:
                # Whoever came too late for this step may be let in by the next one.
                self._decode(self.now if self.waiting and self._is_late(self.waiting[0]) else until)
            else:
                return

    def has_room(self, at: float) -> bool:
        """Whether its queue takes one more."""
        self.advance(at)
        return self.limits.max_queued is None or len(self.waiting) < self.limits.max_queued

    def abort(self, request: Request) -> None:
        """The client has gone."""
        if request.order >= 0:
            self._leave(request)
        elif request in self.waiting:
            self.waiting.remove(request)

    def crash(self) -> list[Request]:
        """The process ends: everything in it is lost, and its counters with it. It starts again when it is next used."""
        lost, at = self.requests, self.now
        self._start()
        self.now = at
        return lost

    def tokens(self, request: Request) -> int:
        """How many tokens of its answer a request has."""
        if request.order >= 0 and request.joined >= 0:
            return request.generated + self._step - request.joined
        return request.generated

    @property
    def requests(self) -> list[Request]:
        """All that are in it, in no order that matters."""
        return [*self.running.values(), *self.waiting]

    @property
    def steps(self) -> int:
        """How many it has taken."""
        return self._step

    @property
    def in_flight(self) -> int:
        return len(self.running) + len(self.waiting)

    @property
    def kv_fraction(self) -> float:
        return 1 - self.free_blocks / self.limits.blocks

    # Steps

    def _budget(self) -> int:
        """Tokens that the next step has for prompts."""
        return self.limits.max_num_batched_tokens - self._decoding

    def _admissible(self, budget: int) -> bool:
        """Whether the head of a queue is let in by a step that has so many tokens left for prompts."""
        limits = self.limits
        if budget <= 0 or len(self.running) >= limits.max_num_seqs:
            return False
        request = self.waiting[0]
        if self.running and self._is_late(request):
            return False
        # An empty engine takes whatever fits at all: nothing would ever come free for it.
        room = self.free_blocks - (limits.watermark_blocks if self.running else 0)
        need = self._held(request, request.input_tokens + request.generated)
        if need > room and request.prefix and limits.prefix_caching:
            need -= self._prefixes.blocks(self._prefixes.used(self._shareable(request)))
        return need <= room

    def _held(self, request: Request, tokens: int) -> int:
        """Blocks that a request holds with so many tokens in the cache."""
        if block := self._tables.only:
            return -(-tokens // block)
        return self._tables.held(tokens, request.input_tokens + request.output_tokens)

    def _is_late(self, request: Request) -> bool:
        """Whether it came when the step that follows was chosen already."""
        return self.limits.steps_ahead and request.came_at >= self._began

    def _shareable(self, request: Request) -> Sequence[int]:
        return self._prefixes.shareable(request.prefix, request.input_tokens)

    def _take_step(self) -> None:
        """One step in which prompts are computed, beside those that decode."""
        limits, times = self.limits, self.times
        took, began = 0.0, self.now
        if not self.running:
            self._began = inf  # nothing was under way, so it is chosen now
        short = False
        if self._decoding:
            need = self._growth.at(self._step)
            if need > self.free_blocks:
                need = self._make_room()
                short = True
        decoding = self._decoding
        if decoding:
            self.free_blocks -= need
            took = times.decode[decoding] + times.kv_token * self._kv_read
        budget = limits.max_num_batched_tokens - decoding
        done: list[Request] = []
        request = self._partial
        if request is not None:
            self._partial = None
        elif not short and self.waiting and self._admissible(budget):
            request = self._admit()
        while request is not None:
            chunk = min(request.left, budget)
            took += times.prompt(chunk, request.computed)
            request.computed += chunk
            request.left -= chunk
            budget -= chunk
            if request.left:
                self._partial = request
                break
            done.append(request)
            request = self._admit() if not short and self.waiting and self._admissible(budget) else None
        self.queued = len(self.waiting)
        self.now += took
        self._began = began
        self._step += 1
        if decoding:
            self._kv_read += decoding
            self.generation_tokens += decoding
            self.itl.add(took, decoding)
            ends = self._ends
            if ends[0][0] <= self._step:
                self._end_some()
        for request in done:
            self._join(request)

    def _decode(self, until: float) -> None:
        """Steps that only decode: as many as begin before `until`, none ends and no block is missing."""
        ends, decoding, running = self._ends, self._decoding, self.running
        while ends[0][1] not in running:
            heappop(ends)
        steps = ends[0][0] - self._step
        first = self.times.decode[decoding] + self.times.kv_token * self._kv_read
        slope = self.times.kv_token * decoding
        # The time of k steps is (first - bend) k + bend k^2.
        bend = slope / 2
        left = until - self.now
        rest = first - bend
        if steps * (rest + bend * steps) > left:
            steps = min(steps, max(1, ceil(2 * left / (rest + sqrt(rest * rest + 4 * bend * left)))))
        steps = self._growth.with_room(steps, begin=self._step, decoding=decoding, free=self.free_blocks)
        if not steps:
            self._take_step()
            return
        self.queued = len(self.waiting)
        self.free_blocks -= self._growth.over(steps, begin=self._step, decoding=decoding)
        self.now += steps * (rest + bend * steps)
        self._began = self.now - rest - bend * (2 * steps - 1)
        self._step += steps
        self._kv_read += steps * decoding
        self.generation_tokens += steps * decoding
        if steps == 1:
            self.itl.add(first, decoding)
        else:
            self.itl.add_line(first, slope, steps, decoding)
        if ends[0][0] <= self._step:
            self._end_some()

    # Requests coming and going

    def _admit(self) -> Request:
        request = self.waiting.popleft()
        request.order = self._orders
        if request.admitted_at < 0:
            request.admitted_at = self.now
        self._orders += 1
        self.running[request.order] = request
        tokens = request.input_tokens + request.generated
        blocks = self._held(request, tokens)
        request.shared_blocks = request.cached = 0
        if request.prefix and self.limits.prefix_caching:
            blocks -= self._share(request)
        self.free_blocks -= blocks
        request.computed = request.cached
        request.left = tokens - request.cached
        request.joined = -1
        return request

    def _share(self, request: Request) -> int:
        """Take what is cached of a prompt and hold the rest of its shareable blocks for others."""
        ids, prefixes = self._shareable(request), self._prefixes
        prefixes.trim(self.free_blocks)
        held = prefixes.held(ids)
        # The last token of a prompt is always computed: the first answer comes from it.
        cached = prefixes.tokens(held)
        request.cached = max(0, min(cached, request.input_tokens + request.generated - 1))
        self.prefix_queries += request.input_tokens
        self.prefix_hits += request.cached
        self.free_blocks -= prefixes.take(ids)
        request.shared_blocks = prefixes.blocks(len(ids))
        return request.shared_blocks

    def _join(self, request: Request) -> None:
        """Its prompt is computed, which gives a token; it decodes from the next step on."""
        request.generated += 1
        self.generation_tokens += 1
        if request.first_at < 0:
            times = self.times
            request.outside = times.outside(request.input_tokens, request.cached, beside=len(self.running))
            request.first_at = self.now + request.outside
            self.prompt_tokens += request.input_tokens
            if self.histograms:
                self.ttft.add(request.first_at - request.arrival)
        else:
            stood = self.now - request.last_at
            self.longest_stall = max(self.longest_stall, stood)
            self.itl.add(stood)
        request.joined = self._step
        request.base = request.input_tokens + request.generated - 1
        left = request.output_tokens - request.generated
        request.full_at = self._step - request.base
        self._growth.count(request.full_at, 1)
        self._kv_read += request.base
        self._decoding += 1
        heappush(self._ends, (self._step + left, request.order, request))
        if not left:
            self._end(request)

    def _end_some(self) -> None:
        ends, step, running = self._ends, self._step, self.running
        while ends and ends[0][0] <= step:
            _, order, request = heappop(ends)
            if order in running:
                self._end(request)

    def _end(self, request: Request) -> None:
        self._leave(request)
        request.finished_at = self.now + request.outside
        self.finished_count += 1
        if self.histograms:
            self.e2e.add(request.finished_at - request.arrival)
            self.prompt_lengths.add(request.input_tokens)
            self.output_lengths.add(request.output_tokens)
        self.finished.append(request)

    def _leave(self, request: Request) -> None:
        """Out of the batch, its blocks free."""
        del self.running[request.order]
        if request.joined >= 0:
            grown = self._step - request.joined
            tokens = request.base + grown
            request.generated += grown
            self._growth.count(request.full_at, -1)
            self._kv_read -= tokens
            self._decoding -= 1
        else:
            tokens = request.input_tokens + request.generated
            if self._partial is request:
                self._partial = None
        freed = self._held(request, tokens) - request.shared_blocks
        self.free_blocks += freed
        if self._prefixes.begun:
            self._prefixes.freed(freed)
        if request.shared_blocks:
            self.free_blocks += self._prefixes.release(self._shareable(request))
        request.order = request.joined = -1

    def _make_room(self) -> int:
        """Put the youngest back until the rest can grow by this step; returns the blocks it takes."""
        while self._growth.at(self._step) > self.free_blocks:
            youngest = self.running[next(reversed(self.running))]
            decoded = youngest.joined >= 0
            self._leave(youngest)
            if decoded:
                youngest.last_at = self.now
            youngest.preemptions += 1
            self.preemptions += 1
            self.waiting.appendleft(youngest)
        return self._growth.at(self._step)
