"""Fetches models before the engine starts, and tells the engine where they are.

A repository of the hub is put where the engine's own client looks for it, so the engine's arguments stay as they are and it need not ask the
hub. For any other source the arguments are changed to name the folder.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from plimsoll_runtime.address import has, value_of
from plimsoll_runtime.complete import incomplete
from plimsoll_runtime.failure import Failure
from plimsoll_runtime.fetching import WINDOW_SECONDS, Progress, cache_of, model_of_words
from plimsoll_runtime.naming import named, renamed
from plimsoll_runtime.said import Said
from plimsoll_runtime.sources.fetch import Fetched, fetch, location_of, scheme_of, store_of
from plimsoll_runtime.sources.stores import WITHOUT_WEIGHTS
from plimsoll_runtime.sources.trouble import FetchFailed
from plimsoll_runtime.words import tell

OFFLINE = "HF_HUB_OFFLINE"
MODELSCOPE = "VLLM_USE_MODELSCOPE"
_HUBS = ("hf", "modelscope")
_MORE_TO_COME = ("--trust-remote-code", "--enable-lora", "--tokenizer-revision")
"""With these arguments the engine may later fetch from repositories that are not named here."""
_NO_MODELS = ("auto", "vllm")
"""Values of --generation-config that name no model."""


class Wish(NamedTuple):
    source: str
    revision: str | None


class Words(NamedTuple):
    """The engine's arguments and variables."""

    argv: tuple[str, ...]
    environment: Mapping[str, str]


def wish_of(text: str) -> Wish:
    """Reads SOURCE, or SOURCE#REVISION."""
    source, _, revision = text.partition("#")
    return Wish(source, revision or None)


def bring(wishes: Sequence[Wish], words: Words, said: Said, stopped: Callable[[], bool]) -> Words:
    """Fetches the models, and returns the engine's arguments and variables for them. Raises FetchFailed, or Stopped."""
    here, asks = [], not _stays(wishes, words.argv)
    for wish in wishes:
        found = _bring(wish, words, said, stopped, asks=asks)
        if found is not None:
            said.brought(wish.source, found.revision)
            words = words._replace(argv=_pointed(words, wish, found))
            here.append(wish)
    said.fetches(None)
    return words._replace(environment=_told_to_stay(here, words)) if here else words


def missing(argv: Sequence[str]) -> Failure | None:
    """What is missing of a model that is in a folder."""
    model = model_of_words(argv)
    if model is None or not model.startswith("/"):
        return None
    return incomplete(Path(model), value_of(argv, "--load-format"))


def _bring(
    wish: Wish, words: Words, said: Said, stopped: Callable[[], bool], *, asks: bool
) -> Fetched | None:
    """Fetches a model; None where that is left to the engine. `asks`: the engine will ask the hub too."""
    scheme = scheme_of(wish.source)
    cache = cache_of(words.argv, words.environment)
    into = cache if scheme == "hf" else cache.parent
    if scheme in _HUBS and _is_true(words.environment.get(OFFLINE)):
        return _there(wish, into)
    load_format = _format(words.argv, _names(wish))
    teller = _Teller(said, stopped)
    found = fetch(
        wish.source,
        wish.revision,
        into,
        teller,
        words.environment,
        load_format=load_format,
        asks=asks and scheme == "hf",
        judge=lambda folder: incomplete(folder, load_format),
    )
    tell(f"{wish.source} at {found.revision} is in {found.path}")
    return found


def _names(wish: Wish) -> set[str]:
    """How the engine's arguments may name the model."""
    return {wish.source, location_of(wish.source)} if scheme_of(wish.source) in _HUBS else {wish.source}


def _pointed(words: Words, wish: Wish, found: Fetched) -> tuple[str, ...]:
    argv, names, path = words.argv, _names(wish), str(found.path)
    if scheme_of(wish.source) == "hf":
        store = store_of(wish.source, cache_of(argv, words.environment))
        said = wish.revision is not None or store.revision_of(None) is not None
        return argv if said or model_of_words(argv) not in names else (*argv, "--revision", found.revision)
    return renamed(argv, lambda name: path if name in names else name)


def _format(argv: Sequence[str], names: set[str]) -> str | None:
    """The format in which the engine loads the weights. For a tokenizer none are wanted."""
    if model_of_words(argv) in names:
        return value_of(argv, "--load-format")
    return WITHOUT_WEIGHTS if value_of(argv, "--tokenizer") in names else None


def _there(wish: Wish, into: Path) -> Fetched | None:
    """A model that is here already. What the hub's own client fetched counts too, but not what ModelScope's did, as only that client knows
    where it is."""
    store = store_of(wish.source, into)
    revision = store.revision_of(wish.revision)
    if revision is None and wish.revision is None:
        # Whoever asked for a commit left no word of which one stands for all.
        revision = store.only()
    if revision is not None and store.folder(revision).is_dir():
        return Fetched(store.folder(revision), revision)
    if scheme_of(wish.source) == "modelscope":
        tell(f"{wish.source} is not in {store.root}: the engine looks for it")
        return None
    asked = f" at {wish.revision}" if wish.revision else ""
    message = f"{wish.source}{asked} is not in {into}, and no hub may be asked ({OFFLINE})"
    remedy = (
        "put the model there first, or let pods reach a hub or a mirror (network.offline, spec.storage.weights); "
        f"where the image itself says so, {OFFLINE}=0 in spec.engine.env"
    )
    raise FetchFailed(Failure("Download", message, remedy))


def _told_to_stay(wishes: Sequence[Wish], words: Words) -> Mapping[str, str]:
    """Variables that keep the engine from asking a hub, if everything that it needs is here."""
    more: dict[str, str] = {}
    if not _are_all(wishes, words.argv):
        return words.environment
    schemes = {scheme_of(wish.source) for wish in wishes}
    if "modelscope" in schemes and MODELSCOPE in words.environment:
        more[MODELSCOPE] = "False"
    if "hf" in schemes and _stays(wishes, words.argv):
        more[OFFLINE] = "1"
    return {**words.environment, **more}


def _stays(wishes: Sequence[Wish], argv: Sequence[str]) -> bool:
    """Whether the engine needs nothing more of the hub."""
    return _are_all(wishes, argv) and not any(has(argv, flag) for flag in _MORE_TO_COME)


def _are_all(wishes: Sequence[Wish], argv: Sequence[str]) -> bool:
    """Whether these are all models that the arguments name: they may name further repositories, or another revision, which is for the
    tokenizer too."""
    here = {(location_of(wish.source), wish.revision) for wish in wishes}
    names = {name for name, _ in here}
    revision, revised = value_of(argv, "--revision"), (model_of_words(argv), value_of(argv, "--tokenizer"))
    return all(
        (name, revision) in here if name in revised else name in names
        for name in named(argv)
        if scheme_of(name) == "hf" and name not in _NO_MODELS
    )


def _is_true(value: str | None) -> bool:
    return (value or "").upper() in ("1", "ON", "YES", "TRUE")


class _Teller:
    """Computes the rate of a fetch from its progress."""

    def __init__(self, said: Said, stopped: Callable[[], bool]) -> None:
        self._said, self.stopped = said, stopped
        self._looks: deque[tuple[float, int]] = deque()

    def progress(self, done: int, of: int) -> None:
        now = time.monotonic()
        self._looks.append((now, done))
        while now - self._looks[0][0] > WINDOW_SECONDS and len(self._looks) > 2:
            self._looks.popleft()
        since, earlier = self._looks[0]
        rate = round(max(0, done - earlier) / (now - since)) if now > since else None
        self._said.fetches(Progress(done, of, rate))

    def says(self, text: str) -> None:
        tell(text)

    def waits(self, text: str | None) -> None:
        if text is not None:
            tell(text)
        self._said.waits(text)
