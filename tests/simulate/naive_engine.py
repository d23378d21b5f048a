"""The engine model again, one step at a time and one sequence at a time: slow, and plain enough to be believed."""

import math
from dataclasses import dataclass, field

from plimsoll.simulate.steps import Limits, StepTimes


@dataclass
class Sequence:
    number: int
    arrival: float
    input_tokens: int
    output_tokens: int
    generated: int = 0
    cached: int = 0
    """Tokens whose keys and values are in the cache."""
    blocks: int = 0
    first_at: float = -1.0
    finished_at: float = -1.0
    preemptions: int = 0
    gaps: list[float] = field(default_factory=list)
    last_token_at: float = -1.0

    @property
    def prompt(self) -> int:
        return self.input_tokens + self.generated


class NaiveEngine:
    def __init__(self, times: StepTimes, limits: Limits) -> None:
        self.times, self.limits = times, limits
        self.now = 0.0
        self.free = limits.blocks
        self.waiting: list[Sequence] = []
        self.running: list[Sequence] = []
        self.prefilling: set[int] = set()
        self.targets: dict[int, int] = {}
        self.preemptions = 0
        self.began = 0.0

    def submit(self, sequence: Sequence) -> None:
        self.advance(sequence.arrival)
        if not self.running and not self.waiting:
            self.now = max(self.now, sequence.arrival)
        self.waiting.append(sequence)

    def advance(self, until: float) -> None:
        while self.now < until and (self.running or self.waiting):
            self.step()

    def blocks_for(self, one: Sequence, tokens: int) -> int:
        """Of every table; a window's or a state's are held from the beginning, as many as there will be."""
        tables = self.limits.mixed
        if tables is None:
            return -(-tokens // self.limits.block_size)
        longest = one.input_tokens + one.output_tokens
        growing = sum(-(-tokens // block) for block in tables.growing)
        return growing + sum(min(most, -(-longest // block)) for block, most in tables.bounded)

    def step(self) -> None:
        short, chosen_at = False, self.began if self.running else math.inf
        decoding = [one for one in self.running if one.number not in self.prefilling]
        while self.new_blocks(decoding) > self.free:
            short = True
            victim = self.running.pop()
            self.free += victim.blocks
            victim.blocks = victim.cached = 0
            victim.preemptions += 1
            self.preemptions += 1
            self.prefilling.discard(victim.number)
            self.waiting.insert(0, victim)
            decoding = [one for one in decoding if one is not victim]
        took = 0.0
        if decoding:
            took = self.times.decode[len(decoding)] + self.times.kv_token * sum(
                one.cached for one in decoding
            )
        for one in decoding:
            more = self.new_blocks([one])
            one.blocks += more
            self.free -= more
            one.cached += 1
        budget = self.limits.max_num_batched_tokens - len(decoding)
        done: list[Sequence] = []
        for one in [one for one in self.running if one.number in self.prefilling]:
            budget, took = self.chunk(one, budget, took, done)
        while not short and budget > 0 and self.waiting and len(self.running) < self.limits.max_num_seqs:
            head = self.waiting[0]
            if self.limits.steps_ahead and head.arrival >= chosen_at:
                break
            watermark = self.limits.watermark_blocks if self.running else 0
            if self.blocks_for(head, head.prompt) > self.free - watermark:
                break
            self.waiting.pop(0)
            head.blocks = self.blocks_for(head, head.prompt)
            self.free -= head.blocks
            self.running.append(head)
            self.prefilling.add(head.number)
            self.targets[head.number] = head.prompt
            budget, took = self.chunk(head, budget, took, done)
        self.began = self.now
        self.now += took
        for one in decoding:
            self.token(one)
        for one in done:
            self.prefilling.discard(one.number)
            self.token(one)

    def new_blocks(self, decoding: list[Sequence]) -> int:
        return sum(
            self.blocks_for(one, one.cached + 1) - self.blocks_for(one, one.cached) for one in decoding
        )

    def chunk(self, one: Sequence, budget: int, took: float, done: list[Sequence]) -> tuple[int, float]:
        chunk = min(budget, self.targets[one.number] - one.cached)
        took += self.times.chunk + chunk * (
            self.times.prompt_token + self.times.seen_token * (one.cached + chunk / 2)
        )
        one.cached += chunk
        if one.cached == self.targets[one.number]:
            done.append(one)
        return budget - chunk, took

    def token(self, one: Sequence) -> None:
        one.generated += 1
        if one.first_at < 0:
            one.first_at = self.now
        else:
            one.gaps.append(self.now - one.last_token_at)
        one.last_token_at = self.now
        if one.generated == one.output_tokens:
            one.finished_at = self.now
            self.free += one.blocks
            one.blocks = 0
            self.running.remove(one)
