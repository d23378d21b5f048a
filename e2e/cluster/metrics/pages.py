"""Metrics that a test moves: each page plays one pod's /metrics, and can be slow, broken, or say nonsense."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from cluster.metrics.config import Target
from cluster.metrics.local import ANYWHERE, LocalServer, QuietHandler

Labels = tuple[tuple[str, str], ...]
LINE: Final = "{name}{{{labels}}} {value}\n"


@dataclass(slots=True)
class Page:
    """Series by name and labels. All of it may be changed while it is scraped."""

    address: str
    path: str
    _series: dict[tuple[str, Labels], float] = field(default_factory=dict)
    _instead: str | None = None
    _status: int = 200
    _changed: threading.Event = field(default_factory=threading.Event)
    _slow_s: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def set(self, name: str, value: float, **labels: str) -> None:
        """A series and its value; NaN and infinities are values too."""
        with self._lock:
            self._series[name, tuple(sorted(labels.items()))] = value

    def add(self, name: str, more: float, **labels: str) -> None:
        """Move a counter on; it starts at zero."""
        key = name, tuple(sorted(labels.items()))
        with self._lock:
            self._series[key] = self._series.get(key, 0.0) + more

    def drop(self, name: str, **labels: str) -> None:
        """All series of that name which have these labels."""
        asked = set(labels.items())
        with self._lock:
            for key in [key for key in self._series if key[0] == name and asked <= set(key[1])]:
                del self._series[key]

    def say(self, text: str | None) -> None:
        """Answer with this text, whatever the series are; None: with the series again."""
        self._instead = text

    def fail(self, status: int | None) -> None:
        """Answer with a status such as 500; None: be well again."""
        self._status = status or 200

    def slow(self, seconds: float) -> None:
        """Wait that long before each answer. Those that wait already are answered when this changes."""
        self._slow_s = seconds
        waiting, self._changed = self._changed, threading.Event()
        waiting.set()

    def target(self, **labels: str) -> Target:
        """This page as something to scrape."""
        return Target(address=self.address, path=self.path, labels=labels)

    def pod(self, namespace: str, name: str, uid: str = "") -> Target:
        """This page as if it were a discovered pod."""
        return self.target(namespace=namespace, pod=name, uid=uid or f"uid-of-{name}")

    def reply(self) -> tuple[int, bytes]:
        """Status and text, when it is time."""
        self._changed.wait(self._slow_s)
        return self._status, self.render().encode()

    def render(self) -> str:
        """The text, in the format of metrics."""
        if self._instead is not None:
            return self._instead
        with self._lock:
            series = sorted(self._series.items())
        return "".join(
            LINE.format(
                name=name, labels=",".join(f'{key}="{_escaped(text)}"' for key, text in labels), value=value
            )
            for (name, labels), value in series
        )


class MetricsServer(LocalServer):
    """Pages by name; use it with `with`."""

    def __init__(self, at: tuple[str, int] = ANYWHERE) -> None:
        pages: dict[str, Page] = {}

        class Handler(QuietHandler):
            def do_GET(self) -> None:  # noqa: N802 - the name is the base's
                page = pages.get(self.path)
                if page is None:
                    self.answer(404, b"no such page\n")
                else:
                    self.answer(*page.reply())

        super().__init__(Handler, at)
        self._pages: Mapping[str, Page] = pages
        self._new = pages.setdefault

    def page(self, name: str = "metrics") -> Page:
        """Made when first asked for; its path is its name."""
        return self._new(f"/{name}", Page(self.address, f"/{name}"))


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
