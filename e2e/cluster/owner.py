"""Who runs programs for the time of a `with`: in a folder of its own, on a free port each, and nothing is left of either afterwards."""

from __future__ import annotations

import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Final, Self

from cluster.processes import ClusterFailed, Processes, claimed_port

ATTEMPTS: Final = 5
TAKEN: Final = "address already in use"


class Owner(ABC):
    """Which programs, and how they are told, is what the others of its kind differ in."""

    called: ClassVar[str]
    """In the name of its folder."""
    folder: Path
    processes: Processes
    _claims: ExitStack
    """On ports: or who is asked whether it is ready may be somebody else's, who drew the same one and came first."""

    def __enter__(self) -> Self:
        self._claims = ExitStack()
        self.folder = Path(tempfile.mkdtemp(prefix=f"plimsoll-{self.called}-"))
        self.processes = Processes(self.folder)
        try:
            self._start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.processes.explain(error)
        self.stop()

    def stop(self) -> None:
        """End its programs and clear the folder."""
        self.processes.stop()
        self._claims.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    @abstractmethod
    def _start(self) -> None:
        """All of them, until they are ready."""

    def _listening(
        self,
        name: str,
        program: str | Path,
        args: Callable[[str], Sequence[str]],
        is_ready: Callable[[str], bool],
        seconds: float,
    ) -> str:
        """The address where the program listens now. It cannot share a port with a holder, so the port may be gone: then another."""
        for attempt in range(1, ATTEMPTS + 1):
            port, claim = claimed_port()
            self._claims.enter_context(claim)
            address = f"127.0.0.1:{port}"
            self.processes.start(name, [program, *args(address)])
            try:
                self.processes.wait(name, lambda: is_ready(address), seconds)  # noqa: B023 - awaited here
            except ClusterFailed as failed:
                if TAKEN not in str(failed).lower() or attempt == ATTEMPTS:
                    raise
                self.processes.log(name).unlink()  # what it said of that port is nothing against the next
            else:
                return address
        raise AssertionError
