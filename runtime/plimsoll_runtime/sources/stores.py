"""Where the files of a model are kept: repositories of the hub as the hub's own client keeps them, so that an engine finds them there;
all else in a folder for each revision. Beside them is noted what each form of a revision has, so that one that is whole is known without a
network.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import uuid
from collections.abc import Iterable
from pathlib import Path

from plimsoll_runtime.sources.choice import CONFIGS, WEIGHTS
from plimsoll_runtime.sources.download import Job
from plimsoll_runtime.sources.hub import COMMIT
from plimsoll_runtime.sources.listing import File, Listing

OWN = ".plimsoll"
MOST_NAME = 100
WITHOUT_WEIGHTS = "dummy"
PARTS = "parts"
"""In a note whose release knew of weights in folders of a model. What older ones noted as whole may lack them."""
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")


class Store:
    """Where one model is kept, with all its revisions."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.lock = root / OWN / "lock"

    def folder(self, revision: str) -> Path:
        return self.root / "snapshots" / revision

    def revision_of(self, asked: str | None) -> str | None:
        """The revision that a name stood for when it was first asked for; None where it never was."""
        try:
            return self._reference(asked).read_text(encoding="utf-8").strip() or None
        except OSError:
            return None

    def only(self) -> str | None:
        """The revision that is here, where there is one alone."""
        try:
            found = [one.name for one in (self.root / "snapshots").iterdir() if one.is_dir()]
        except OSError:
            return None
        return found[0] if len(found) == 1 else None

    def whole(self, revision: str, load_format: str | None, *, doubtful: bool = False) -> Path | None:
        """The folder of a revision, if every file that was noted for this form of the weights is there; else None. Any form will do for a
        load without weights, as each comes with the small files. `doubtful`: also one whose note may lack weights of parts."""
        note = self._note(revision, load_format)
        doubtful = doubtful or load_format == WITHOUT_WEIGHTS
        notes = note.parent.glob(f"{_safe(revision)}.*json") if load_format == WITHOUT_WEIGHTS else (note,)
        here = any(self._has(revision, one, doubtful=doubtful) for one in sorted(notes))
        return self.folder(revision) if here else None

    def _has(self, revision: str, note: Path, *, doubtful: bool) -> bool:
        try:
            body = json.loads(note.read_text(encoding="utf-8"))
            noted = body["files"]
            if not (doubtful or body.get(PARTS) or not _without_weights(noted)):
                return False
            return all((self.folder(revision) / path).stat().st_size == size for path, size in noted.items())
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return False

    def jobs(self, listing: Listing) -> list[Job]:
        return [Job(file, self.folder(listing.revision) / file.path) for file in listing.files]

    def link(self, listing: Listing) -> Path:
        """Makes the folder of a listing whose files are all there, and returns it."""
        return self.folder(listing.revision)

    def keep(self, asked: str | None, listing: Listing, load_format: str | None) -> None:
        """Notes that a listing is there, so that it is not asked for again."""
        files = {file.path: file.size for file in listing.files}
        note = {"revision": listing.revision, PARTS: True, "files": files}
        _write_whole(self._note(listing.revision, load_format), json.dumps(note, sort_keys=True))
        if asked != listing.revision:
            _write_whole(self._reference(asked), listing.revision)

    def _note(self, revision: str, load_format: str | None) -> Path:
        form = "" if load_format in (None, "auto") else f".{_safe(str(load_format))}"
        return self.root / OWN / f"{_safe(revision)}{form}.json"

    def _reference(self, asked: str | None) -> Path:
        return self.root / "refs" / (_unique_name(asked, asked) if asked else "main")


class HubStore(Store):
    """`models--ORG--NAME` below the hub's cache: bytes by their sum, names as links to them, branches as files with a commit."""

    def __init__(self, cache: Path, repository: str) -> None:
        super().__init__(cache / ("models--" + repository.replace("/", "--")))

    def revision_of(self, asked: str | None) -> str | None:
        if asked is not None and COMMIT.match(asked):
            return asked
        return super().revision_of(asked)

    def jobs(self, listing: Listing) -> list[Job]:
        """One download for each sum, as repositories hold the same bytes under several names."""
        by_blob = {self._blob(listing.revision, file): file for file in listing.files}
        return [Job(file, blob) for blob, file in by_blob.items()]

    def keep(self, asked: str | None, listing: Listing, load_format: str | None) -> None:
        super().keep(asked, listing, load_format)
        main = self._reference(None)
        if not main.exists():  # what is asked for without a revision is this one, offline
            _write_whole(main, listing.revision)

    def _blob(self, revision: str, file: File) -> Path:
        if file.digest is None:
            return self.folder(revision) / file.path
        return self.root / "blobs" / file.digest.value

    def link(self, listing: Listing) -> Path:
        for file in listing.files:
            blob, name = self._blob(listing.revision, file), self.folder(listing.revision) / file.path
            if blob == name:
                continue
            name.parent.mkdir(parents=True, exist_ok=True)
            target = os.path.relpath(blob, name.parent)
            with contextlib.suppress(OSError):
                if os.readlink(name) == target:  # noqa: PTH115 - Path had it later
                    continue
            beside = name.with_name(f"{name.name}.{uuid.uuid4().hex}.link")
            beside.symlink_to(target)
            beside.replace(name)
        return self.folder(listing.revision)

    def _reference(self, asked: str | None) -> Path:
        return self.root / "refs" / (asked or "main")


def folder_store(base: Path, scheme: str, location: str) -> Store:
    """The store of a model below the folder for weights. Two sources never share one."""
    place = location.rstrip("/")
    return Store(base / scheme / _unique_name(place.replace("/", "--"), place))


def _without_weights(paths: Iterable[str]) -> set[str]:
    """Folders of a model that have a config of their own, and no weights."""
    parts = {path.rpartition("/")[0] for path in paths if path.rpartition("/")[2] in CONFIGS}
    return parts - {path.rpartition("/")[0] for path in paths if path.lower().endswith(WEIGHTS)} - {""}


def _safe(text: str) -> str:
    return _UNSAFE.sub("_", text)


def _unique_name(name: str, of: str) -> str:
    """A folder's name that people can read, with a digest behind it, so that no two names become the same when they are shortened."""
    return f"{_safe(name)[:MOST_NAME]}-{hashlib.sha256(of.encode()).hexdigest()[:12]}"


def _write_whole(file: Path, text: str) -> None:
    """Writes a file so that others see all of it or nothing."""
    file.parent.mkdir(parents=True, exist_ok=True)
    # Each supervisor is process 1, so that a process's number would tell no two of them apart.
    beside = file.with_name(f"{file.name}.{uuid.uuid4().hex}.new")
    beside.write_text(text, encoding="utf-8")
    beside.replace(file)
