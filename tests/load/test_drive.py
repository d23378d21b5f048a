"""The driver against senders of any behaviour, in virtual time: what is due is sent when it is due, and all is counted."""

import asyncio
import random
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.load.answers import Answer, Outcome
from plimsoll.load.drive import Limits, Send, drive
from plimsoll.load.problems import LoadError
from plimsoll.load.result import Result
from plimsoll.load.slo import Slo
from plimsoll.load.tally import About, Tally
from plimsoll.load.workload import Ask
from tests.load.virtual import virtually

ABOUT = About(url="u", model="m", pattern="p", seed=0)
BAD = (Outcome.FAILED, Outcome.CUT, Outcome.REFUSED, Outcome.TIMED_OUT)


class Sender:
    """Answers after some time, in some way; remembers when it was asked."""

    def __init__(self, seed: int, longest: float) -> None:
        self.chance = random.Random(seed)
        self.longest = longest
        self.sent: list[tuple[float, float | None]] = []
        self.at_once = 0
        self.most = 0

    def prepare(self, ask: Ask) -> Send:
        async def send(due: float | None) -> Answer:
            loop = asyncio.get_running_loop()
            sent = loop.time()
            self.sent.append((sent, due))
            self.at_once += 1
            self.most = max(self.most, self.at_once)
            outcome = self.chance.choice((Outcome.OK, Outcome.OK, *BAD))
            arrivals = []
            try:
                for _ in range(ask.output_tokens):
                    await asyncio.sleep(self.chance.uniform(0, self.longest))
                    arrivals.append(loop.time())
            except asyncio.CancelledError:
                outcome = Outcome.UNFINISHED
            self.at_once -= 1
            return Answer(
                outcome=outcome,
                due=sent if due is None else due,
                sent=sent,
                ended=loop.time(),
                arrivals=arrivals,
                asked_input=ask.input_tokens,
                asked_output=ask.output_tokens,
                problem=None if outcome is Outcome.OK else outcome.value,
            )

        return send


def asked(times: list[float | None]) -> Iterator[Ask]:
    for number, at in enumerate(times):
        yield Ask(number=number, at=at, input_tokens=10, output_tokens=3)


def driven(
    sender: Sender,
    times: list[float | None],
    limits: Limits,
    *,
    concurrency: int | None,
    stop_after: float = 1e9,
) -> tuple[Result, float]:
    async def work() -> tuple[Result, float]:
        loop = asyncio.get_running_loop()
        start = loop.time()
        stop = asyncio.Event()
        timer = loop.call_later(stop_after, stop.set)
        until = start + limits.seconds if limits.seconds else float("inf")
        tally = Tally(start=start, warmup=limits.warmup_s, until=until, slo=Slo(ttft=500))
        await drive(
            sender.prepare, asked(times), limits, tally, start=start, concurrency=concurrency, stop=stop
        )
        timer.cancel()
        assert tally.in_flight == 0
        return tally.result(ABOUT, now=loop.time(), interrupted=stop.is_set()), start

    return virtually(work())


def holds(result: Result) -> None:
    """What is true of every result."""
    counts = result.counts
    parts = (counts.ok, counts.failed, counts.cut, counts.refused, counts.timed_out, counts.unfinished)
    assert sum(parts) == counts.sent
    assert min(parts) >= 0
    assert sum(one.times for one in result.problems) == counts.sent - counts.ok
    assert 0 <= result.rates.in_flight_mean <= result.rates.in_flight_max
    assert all(one.within is None or 0 <= one.within <= 1 for one in result.promises)
    if result.ttft_ms and result.e2e_ms:
        assert result.ttft_ms.count <= counts.sent
        assert result.e2e_ms.count == counts.ok


@given(
    times=st.lists(st.floats(0, 30), max_size=40).map(sorted),
    seed=st.integers(0, 1000),
    longest=st.floats(0, 20),
    warmup=st.floats(0, 10),
    drain=st.floats(0, 30),
)
def test_an_open_loop_sends_each_request_once_and_when_it_is_due(
    times: list[float | None], seed: int, longest: float, warmup: float, drain: float
):
    sender = Sender(seed, longest)
    limits = Limits(seconds=20, warmup_s=warmup, drain_s=drain)
    result, start = driven(sender, times, limits, concurrency=None)
    holds(result)
    due = [start + at for at in times if at is not None and start + at < start + 20]
    assert [one for _, one in sender.sent] == due
    assert [sent for sent, _ in sender.sent] == pytest.approx(due, abs=1e-6)
    assert result.counts.sent == sum(at >= start + warmup for at in due)
    assert sender.at_once == 0


@given(
    users=st.integers(1, 8),
    requests=st.integers(1, 40),
    seed=st.integers(0, 1000),
    longest=st.floats(0, 5),
    seconds=st.none() | st.floats(1, 20),
)
def test_a_closed_loop_never_has_more_users_than_it_was_given(
    users: int, requests: int, seed: int, longest: float, seconds: float | None
):
    sender = Sender(seed, longest)
    limits = Limits(seconds=seconds, requests=requests, drain_s=5)
    result, _ = driven(sender, [None] * 1000, limits, concurrency=users)
    holds(result)
    assert sender.most <= users
    assert result.counts.sent == len(sender.sent) <= requests
    if seconds is None:
        assert result.counts.sent == requests
        assert result.counts.unfinished == 0


@given(
    stop_after=st.floats(0, 25),
    seed=st.integers(0, 100),
    concurrency=st.none() | st.integers(1, 5),
)
def test_whenever_it_is_stopped_all_that_was_sent_is_counted_and_nothing_is_left(
    stop_after: float, seed: int, concurrency: int | None
):
    sender = Sender(seed, 2.0)
    times: list[float | None] = [None] * 1000 if concurrency else [number / 2 for number in range(100)]
    result, _ = driven(sender, times, Limits(seconds=20), concurrency=concurrency, stop_after=stop_after)
    holds(result)
    assert result.counts.sent == len(sender.sent)
    assert sender.at_once == 0


def test_what_is_wrong_with_the_requests_comes_out_as_it_is():
    def broken() -> Iterator[Ask]:
        yield Ask(number=0, at=0.0, input_tokens=1, output_tokens=1)
        raise LoadError("line 3 is no request")

    async def work() -> None:
        tally = Tally(start=0)
        sender = Sender(0, 1.0)
        start = asyncio.get_running_loop().time()
        await drive(
            sender.prepare, broken(), Limits(), tally, start=start, concurrency=None, stop=asyncio.Event()
        )

    with pytest.raises(LoadError, match="line 3 is no request"):
        virtually(work())
