"""What became of one request: how it ended and when each part of its answer came, in seconds on the loop's clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Outcome(StrEnum):
    OK = "ok"
    FAILED = "failed"
    """The server reported an error: by an HTTP status, or inside the stream."""
    CUT = "cut"
    """The answer began but was not completed: a broken connection, no last event, or finish reason abort."""
    REFUSED = "refused"
    """The server did not take the request: no connection, or status 429 or 503."""
    TIMED_OUT = "timed_out"
    UNFINISHED = "unfinished"
    """It was still being answered when the run ended, so it counts neither as good nor as bad."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    outcome: Outcome
    due: float
    """When a user would have sent it. It may have left this client later, which `sent` says."""
    sent: float
    ended: float
    arrivals: Sequence[float] = ()
    """When tokens came: one time for each event of the stream with tokens in it."""
    asked_input: int = 0
    asked_output: int = 0
    input_tokens: int | None = None
    """As the server counted them; None where it does not."""
    output_tokens: int | None = None
    problem: str | None = None
    """Why the outcome is not ok, in the server's words where it gave any."""

    @property
    def tokens(self) -> int:
        """Output tokens: the server's count, else the events that held text."""
        return len(self.arrivals) if self.output_tokens is None else self.output_tokens
