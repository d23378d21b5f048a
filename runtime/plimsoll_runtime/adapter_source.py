"""Fetches adapters by the same clients as models, with a token of their own where there is one, and names their own fields in errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from plimsoll_runtime.adapters import Fetch
from plimsoll_runtime.failure import Failure
from plimsoll_runtime.lora import Wanted
from plimsoll_runtime.sources.fetch import fetch
from plimsoll_runtime.sources.trouble import FetchFailed

TOKEN = "HF_TOKEN_ADAPTERS"  # noqa: S105 - a variable's name
MIB = 1 << 20


class _Told:
    """Passes on the progress of a fetch as one line of text."""

    def __init__(self, says: Callable[[str], None], stopped: Callable[[], bool]) -> None:
        self._says, self.stopped = says, stopped

    def progress(self, done: int, of: int) -> None:
        self._says(f"{done // MIB} of {-(-of // MIB)} MiB")

    def says(self, text: str) -> None:
        self._says(text)

    def waits(self, text: str | None) -> None:
        if text is not None:
            self._says(text)


def fetching(environment: Mapping[str, str], stopped: Callable[[], bool]) -> Fetch:
    own = dict(environment)
    if own.get(TOKEN):
        own["HF_TOKEN"] = own[TOKEN]

    def bring(wanted: Wanted, into: Path, told: Callable[[str], None]) -> Path:
        try:
            return fetch(wanted.source, wanted.revision, into, _Told(told, stopped), own).path
        except FetchFailed as failed:
            raise FetchFailed(of_adapter(failed.failure, wanted)) from failed

    return bring


def of_adapter(failure: Failure, wanted: Wanted) -> Failure:
    """The failure of a model's fetch as that of an adapter: its remedy names the adapter's fields."""
    item, remedy = f"spec.adapters.items[{wanted.name}]", failure.remedy
    for theirs, ours in (
        ("spec.model.tokenSecret", "spec.adapters.tokenSecret"),
        ("spec.model.source", f"{item}.source"),
        ("spec.model.revision", f"{item}.revision"),
    ):
        remedy = remedy.replace(theirs, ours)
    return failure._replace(remedy=remedy)
