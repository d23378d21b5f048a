"""Reads the stream of an answer: bytes into server-sent events, and events into their meaning. No I/O.

Both forms of the OpenAI API are read, with what vLLM and SGLang add to them: reasoning apart from content, and a count of tokens in every event.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from plimsoll.api.plainjson import parsed

DONE: Final = "[DONE]"
_LONGEST_EVENT: Final = 8 << 20
_WRAPPINGS: Final = ("error", "message", "detail")
_TEXTS: Final = ("content", "reasoning", "reasoning_content", "tool_calls", "refusal")


class StreamError(ValueError):
    """The stream is not what it should be."""


class Events:
    """Cuts a stream into the data of its events, however the bytes arrive."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[str]:
        lines = (self._rest + data).split(b"\n")
        self._rest = lines.pop()
        if len(self._rest) > _LONGEST_EVENT:
            raise StreamError(f"an event of more than {_LONGEST_EVENT >> 20} MiB")
        # These servers never use several data lines for an event; comments and event names are not needed.
        return [
            line[5:].strip().decode("utf-8", "replace")
            for line in lines
            if line.startswith(b"data:") and line[5:].strip()
        ]


@dataclass(frozen=True, slots=True)
class Event:
    """What one event says."""

    has_text: bool = False
    has_choice: bool = False
    """False for an event that only has the final counts."""
    finish: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    """Output tokens so far."""
    error: str | None = None


def read_event(data: str) -> Event:
    try:
        body = parsed(data)
    except ValueError:
        raise StreamError(f"an event that is no JSON: {data[:80]!r}") from None
    if not isinstance(body, dict):
        raise StreamError(f"an event that is no object: {data[:80]!r}")
    if "error" in body or body.get("object") == "error":
        return Event(error=error_text(body))
    usage = body.get("usage") or {}
    choices = body.get("choices") or [{}]
    first = choices[0] if isinstance(choices, list) and isinstance(choices[0], dict) else {}
    return Event(
        has_text=_has_text(first),
        has_choice=bool(body.get("choices")),
        finish=first.get("finish_reason"),
        input_tokens=_count(usage, "prompt_tokens"),
        output_tokens=_count(usage, "completion_tokens"),
    )


def error_text(body: object) -> str:
    """The message in an error's body, whatever objects are around it."""
    while isinstance(body, dict) and (key := next((key for key in _WRAPPINGS if body.get(key)), None)):
        body = body[key]
    try:
        text = body if isinstance(body, str) else json.dumps(body)
    except RecursionError:
        text = "an error that is nested too deep to be read"
    return " ".join(text.split())[:200]


def _has_text(choice: Mapping[str, Any]) -> bool:
    if choice.get("text"):
        return True
    delta = choice.get("delta")
    return isinstance(delta, dict) and any(delta.get(key) for key in _TEXTS)


def _count(usage: object, key: str) -> int | None:
    value = usage.get(key) if isinstance(usage, dict) else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None
