"""Keeps a running engine's LoRA adapters as they are declared: looks at the list every few seconds, fetches what is missing, loads and
unloads by the engine's own API, and loads again what the engine has lost.

The list is a file in a folder that the kubelet keeps up to date, so a changed list needs no new pod. Whether an adapter can be loaded is judged
by `lora`; how it is fetched is handed in. Adapters that somebody else loads are left alone.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from plimsoll_runtime.address import Address, number_of, value_of
from plimsoll_runtime.failure import Failure, plain_text, scrubbed
from plimsoll_runtime.lora import RANK, ListUnreadable, Wanted, judged, refused, wanted_of
from plimsoll_runtime.lora_base import Base, misfit
from plimsoll_runtime.said import ADAPTER_LOADED, SERVING, Said
from plimsoll_runtime.sources.trouble import FetchFailed
from plimsoll_runtime.words import tell

WAITING, FETCHING, LOADED, FAILED = "Waiting", "Fetching", ADAPTER_LOADED, "Failed"
LOOK_SECONDS = 3.0
CHECK_SECONDS = 15.0
"""Between two looks at what the engine has."""
AGAIN_SECONDS, LONGEST_SECONDS = 5.0, 300.0
"""Time to the next attempt after a first failure, and after many. It never ends, as what is refused today may be corrected at its source."""
LOAD_SECONDS = 120.0
"""Timeout for loading an adapter. A busy engine loads only between two steps."""
UNUSED_SECONDS = 24 * 3600.0
"""Adapters that no pod sharing the folder has wanted for this long are deleted."""
MARK_SECONDS = 3600.0
USED = ".plimsoll-used"

Fetch = Callable[[Wanted, Path, Callable[[str], None]], Path]
"""Fetches an adapter into a place below the folder and returns that place. Raises FetchFailed. The last argument is told of the progress."""
Lacking = Callable[[str], Sequence[int]]
"""Gives the ranks of the group that do not have the files of an adapter (by its id) yet."""


class Engine(NamedTuple):
    """The engine's API for adapters, and its key."""

    address: Address
    key: str | None = None

    def ask(self, method: str, path: str, body: Mapping[str, object] | None = None) -> tuple[int, str] | None:
        headers = {} if self.key is None else {"Authorization": f"Bearer {self.key}"}
        text = None if body is None else json.dumps(body).encode()
        if text is not None:
            headers["Content-Type"] = "application/json"
        return self.address.ask(method, path, timeout=LOAD_SECONDS, body=text, headers=headers)

    def loaded(self) -> dict[str, str] | None:
        """The folder of each adapter by its name; None where the engine does not say."""
        answer = self.ask("GET", "/v1/models")
        if answer is None or answer[0] != 200:
            return None
        try:
            cards = json.loads(answer[1])["data"]
            return {str(card["id"]): str(card["root"]) for card in cards if card.get("parent")}
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None


def key_of(argv: Sequence[str], environment: Mapping[str, str]) -> str | None:
    """The API key. The engine accepts any of several in its arguments; without one there its variable is used."""
    return value_of(argv, "--api-key") or environment.get("VLLM_API_KEY") or None


class _Kept:
    """The state of one adapter."""

    def __init__(self, wanted: Wanted, loaded: str | None = None) -> None:
        self.wanted = wanted
        self.folder: Path | None = None
        """Where its files are, once they are there."""
        self.loaded = loaded
        """The folder that the engine has loaded under this name. It may be of an earlier revision, until this one replaces it."""
        self.state, self.said = WAITING, "the engine starts"
        self.failure: Failure | None = None
        self.failures, self.due = 0, 0.0

    def enter(self, state: str, said: str = "") -> None:
        self.state, self.said, self.failure = state, said, None

    def fails(self, failure: Failure, now: float) -> None:
        news = self.failure is None or self.failure.word != failure.word
        self.state, self.said, self.failure = FAILED, failure.message, failure
        self.due = now + min(LONGEST_SECONDS, AGAIN_SECONDS * 2**self.failures)
        self.failures = min(self.failures + 1, 10)
        if news:
            tell(f"adapter {self.wanted.name}: {failure.word}: {failure.message}. Remedy: {failure.remedy}")

    def told(self) -> dict[str, object]:
        failure = self.failure
        return {
            "name": self.wanted.name,
            "id": self.wanted.id,
            "state": self.state,
            "word": None if failure is None else failure.word,
            "message": plain_text(self.said)[:MOST_SAID],
            "remedy": None if failure is None else plain_text(failure.remedy)[:MOST_SAID],
            "serves": self.loaded is not None,
        }


MOST_SAID = 240
"""Characters of a message, so that those of 64 failed adapters fit into one answer."""


class Adapters(threading.Thread):
    """The thread that keeps adapters. `into` is the folder for fetched ones. A rank that answers no requests has no engine here and only
    fetches the files."""

    def __init__(
        self,
        file: Path,
        into: Path,
        engine: Engine | None,
        said: Said,
        *,
        fetch: Fetch,
        max_rank: int = RANK,
        lacking: Lacking | None = None,
        environment: Mapping[str, str] | None = None,
        ended: threading.Event | None = None,
    ) -> None:
        super().__init__(name="adapters", daemon=True)
        self._file, self._into, self._engine, self._said = file, into, engine, said
        self._fetch, self._max_rank = fetch, max_rank
        self._lacking: Lacking = lacking or (lambda _id: ())
        self._environment = environment or {}
        self.base: Callable[[], Base | None] = lambda: None
        """Gives what is known here of the model that is served."""
        self._ended = ended or threading.Event()
        self._kept: dict[str, _Kept] = {}
        self._gone: dict[str, str] = {}
        """Adapters that we loaded and nobody wants any more: their folders by name."""
        self._list = b""
        self._checked = float("-inf")
        self._marked = float("-inf")
        self._bringing: _Bringing | None = None

    def end(self) -> None:
        self._ended.set()

    def run(self) -> None:
        while True:
            try:
                self.step(time.monotonic())
            except Exception as error:  # noqa: BLE001 - an engine whose adapters nobody keeps goes on serving
                tell(f"cannot see to the adapters: {error!r}")
            if self._ended.wait(LOOK_SECONDS):
                return

    def step(self, now: float) -> None:
        self._read()
        self._bring(now)
        if self._engine is None:
            for kept in self._kept.values():
                if kept.folder is not None and kept.failure is None:
                    kept.enter(LOADED)
        elif self._said.state == SERVING:
            self._check(self._engine, now)
            self._unload(self._engine)
            for kept in self._kept.values():
                if kept.folder is not None and kept.state != LOADED and kept.due <= now:
                    self._load(self._engine, kept, kept.folder, now)
        self._tidy(now)
        self._said.keeps([kept.told() for kept in self._kept.values()])

    def holds(self) -> tuple[str, ...]:
        """Ids of the adapters whose files are here."""
        return tuple(kept.wanted.id for kept in list(self._kept.values()) if kept.folder is not None)

    def _read(self) -> None:
        """Reads the list. If it is missing or cannot be read nothing changes, and what is loaded stays."""
        try:
            text = self._file.read_bytes()
        except OSError:
            return
        if text == self._list:
            return
        self._list = text
        try:
            wanted = wanted_of(text)
        except ListUnreadable as unreadable:
            tell(str(unreadable))
            return
        before, self._kept = self._kept, {}
        for one in wanted:
            old = before.pop(one.name, None)
            if old is not None and old.wanted == one:
                self._kept[one.name] = old
                continue
            self._kept[one.name] = _Kept(one, self._gone.pop(one.name, None) if old is None else old.loaded)
        for name, old in before.items():
            if old.loaded is not None:
                self._gone[name] = old.loaded

    def _bring(self, now: float) -> None:
        """Fetches one adapter at a time, in a thread of its own, so that a slow fetch does not delay the loading of others."""
        bringing = self._bringing
        if bringing is not None:
            kept = self._kept.get(bringing.wanted.name)
            ours = kept is not None and kept.wanted == bringing.wanted
            if bringing.is_alive():
                if kept is not None and ours:
                    kept.enter(FETCHING, bringing.said)
                return
            self._bringing = None
            if kept is not None and ours:
                self._brought(kept, bringing.folder, bringing.failure, now)
        for kept in self._kept.values():
            if kept.folder is not None or kept.due > now:
                continue
            if kept.wanted.path is not None:
                self._brought(kept, Path(kept.wanted.path), None, now)
            elif self._bringing is None:
                kept.enter(FETCHING, "fetching it")
                self._bringing = _Bringing(kept.wanted, self._into / _folder_name(kept.wanted), self._fetch)
                self._bringing.start()

    def _brought(self, kept: _Kept, folder: Path | None, failure: Failure | None, now: float) -> None:
        if folder is not None:
            failure = judged(kept.wanted, folder, self._max_rank)
        if failure is not None:
            kept.fails(scrubbed(failure, self._environment), now)
            return
        kept.folder, kept.due = folder, 0.0
        kept.enter(WAITING, "the engine starts")

    def _check(self, engine: Engine, now: float) -> None:
        """Compares with what the engine has loaded, as somebody else may have unloaded an adapter or loaded another one under its name."""
        if now - self._checked < CHECK_SECONDS:
            return
        there = engine.loaded()
        if there is None:
            return
        self._checked = now
        for name, kept in self._kept.items():
            if kept.loaded is not None and there.get(name) != kept.loaded:
                kept.loaded = there.get(name)
                if kept.state == LOADED:
                    kept.enter(WAITING, "the engine has it no more")
        for name in [name for name, folder in self._gone.items() if there.get(name) != folder]:
            del self._gone[name]

    def _unload(self, engine: Engine) -> None:
        for name in list(self._gone):
            answer = engine.ask("POST", "/v1/unload_lora_adapter", {"lora_name": name})
            if answer is not None and answer[0] in (200, 404):
                del self._gone[name]
                tell(f"adapter {name}: unloaded, it is not declared any more")

    def _load(self, engine: Engine, kept: _Kept, folder: Path, now: float) -> None:
        ranks = self._lacking(kept.wanted.id)
        if ranks:
            kept.enter(WAITING, f"rank {ranks[0]} of this replica has not got its files yet")
            return
        # Judged each time, as others may have changed the files on a volume.
        failure = judged(kept.wanted, folder, self._max_rank) or misfit(kept.wanted, folder, self.base())
        if failure is None:
            told: dict[str, object] = {"lora_name": kept.wanted.name, "lora_path": str(folder)}
            answer = engine.ask(
                "POST", "/v1/load_lora_adapter", {**told, "load_inplace": kept.loaded is not None}
            )
            if answer is not None and answer[0] == 400 and "already been" in answer[1]:
                # What has the name is not ours, or this version of the engine cannot replace an adapter in place.
                engine.ask("POST", "/v1/unload_lora_adapter", {"lora_name": kept.wanted.name})
                answer = engine.ask("POST", "/v1/load_lora_adapter", told)
            if answer is None:
                kept.enter(WAITING, "the engine does not answer")
                return
            if answer[0] == 200:
                kept.loaded, kept.failures = str(folder), 0
                kept.enter(LOADED)
                tell(f"adapter {kept.wanted.name}: loaded from {folder}")
                return
            failure = refused(kept.wanted, *answer)
        kept.fails(scrubbed(failure, self._environment), now)

    def _tidy(self, now: float) -> None:
        """Deletes what was fetched for earlier lists. Pods may share the folder, so each marks what it uses."""
        if now - self._marked < MARK_SECONDS or not self._into.is_dir():
            return
        self._marked, today = now, time.time()
        ours = {_folder_name(kept.wanted) for kept in self._kept.values()}
        for folder in sorted(self._into.iterdir()):
            mark = folder / USED
            with contextlib.suppress(OSError):
                if folder.name in ours:
                    mark.touch()
                elif mark.exists() and today - mark.stat().st_mtime > UNUSED_SECONDS:
                    shutil.rmtree(folder)


def _folder_name(wanted: Wanted) -> str:
    """A folder's name that depends on the source, as the engine takes what it has cached of a folder for the folder's present content."""
    return hashlib.sha256(f"{wanted.source}\n{wanted.revision or ''}".encode()).hexdigest()[:16]


class _Bringing(threading.Thread):
    """One fetch."""

    def __init__(self, wanted: Wanted, into: Path, fetch: Fetch) -> None:
        super().__init__(name="adapter", daemon=True)
        self.wanted, self._into, self._fetch = wanted, into, fetch
        self.said = "fetching it"
        self.folder: Path | None = None
        self.failure: Failure | None = None

    def run(self) -> None:
        try:
            self._into.mkdir(parents=True, exist_ok=True)
            (self._into / USED).touch()
            self.folder = self._fetch(self.wanted, self._into, self._tell)
        except FetchFailed as failed:
            self.failure = failed.failure
        except Exception as error:  # noqa: BLE001 - whatever it is, this adapter is not here
            self.failure = Failure(
                "Download", f"{self.wanted.source}: {error}", "the log of the engine's pod has more"
            )

    def _tell(self, text: str) -> None:
        self.said = text


def max_rank_of(argv: Sequence[str]) -> int:
    return number_of(argv, "--max-lora-rank") or RANK
