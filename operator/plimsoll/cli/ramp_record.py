"""`plimsoll ramp NAME --record`: hands what was measured to the operator, and waits for its answer.

Only the operator writes what is learned. It gets the record by an annotation on the deployment, and answers in the status.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from plimsoll import names
from plimsoll.cli.errors import BadInput, note
from plimsoll.cli.reaching import reaching
from plimsoll.facts.ramp_record import (
    LEAST_REQUESTS,
    MOST_POINTS,
    RampPoint,
    RampRecord,
    record_digest,
    write_record,
)
from plimsoll.load.conclusions import Ramp, Step

PATIENCE_SECONDS: Final = 120.0
LOOK_SECONDS: Final = 1.0
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorder:
    """Records a ramp for the set that served the deployment when the ramp began."""

    namespace: str
    name: str
    context: str | None
    set: str
    replicas: int

    def record(self, ramp: Ramp, prefix_tokens: int) -> None:
        """Hands the record in. Raises BadInput where the operator does not take it. While the cluster does not answer it tries again, so that
        the measurement is not lost."""
        from plimsoll.kube.handing_in import handed  # noqa: PLC0415 - the client loads for a second

        text = write_record(self._made(ramp, prefix_tokens))
        with reaching(self.context):
            deployment = handed(self.namespace, self.name, self.context)
            if _serving(_patiently(deployment.status)) != (self.set, self.replicas):
                raise BadInput("--record: other replicas serve now than when it began; nothing was recorded")
            _patiently(lambda: deployment.annotate(names.ANNOTATION_RAMP, text))
            said = _answer(deployment.status, record_digest(text))
        _tell(said)

    def _made(self, ramp: Ramp, prefix_tokens: int) -> RampRecord:
        if ramp.interrupted:
            raise BadInput("--record: it was interrupted; nothing was recorded")
        points = tuple(_points(ramp))[:MOST_POINTS]
        if not points:
            raise BadInput(
                f"--record: no load went well for {LEAST_REQUESTS} answers; nothing was recorded "
                "(a lower --start or a longer --step-duration helps)"
            )
        return RampRecord(
            set=self.set,
            replicas=self.replicas,
            at=int(time.time()),
            closed_loop=ramp.closed_loop,
            prefix_tokens=prefix_tokens,
            knee=None if ramp.knee is None else ramp.knee.load,
            points=points,
        )


def recorder_of(deployment: Mapping[str, Any] | None, context: str | None, *, elsewhere: bool) -> Recorder:
    """The recorder for what is about to be measured. `elsewhere`: another address than the Service's own is. Raises BadInput where it cannot
    be told which set will answer, which is said before the minutes of a ramp and not after."""
    if deployment is None:
        raise BadInput(
            "--record: an address says nothing of the model and the GPUs behind it; give the NAME of a deployment"
        )
    metadata, serving = deployment["metadata"], _serving(deployment.get("status") or {})
    if serving is None:
        raise BadInput("--record: not exactly one set of the deployment serves, so nobody knows what answers")
    set_, replicas = serving
    if elsewhere and replicas > 1:
        raise BadInput(
            f"--record: {replicas} replicas serve, and nobody knows how many of them answer at --url; leave it out"
        )
    return Recorder(
        namespace=metadata["namespace"], name=metadata["name"], context=context, set=set_, replicas=replicas
    )


def _serving(status: Mapping[str, Any]) -> tuple[str, int] | None:
    """The name of the only set with ready replicas, and their number; None where it is not exactly one."""
    ready = [(one["name"], one["ready"]) for one in status.get("sets") or () if one.get("ready")]
    return ready[0] if len(ready) == 1 else None


def _patiently(ask: Callable[[], T]) -> T:
    """The answer to a call, which is repeated while the cluster does not answer, up to a limit of time."""
    from plimsoll.kube.by_hand import Unanswered  # noqa: PLC0415 - the client loads for a second

    until = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return ask()
        except Unanswered:
            if time.monotonic() > until:
                raise
            time.sleep(LOOK_SECONDS)


def _answer(status: Callable[[], Mapping[str, Any]], record: str) -> Mapping[str, Any]:
    """Waits for what the operator says of a record that was handed in."""
    until = time.monotonic() + PATIENCE_SECONDS
    while True:
        said = _patiently(status).get("ramp") or {}
        if said.get("record") == record:
            return said
        if time.monotonic() > until:
            raise BadInput(
                f"--record: handed in, but the operator has not answered within {PATIENCE_SECONDS:g} s; "
                "status.ramp will say what it made of it"
            )
        time.sleep(LOOK_SECONDS)


def _points(ramp: Ramp) -> Iterator[RampPoint]:
    """Points of the steps up to the knee that have enough answers for a mean."""
    for step in ramp.steps:
        well = ramp.knee is None or (ramp.knee.load is not None and step.load <= ramp.knee.load)
        if well and step.result.counts.ok >= LEAST_REQUESTS:
            yield from _point(step)


def _point(step: Step) -> Iterator[RampPoint]:
    result = step.result
    asked = result.lengths.input_mean or result.lengths.input_asked
    answered, first, each = result.lengths.output_mean, result.ttft_ms, result.tpot_ms
    if first is None or each is None or not asked or not answered:
        return
    figures = (result.rates.in_flight_mean, first.mean, each.mean, result.rates.output_tokens)
    if min(figures) <= 0:
        return
    yield RampPoint(
        load=step.load,
        in_flight=round(figures[0], 3),
        requests=result.counts.ok,
        input_tokens=round(asked, 1),
        output_tokens=round(answered, 1),
        ttft_ms=first.mean,
        tpot_ms=each.mean,
        itl_p99_ms=result.itl_ms.p99 or None if result.itl_ms else None,
        tokens_per_second=round(figures[3], 3),
    )


def _tell(said: Mapping[str, Any]) -> None:
    if not said.get("taken"):
        raise BadInput(f"--record: {said.get('message')}")
    note([f"recorded: {said.get('message')}"])
