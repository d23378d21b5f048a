"""Has the engine's own parser check its arguments while the model is still being fetched, so that an unknown flag ends the start after seconds
and not after the download.

For that the engine's program is started with one more argument, which no release knows. Its parser names all unknown arguments, this one among
them, and ends there. Where nothing has to be fetched this is not done, as the engine itself will say the same just as soon.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence

from plimsoll_runtime.failure import Failure
from plimsoll_runtime.taxonomy import explained

PROGRAM = ("vllm", "serve")
"""The engine's command. Of any other program it is not known whether it ends at an unknown argument."""
NO_FLAG = "--plimsoll-asks-the-parser"
REFUSED = 2
"""The exit code of argparse for arguments that it cannot read."""
MOST_OUTPUT = 1 << 20
_UNKNOWN = re.compile(r"unrecognized arguments:(.*)")


class Judgement:
    """A check, begun by the constructor. It has to be ended before the engine is started, as it is a child of this process too."""

    def __init__(self, argv: Sequence[str], environment: Mapping[str, str]) -> None:
        self.refusal: Failure | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._thread: threading.Thread | None = None
        if tuple(argv[:2]) != PROGRAM:
            return
        with contextlib.suppress(OSError):  # a program that is not there is told when it is started
            self._process = subprocess.Popen(  # noqa: S603 - the words are the plan's, and no shell reads them
                (*argv, NO_FLAG),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=dict(environment),
                start_new_session=True,
            )
            self._thread = threading.Thread(target=self._listen, name="judgement", daemon=True)
            self._thread.start()

    def refused(self) -> bool:
        return self.refusal is not None

    def wait(self) -> None:
        """Waits until the parser has ended by itself."""
        if self._thread is not None:
            self._thread.join()

    def end(self) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self.wait()
            self._process = None

    def _listen(self) -> None:
        process = self._process
        if process is None or process.stdout is None:
            return
        with process.stdout as stream:
            text = stream.read(MOST_OUTPUT)
            while stream.read(MOST_OUTPUT):
                pass
        if process.wait() == REFUSED:
            self.refusal = refusal_in(text.decode("utf-8", "replace"))


def refusal_in(text: str) -> Failure | None:
    """The failure where the parser rejected other arguments than the one that was added; else None."""
    lines = [line for line in map(_without_ours, text.splitlines()) if line is not None]
    found = explained(lines, "imports", REFUSED)
    return found if found.word == "BadFlag" else None


def _without_ours(line: str) -> str | None:
    """The line without the argument that was added; None where it is about that one alone."""
    if NO_FLAG not in line:
        return line
    kept = " ".join(line.replace(NO_FLAG, "").split())
    unknown = _UNKNOWN.search(kept)
    return kept if unknown is not None and unknown[1].strip() else None
