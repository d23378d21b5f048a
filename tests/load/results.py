"""Results made by hand for the tests of what is concluded from them and of what is printed."""

from dataclasses import replace
from typing import Any

from plimsoll.load.result import Counts, LengthsSeen, RatesSeen, Result
from plimsoll.load.sketch import Spread


def spread(mean: float, p99: float | None = None, count: int = 5000) -> Spread:
    most = mean * 2 if p99 is None else p99
    return Spread(count=count, mean=mean, p50=mean, p90=mean, p95=most, p99=most, max=most)


def result(*, per_second: float = 2.0, done: float | None = None, bad: int = 0, **changes: Any) -> Result:
    seconds = 30.0
    sent = round(per_second * seconds)
    made = Result(
        url="http://localhost:8000",
        model="tiny",
        pattern=f"{per_second:g} requests/s",
        seed=0,
        seconds=seconds,
        interrupted=False,
        counts=Counts(
            sent=sent, ok=sent - bad, failed=bad, cut=0, refused=0, timed_out=0, unfinished=0, not_sent=0
        ),
        rates=RatesSeen(
            requests=per_second if done is None else done,
            good_requests=None,
            input_tokens=per_second * 512,
            output_tokens=per_second * 128,
            in_flight_mean=per_second * 3,
            in_flight_max=round(per_second * 5),
        ),
        ttft_ms=spread(200, 400),
        itl_ms=spread(20, 30),
        tpot_ms=spread(20, 25),
        e2e_ms=spread(3000, 4000),
        longest_gap_ms=spread(25, 60),
        lengths=LengthsSeen(
            counted_by="server",
            input_asked=512,
            input_mean=512,
            input_error_percent=0.1,
            output_asked=128,
            output_mean=128,
            tokens_per_event=1.0,
        ),
        late_ms=spread(0.1),
        lag_ms=spread(0.1, 0.5),
        promises=(),
        problems=(),
        notes=(),
    )
    return replace(made, **changes)
