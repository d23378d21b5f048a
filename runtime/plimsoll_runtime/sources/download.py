"""Files from a source into a folder: in a few streams, each piece tried again where it was cut, each file compared with its sum.

A file gets its name when all of it is there and right, so whatever has its name is whole.
"""

from __future__ import annotations

import shutil
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from plimsoll_runtime.failure import FULL_DISK
from plimsoll_runtime.sources.listing import CHUNK, Digest, File, Source, matches
from plimsoll_runtime.sources.partial import Partial
from plimsoll_runtime.sources.trouble import (
    ANEW,
    REACH,
    FetchFailed,
    Patience,
    Refused,
    Stopped,
    Transient,
    failed,
)
from plimsoll_runtime.sources.web import Answer

STREAMS = 4
PIECE_BYTES = 512 << 20
"""A request each: hubs count them."""
LOOK_SECONDS = 0.2
NOTE_SECONDS = 1.0
"""After a kill, at most this much is fetched a second time."""
GIB = 1 << 30


class Told(Protocol):
    """Whoever wants to know how a download goes, and may want it to end."""

    def progress(self, done: int, of: int) -> None: ...

    def says(self, text: str) -> None:
        """Tells a sentence to people who read the log."""
        ...

    def waits(self, text: str | None) -> None:
        """Tells what is waited for before anything comes; None when that is over."""
        ...

    def stopped(self) -> bool: ...


class Job(NamedTuple):
    file: File
    target: Path


class _Open:
    """A file that is being fetched. It is opened when its first piece is wanted and not before, since a process may have only so many files open."""

    def __init__(self, job: Job) -> None:
        self.job, self.partial = job, Partial(job.target, job.file.size)
        self.again = False
        self.left = 0
        """How many pieces of it are still to come."""


class _Piece(NamedTuple):
    of: _Open
    start: int
    end: int


class _Span:
    """What one stream has written and has not noted yet. Whoever waits for the download notes it now and then, since the stream itself may be blocked for long."""

    def __init__(self, partial: Partial, at: int) -> None:
        self._partial, self._noted, self.at = partial, at, at
        self._lock = threading.Lock()

    def note(self) -> None:
        with self._lock:
            at = self.at
            if at > self._noted:
                self._partial.note(self._noted, at)
                self._noted = at


class Download:
    def __init__(
        self, source: Source, jobs: Sequence[Job], patience: Patience, streams: int = STREAMS
    ) -> None:
        self._source, self._patience, self._streams = source, patience, streams
        self._jobs = [job for job in jobs if not _is_there(job)]
        self._total = sum(job.file.size for job in jobs)
        self._done = self._total - sum(job.file.size for job in self._jobs)
        self._lock = threading.Lock()
        self._end = threading.Event()
        self._waiting: deque[Job] = deque()
        self._pieces: deque[_Piece] = deque()
        self._answers: dict[Answer, _Span] = {}
        self._noted = 0.0
        self._failure: BaseException | None = None
        self._said: deque[str] = deque()
        self._open: list[_Open] = []
        self._unfinished, self._requests = 0, 0

    def run(self, told: Told) -> None:
        """Fetches all files; raises FetchFailed or Stopped."""
        try:
            self._prepare()
            self._work(told)
        except OSError as error:
            raise of_disk(error) from error
        finally:
            for one in self._open:
                one.partial.close()

    def _prepare(self) -> None:
        missing = 0
        for job in self._jobs:
            partial = Partial(job.target, job.file.size)
            gaps = partial.gaps()
            partial.close()
            lacks = sum(end - start for start, end in gaps)
            self._done += job.file.size - lacks
            missing += lacks
            self._requests += len(_ranges_of(gaps))
        self._waiting.extend(self._jobs)
        self._unfinished = len(self._jobs)
        if self._jobs:
            room(self._jobs[0].target.parent, missing)

    def _next(self) -> _Piece | None:
        """The next piece to fetch; to be called with the lock held. What is missing of a file is looked up anew, as another owner of the folder may have brought it meanwhile."""
        while not self._pieces and self._waiting:
            job = self._waiting.popleft()
            if _is_there(job):
                self._unfinished -= 1
                continue
            one = _Open(job)
            self._open.append(one)
            self._queue(one, one.partial.gaps())
        return self._pieces.popleft() if self._pieces else None

    def _queue(self, one: _Open, gaps: Sequence[tuple[int, int]]) -> None:
        pieces = [_Piece(one, start, end) for start, end in _ranges_of(gaps)]
        one.left = len(pieces)
        self._pieces.extend(pieces)

    def _work(self, told: Told) -> None:
        threads = [
            threading.Thread(target=self._stream, name=f"fetch-{number}", daemon=True)
            for number in range(min(self._streams, self._requests))
        ]
        for thread in threads:
            thread.start()
        try:
            while any(thread.is_alive() for thread in threads):
                if told.stopped():
                    raise Stopped
                if self._failure is not None:
                    break
                self._tell(told)
                self._note()
                for thread in threads:
                    thread.join(LOOK_SECONDS / len(threads))
        finally:
            self._end.set()
            with self._lock:
                answers = list(self._answers)
            for answer in answers:
                answer.abort()
            for thread in threads:
                thread.join()
        self._tell(told)
        if self._failure is not None:
            raise self._failure

    def _note(self) -> None:
        if time.monotonic() - self._noted < NOTE_SECONDS:
            return
        with self._lock:
            spans = list(self._answers.values())
        for span in spans:
            span.note()
        self._noted = time.monotonic()

    def _tell(self, told: Told) -> None:
        while self._said:
            told.says(self._said.popleft())
        told.progress(self._done, self._total)

    def _stream(self) -> None:
        try:
            while not self._end.is_set():
                with self._lock:
                    if not self._unfinished:
                        return
                    piece = self._next()
                if piece is None:
                    self._end.wait(LOOK_SECONDS)  # a file that turns out wrong brings more
                    continue
                self._fetch(piece)
                self._arrived(piece.of)
        except Stopped:
            return
        except BaseException as error:  # noqa: BLE001 - raised by the thread that waits
            with self._lock:
                self._failure = self._failure or error
            self._end.set()

    def _fetch(self, piece: _Piece) -> None:
        at, attempt = piece.start, 0
        while at < piece.end:
            before = at
            try:
                at = self._read(piece, at)
            except Transient as trouble:
                at = before if trouble.reached is None else trouble.reached
                attempt = 1 if at > before else attempt + 1
                self._pause(piece, attempt, trouble)

    def _pause(self, piece: _Piece, attempt: int, trouble: Transient) -> None:
        if attempt >= self._patience.attempts:
            raise failed("Download", f"{self._source.name} cannot be fetched: {trouble}", REACH) from trouble
        seconds = self._patience.pause(attempt, trouble.after)
        self._said.append(f"{piece.of.job.file.path}: {trouble}; asks again in {seconds:.0f} s")
        if self._end.wait(seconds):
            raise Stopped

    def _read(self, piece: _Piece, at: int) -> int:
        """Reads a piece and returns the byte that it reached, which a Transient carries too."""
        file, partial = piece.of.job.file, piece.of.partial
        try:
            answer = self._source.open(file, at, piece.end)
        except Refused as refused:
            raise failed("Download", f"{self._source.name}: {refused} for {file.path}", REACH) from refused
        span = _Span(partial, at)
        with self._lock:
            self._answers[answer] = span
        try:
            if self._end.is_set():
                raise Stopped
            skip_to(answer, file, at)
            for chunk in _chunks(answer, piece.end - at):
                if (
                    self._end.is_set()
                ):  # an answer over TLS that is aborted may give out what is still encrypted
                    raise Stopped
                partial.write(chunk, span.at)
                span.at += len(chunk)
                with self._lock:
                    self._done += len(chunk)
        except Transient as trouble:
            if self._end.is_set():
                raise Stopped from trouble
            trouble.reached = span.at
            raise
        finally:
            span.note()
            with self._lock:
                self._answers.pop(answer, None)
            answer.close()
        return span.at

    def _arrived(self, one: _Open) -> None:
        with self._lock:
            one.left -= 1
            if one.left:
                return
        file = one.job.file
        right = file.digest is None or self._is_right(one, file.digest)
        if self._end.is_set():
            raise Stopped
        if right:
            one.partial.done()
            one.partial.close()
            with self._lock:
                self._open.remove(one)
                self._unfinished -= 1
            return
        one.partial.begin_anew()
        kind = file.digest.kind if file.digest is not None else ""
        if one.again:
            message = f"{file.path} of {self._source.name} is not what its {kind} sum says, twice"
            raise failed("BadCheckpoint", message, ANEW)
        one.again = True
        self._said.append(f"{file.path} is not what its {kind} sum says; it is fetched again")
        with self._lock:
            self._done -= file.size
            self._queue(one, [(0, file.size)])

    def _is_right(self, one: _Open, digest: Digest) -> bool:
        try:
            return matches(one.partial.file, digest, one.job.file.size, self._end.is_set)
        except FileNotFoundError:
            if _is_there(one.job):  # another owner of the place was faster, and gave it its name
                return True
            raise


def _ranges_of(gaps: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The ranges to ask for, one request each. A file of which nothing is missing has one empty range, since its sum has still to be compared."""
    found = [(at, min(at + PIECE_BYTES, end)) for start, end in gaps for at in range(start, end, PIECE_BYTES)]
    return found or [(0, 0)]


def _chunks(answer: Answer, wanted: int) -> Iterator[bytes]:
    """The answer's bytes up to the number wanted; raises Transient where it ends before."""
    while wanted > 0:
        chunk = answer.read(min(CHUNK, wanted))
        if not chunk:
            raise Transient("the connection ended before the file did")
        wanted -= len(chunk)
        yield chunk


def skip_to(answer: Answer, file: File, at: int) -> None:
    """Reads up to where the file is wanted from, where a server sends the whole of what it was asked a part of."""
    told = answer.headers.get("content-range", "")
    start = file.at + at
    total = answer.headers.get("content-length", "")
    if answer.status == 206:
        if not told.replace("=", " ").lower().startswith(f"bytes {start}-"):
            raise Transient(f"another part came than was asked for ({told or 'none is named'})")
        total = told.rpartition("/")[2]
    if total.isdecimal() and not file.at and int(total) != file.size:
        message = f"{file.path} has {total} bytes, and {file.size} were announced"
        raise failed("BadCheckpoint", message, ANEW)
    for _ in _chunks(answer, 0 if answer.status == 206 else start):
        pass


def _is_there(job: Job) -> bool:
    try:
        return job.target.stat().st_size == job.file.size
    except OSError:
        return False


def room(folder: Path, missing: int) -> None:
    """Raises FetchFailed, before anything is fetched, where the disk has no room for what is missing."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    try:
        free = shutil.disk_usage(folder).free
    except OSError:
        return
    if free < missing:
        message = (
            f"{folder} has {free / GIB:.1f} GiB free, and {missing / GIB:.1f} GiB are still to be fetched"
        )
        raise failed("DiskFull", message, "a larger spec.storage.weights")


def of_disk(error: OSError, folder: Path | None = None) -> FetchFailed:
    """The failure that an error of the disk stands for. `folder` is named where the error itself does not say what could not be written."""
    about = error.filename or folder
    said = f"{about}: {error.strerror or error}" if about else f"{error.strerror or error}"
    if error.errno in FULL_DISK:
        return failed(
            "DiskFull",
            f"the disk is full while the model is fetched: {said}",
            "a larger spec.storage.weights",
        )
    remedy = "a volume that the pod's user may write: spec.storage.weights, or fsGroup by spec.podPatches"
    return failed("NotWritable", f"the model cannot be kept: {said}", remedy)
