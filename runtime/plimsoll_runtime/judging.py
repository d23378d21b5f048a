"""Has the engine's own parser look at its words while the model still comes, so that a flag it does not know ends the start in
seconds and not after a download.

The engine's program itself is asked, with one word more that no release knows: its parser names all that it does not know, ours
among it, and ends there. Without a download nothing is asked, since the engine says the same as soon.
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
"""Of other programs nobody knows whether they end at a word that they do not know."""
NO_FLAG = "--plimsoll-asks-the-parser"
REFUSED = 2
"""How argparse ends."""
MOST_OUTPUT = 1 << 20
_UNKNOWN = re.compile(r"unrecognized arguments:(.*)")


class Judgement:
    """Begins when made. End it before an engine is started: it is a child of this process."""

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
        """Until the parser has ended by itself."""
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
    """What the parser said against other words than ours; None where that is nothing."""
    lines = [line for line in map(_without_ours, text.splitlines()) if line is not None]
    found = explained(lines, "imports", REFUSED)
    return found if found.word == "BadFlag" else None


def _without_ours(line: str) -> str | None:
    """None where the line is about our word alone."""
    if NO_FLAG not in line:
        return line
    kept = " ".join(line.replace(NO_FLAG, "").split())
    unknown = _UNKNOWN.search(kept)
    return kept if unknown is not None and unknown[1].strip() else None
