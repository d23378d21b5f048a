"""Requests to an engine as its users send them, from the standard library alone: what is measured by another client is not this one."""

from __future__ import annotations

import http.client
import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus
from types import TracebackType
from typing import Any, Final, Self

TIMEOUT_SECONDS: Final = 600.0
DATA: Final = b"data: "


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """Where one answers."""

    url: str
    key: str = ""

    def complete(self, model: str, prompt: str | list[int], tokens: int) -> str:
        """The whole answer, of exactly so many tokens."""
        with self._post("completions", _asked(model, prompt, tokens)) as answer:
            said = json.load(answer)
        assert said["usage"]["completion_tokens"] == tokens, said
        return str(said["choices"][0]["text"])

    def stream(self, model: str, prompt: str, tokens: int) -> Iterator[str]:
        """The answer, of exactly so many tokens, piece by piece. An engine that is ahead of its reader puts tokens together."""
        for choice in self._streamed("completions", _asked(model, prompt, tokens), tokens):
            yield str(choice["text"])

    def stream_chat(self, model: str, message: str, tokens: int) -> Iterator[str]:
        """The same, by the model's chat template."""
        for choice in self._streamed("chat/completions", _said(model, message, tokens), tokens):
            yield str(choice["delta"].get("content") or "")

    def chat(self, model: str, message: str, tokens: int) -> str:
        """By the model's chat template."""
        with self._post("chat/completions", _said(model, message, tokens)) as answer:
            return str(json.load(answer)["choices"][0]["message"]["content"])

    def _streamed(self, what: str, body: dict[str, Any], tokens: int) -> Iterator[Any]:
        counted = None
        with self._post(what, body | {"stream": True, "stream_options": {"include_usage": True}}) as answer:
            for line in answer:
                if not line.startswith(DATA) or line.startswith(DATA + b"[DONE]"):
                    continue
                said = json.loads(line.removeprefix(DATA))
                counted = (said.get("usage") or {}).get("completion_tokens", counted)
                yield from said["choices"]
        assert counted == tokens, f"{counted} tokens of {tokens}"

    def models(self) -> list[str]:
        """Names that it serves."""
        with urllib.request.urlopen(f"{self.url}/v1/models", timeout=TIMEOUT_SECONDS) as answer:
            return [str(one["id"]) for one in json.load(answer)["data"]]

    def metrics(self) -> str:
        with urllib.request.urlopen(f"{self.url}/metrics", timeout=TIMEOUT_SECONDS) as answer:
            return str(answer.read().decode())

    def answers(self, patience: float) -> bool:
        """Whether it does before patience ends; a Service is there a moment after its pod."""
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline:
            try:
                return bool(self.models())
            except OSError:
                time.sleep(0.2)
        return False

    def _post(self, what: str, body: dict[str, Any]) -> Any:
        headers = {"Content-Type": "application/json"}
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        asked = urllib.request.Request(f"{self.url}/v1/{what}", json.dumps(body).encode(), headers)
        try:
            return urllib.request.urlopen(asked, timeout=TIMEOUT_SECONDS)
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{what}: {error.code} {error.read().decode()}") from None


class Keeping(http.client.HTTPConnection):
    """A client that keeps its connection for as long as the server lets it, as most do, and counts how many it took."""

    opened = 0

    def connect(self) -> None:
        self.opened += 1
        super().connect()

    def complete(self, model: str, prompt: list[int], tokens: int) -> bool:
        return self.read("POST", "/v1/completions", json.dumps(_asked(model, prompt, tokens)))

    def read(self, method: str, path: str, body: str | None = None) -> bool:
        """Whether it is answered well."""
        self.request(method, path, body, {"Content-Type": "application/json"})
        answer = self.getresponse()
        answer.read()
        return answer.status == HTTPStatus.OK


def _asked(model: str, prompt: str | list[int], tokens: int) -> dict[str, Any]:
    return {"model": model, "prompt": prompt, "max_tokens": tokens, "ignore_eos": True, "temperature": 0.0}


def _said(model: str, message: str, tokens: int) -> dict[str, Any]:
    asked = {"model": model, "max_tokens": tokens, "ignore_eos": True}
    return asked | {"messages": [{"role": "user", "content": message}]}


class Users:
    """They ask on and on, one request at a time each, for the time of a `with`, whose end waits for the answers under way."""

    def __init__(self, engine: Engine, model: str, tokens: int, *, count: int) -> None:
        self._engine, self._model, self._tokens = engine, model, tokens
        self._end = threading.Event()
        self._threads = [
            threading.Thread(target=self._ask, args=(f"user {number}",)) for number in range(count)
        ]
        self.whole = 0
        self.failed: list[str] = []

    def __enter__(self) -> Self:
        for one in self._threads:
            one.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end.set()
        for one in self._threads:
            one.join()

    def _ask(self, prompt: str) -> None:
        while not self._end.is_set():
            try:
                self._engine.complete(self._model, prompt, self._tokens)
                # Only whether it moves is asked, so one that is lost between threads is no harm.
                self.whole += 1
            except Exception as error:  # noqa: BLE001 - whatever it is, a user saw it
                self.failed.append(repr(error))
