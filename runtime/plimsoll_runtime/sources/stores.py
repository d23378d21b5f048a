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
from pathlib import Path

from plimsoll_runtime.sources.download import Job
from plimsoll_runtime.sources.hub import COMMIT
from plimsoll_runtime.sources.listing import File, Listing

OWN = ".plimsoll"
MOST_NAME = 100
WITHOUT_WEIGHTS = "dummy"
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")


class Store:
    """Of one model, for all its revisions."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.lock = root / OWN / "lock"

    def folder(self, revision: str) -> Path:
        return self.root / "snapshots" / revision

    def revision_of(self, asked: str | None) -> str | None:
        """What it was the first time that it was asked for."""
        try:
            return self._reference(asked).read_text(encoding="utf-8").strip() or None
        except OSError:
            return None

    def whole(self, revision: str, load_format: str | None) -> Path | None:
        """Its folder, where all that was noted of this form is there. Each form has the small files, which are all that some want."""
        note = self._note(revision, load_format)
        notes = note.parent.glob(f"{_safe(revision)}.*json") if load_format == WITHOUT_WEIGHTS else (note,)
        return self.folder(revision) if any(self._has(revision, one) for one in sorted(notes)) else None

    def _has(self, revision: str, note: Path) -> bool:
        try:
            noted = json.loads(note.read_text(encoding="utf-8"))["files"]
            return all((self.folder(revision) / path).stat().st_size == size for path, size in noted.items())
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return False

    def jobs(self, listing: Listing) -> list[Job]:
        return [Job(file, self.folder(listing.revision) / file.path) for file in listing.files]

    def link(self, listing: Listing) -> Path:
        """After all files of this form are there."""
        return self.folder(listing.revision)

    def keep(self, asked: str | None, listing: Listing, load_format: str | None) -> None:
        """It is not asked for again."""
        note = {"revision": listing.revision, "files": {file.path: file.size for file in listing.files}}
        _put(self._note(listing.revision, load_format), json.dumps(note, sort_keys=True))
        if asked != listing.revision:
            _put(self._reference(asked), listing.revision)

    def _note(self, revision: str, load_format: str | None) -> Path:
        form = "" if load_format in (None, "auto") else f".{_safe(str(load_format))}"
        return self.root / OWN / f"{_safe(revision)}{form}.json"

    def _reference(self, asked: str | None) -> Path:
        return self.root / "refs" / (_alone(asked, asked) if asked else "main")


class HubStore(Store):
    """`models--ORG--NAME` below the hub's cache: bytes by their sum, names as links to them, branches as files with a commit."""

    def __init__(self, cache: Path, repository: str) -> None:
        super().__init__(cache / ("models--" + repository.replace("/", "--")))

    def revision_of(self, asked: str | None) -> str | None:
        if asked is not None and COMMIT.match(asked):
            return asked
        return super().revision_of(asked)

    def jobs(self, listing: Listing) -> list[Job]:
        """One for each sum: repositories hold the same bytes under two names."""
        by_blob = {self._blob(listing.revision, file): file for file in listing.files}
        return [Job(file, blob) for blob, file in by_blob.items()]

    def keep(self, asked: str | None, listing: Listing, load_format: str | None) -> None:
        super().keep(asked, listing, load_format)
        main = self._reference(None)
        if not main.exists():  # what is asked for without a revision is this one, offline
            _put(main, listing.revision)

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
    """Below the folder for weights; two places never share one."""
    place = location.rstrip("/")
    return Store(base / scheme / _alone(place.replace("/", "--"), place))


def _safe(text: str) -> str:
    return _UNSAFE.sub("_", text)


def _alone(name: str, of: str) -> str:
    """For people, and with a sum for what names are shortened by: no two share it."""
    return f"{_safe(name)[:MOST_NAME]}-{hashlib.sha256(of.encode()).hexdigest()[:12]}"


def _put(file: Path, text: str) -> None:
    """All of it or nothing."""
    file.parent.mkdir(parents=True, exist_ok=True)
    # Each supervisor is process 1, so that a process's number would tell no two of them apart.
    beside = file.with_name(f"{file.name}.{uuid.uuid4().hex}.new")
    beside.write_text(text, encoding="utf-8")
    beside.replace(file)
