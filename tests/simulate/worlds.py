"""A small world that tests share: an engine of round numbers, and traffic for it."""

from array import array

from plimsoll.control.situation import Capacity, Slo
from plimsoll.planning.lengths import Length
from plimsoll.simulate.arrivals import Arrivals, Lengths
from plimsoll.simulate.scenario import Scenario
from plimsoll.simulate.steps import Limits, StepTimes
from plimsoll.simulate.world import Hardware, World

TIMES = StepTimes(
    decode=(0.0, *(0.02 + 0.0005 * n for n in range(1, 33))),
    kv_token=1e-7,
    chunk=0.004,
    prompt_token=5e-5,
    seen_token=1e-9,
)
LIMITS = Limits(blocks=1500, block_size=16, max_num_seqs=32, max_num_batched_tokens=1024, max_model_len=4096)
SLO = Slo(ttft_p99_s=2.0, itl_p99_s=0.1)
HARDWARE = Hardware(ready=10, growing=0, devices=2.0)


def world(seed: int = 1, **changes) -> World:
    given = {"times": TIMES, "limits": LIMITS, "slo": SLO, "hardware": HARDWARE, **changes}
    return World(seed=seed, **given)


def steady(rate: float, span_s: float, *, given: int = 300, asked: int = 100) -> Arrivals:
    count = int(rate * span_s)
    return Arrivals(
        trace="steady",
        at=array("d", (place / rate for place in range(count))),
        inputs=array("q", [given] * count),
        outputs=array("q", [asked] * count),
        prefixes=None,
        span_s=span_s,
    )


def joined(*parts: Arrivals) -> Arrivals:
    """One after the other."""
    at, inputs, outputs, begin = array("d"), array("q"), array("q"), 0.0
    for part in parts:
        at.extend(begin + moment for moment in part.at)
        inputs.extend(part.inputs)
        outputs.extend(part.outputs)
        begin += part.span_s
    return Arrivals(trace="joined", at=at, inputs=inputs, outputs=outputs, prefixes=None, span_s=begin)


SCENARIO = Scenario(
    name="test/llm",
    model="hf://test/model",
    gpu="H100-SXM-80GB",
    layout="tp2",
    devices=2.0,
    times=TIMES,
    limits=LIMITS,
    capacity=Capacity(
        kv_tokens=LIMITS.kv_tokens,
        max_num_seqs=32,
        concurrency=32,
        requests_per_second=6.0,
        input_tokens=300,
        output_tokens=100,
    ),
    requests_per_second=6.0,
    slo=SLO,
    lengths=Lengths(input=Length(300, 0.5), output=Length(100, 0.5)),
    lengths_declared=True,
    ceiling=131_072,
    least=1,
    most=10,
    bounded=True,
    hardware=HARDWARE,
    up_window_s=30.0,
    down_window_s=None,
)
