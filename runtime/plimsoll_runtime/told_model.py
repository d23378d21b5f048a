"""`facts SOURCE`: says what a model is within a termination message, from a folder of this pod or from where the model is fetched.

Nothing is written but the message. A folder is read as it is; a hub or a store is asked for its small files and the beginnings of
the large ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from plimsoll_runtime.failure import Failure, scrubbed, unforeseen
from plimsoll_runtime.model import ModelUnreadable, model_of, read_model, told
from plimsoll_runtime.sources.remote import remote
from plimsoll_runtime.sources.trouble import FetchFailed
from plimsoll_runtime.words import leave, tell


def leave_facts(source: str, revision: str | None, message: Path, environment: Mapping[str, str]) -> int:
    """The exit code."""
    try:
        text = _facts(source, revision, environment)
    except (ModelUnreadable, FetchFailed) as error:
        return _failed(error.failure, message, environment)
    except Exception as error:  # noqa: BLE001 - whoever waits for this pod is told something
        return _failed(unforeseen(error, f"reading {source}"), message, environment)
    message.write_text(text, encoding="ascii")
    return 0


def _facts(source: str, revision: str | None, environment: Mapping[str, str]) -> str:
    if "://" not in source:
        return told(model_of(Path(source)))
    try:
        files = remote(source, revision, environment)
        return told(read_model(files), files.revision)
    except OSError as error:
        raise ModelUnreadable(f"{source} cannot be read: {error}") from error


def _failed(failure: Failure, message: Path, environment: Mapping[str, str]) -> int:
    said = scrubbed(failure, environment)
    tell(f"{said.word}: {said.message}")
    leave(message, said)
    return 1
