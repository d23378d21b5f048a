"""How far a simulation is: a bar on a terminal, else a line now and then, so that a long one is seen to live."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from plimsoll.cli.errors import note

TOLD_EVERY_S: Final = 60.0


class Bar:
    """Virtual time as it passes, one bar a run; or, where several run side by side, how many are done, one bar for all."""

    def __init__(self, whole: float) -> None:
        self._whole = whole
        self._name = ""
        self._drawn = sys.stderr.isatty()
        self._told_at = time.monotonic()
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:.0f}%"),
            TimeRemainingColumn(),
            console=Console(stderr=True, highlight=False, emoji=False, markup=False),
            transient=True,
            disable=not self._drawn,
        )
        self._task: TaskID = self._progress.add_task("", total=whole)

    def __enter__(self) -> Bar:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def begin(self, name: str) -> None:
        """The next run, from its beginning."""
        self._name = name
        self._progress.reset(self._task, description=name)

    def name(self, name: str) -> None:
        """What goes on is called so from now on."""
        self._name = name
        self._progress.update(self._task, description=name)

    def __call__(self, now: float) -> None:
        if self._drawn:
            self._progress.update(self._task, completed=min(now, self._whole))
        elif time.monotonic() - self._told_at >= TOLD_EVERY_S:
            self._told_at = time.monotonic()
            note([f"{self._name}: {100 * min(1.0, now / self._whole):.0f}%"])
