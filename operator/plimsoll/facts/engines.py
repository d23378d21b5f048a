"""What is known of an engine, version by version: its flags, its defaults by GPU, how it counts memory, how its metrics are called.

Each version's data file has only what that version changed. For a version without a file those of the nearest lower one are used, and
the facts then say so, for the user to read. What a plan tells the engine is in `engines/`; constants that were fitted to measurements
are in `planning`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date
from functools import cache, lru_cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Final, TypeVar

from plimsoll.api.same import Same
from plimsoll.facts.engine_data import (
    Band,
    BatchRule,
    EngineFile,
    EngineProfile,
    FlagEntry,
    KvTokensLine,
    StaleFlag,
    flag_table,
)
from plimsoll.facts.engine_flags import FlagTable
from plimsoll.facts.engine_versions import Version, parse_version, release
from plimsoll.facts.own_data import own_data

T = TypeVar("T")
WATERMARK: Final = "--watermark"
OWN_IMAGES: Final = 1024
"""For how many images that owners bring the facts are remembered."""
_DATA = files("plimsoll.facts") / "data" / "engines"


class UnknownEngineError(ValueError):
    """An engine name that no data file describes."""


class EngineNotPlannedError(ValueError):
    """An engine whose flags are known but whose use of memory is not, so that nothing can be planned for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineFacts:
    """What is known of one engine at one version."""

    name: str
    profile: EngineProfile
    version: str
    """The version that was asked for, or the newest one known."""
    facts_version: str
    """The version from whose data file these facts are."""
    release: Version | None
    """The version that was asked for, in a form that can be compared; None where its text, which `version` then is, names no release."""
    approximated_from: str | None
    """Why these facts are another version's, as a sentence for the user; None where the version itself is known."""
    flags: FlagTable
    flags_version: str | None
    """The version whose parser listed the flags: the nearest one below with a list, else the oldest list."""
    environment: frozenset[str]
    """Environment variables that this version reads; it warns of others with the same prefix."""
    utilization_default: float
    kv_tokens_line: KvTokensLine
    """What the log counts as cache tokens: those of the whole pool, or those of as many requests of the maximal length as it holds."""
    graphs_in_budget: bool
    """Whether an estimate for CUDA graphs is taken out of the engine's share of memory before the cache is."""
    whole_prompts: bool
    """Whether prompts are processed (and profiled) whole, up to the maximal length, instead of in chunks."""
    chunks_above: int | None
    """Where prompts are whole: the maximal length above which text models are cut into chunks all the same."""
    steps_ahead: bool
    """Whether a step is chosen while the one before it still runs, so that a request which comes meanwhile waits for both."""
    prefix_caching_default: bool
    default_block_size: int
    batch_rules: tuple[BatchRule, ...]
    kv_dtypes: tuple[str, ...]
    quantizations: tuple[str, ...]
    metrics: Mapping[str, tuple[str, ...]]
    """By logical name: the names under which this version exports it, the current one first. What it does not export is absent."""
    image: str = ""
    """The image that its owner brings; empty for the one that everybody gets by version. What starts of one image teach is not true of
    another."""

    @property
    def has_watermark(self) -> bool:
        """Whether it has a flag to keep cache blocks free from new requests."""
        return WATERMARK in self.flags

    def batch_defaults(
        self,
        memory_bytes: int,
        gpu_architecture: str,
        *,
        unified_memory: bool = False,
        ranks: int = 1,
        offline: bool = False,
        max_model_len: int | None = None,
    ) -> tuple[int, int]:
        """The tokens of a step and the sequences that the engine takes when it is told neither."""
        classes = frozenset({gpu_architecture, "unified"} if unified_memory else {gpu_architecture})
        rule = next(rule for rule in self.batch_rules if rule.covers(memory_bytes, classes))
        factor = ranks if rule.per_rank else 1
        tokens = factor * (rule.offline_batched_tokens if offline else rule.batched_tokens)
        sequences = factor * rule.sequences
        if max_model_len is not None:
            if self.whole_prompts and not (self.chunks_above and max_model_len > self.chunks_above):
                tokens = max(tokens, max_model_len)
            tokens = min(tokens, sequences * max_model_len)
        return tokens, min(sequences, tokens)

    def has(self, flag: str) -> bool:
        return flag in self.flags


_handed: dict[tuple[str, str], EngineFile] = {}
"""By engine and version: files that an admin handed in, which take the place of bundled ones of the same version."""


def hand_in(files: Iterable[EngineFile]) -> None:
    """Makes these files known, and no others, beside the bundled ones. It changes what the whole process knows, so it is called at its
    start."""
    found = {(file.engine, str(release(file.version))): file for file in files}
    if found != _handed:
        _handed.clear()
        _handed.update(found)
        for cached in (engine_facts, _band, _flags, _environment):
            cached.cache_clear()


@cache
def engine_names() -> tuple[str, ...]:
    """Every engine with a data file, sorted."""
    return tuple(sorted(stem for stem, _ in _stems() if not re.search(r"-\d", stem)))


@cache
def engine_profile(name: str) -> EngineProfile:
    """What is known of an engine whatever its version, whether it can be planned for or not."""
    if name not in engine_names():
        raise UnknownEngineError(f"engine {name!r} is not known; known are {', '.join(engine_names())}")
    return EngineProfile.model_validate(_yaml(f"{name}.yaml"))


def listed_versions(name: str) -> tuple[str, ...]:
    """Versions whose flags are listed one by one, the oldest first."""
    return tuple(str(version) for version in _versions(name, "flags.json"))


@cache
def engine_facts(name: str = "vllm", version: str | None = None) -> EngineFacts:
    """What is known of one engine at one version; without a version, of the newest one that this release knows."""
    profile = engine_profile(name)
    if not profile.plans:
        raise EngineNotPlannedError(f"nothing can be planned for {profile.title}: {profile.why_not}")
    known = _versions(name, "yaml")
    wanted = parse_version(version, _releases(name)) if version else _bundled_versions(name)[-1]
    taken = max((v for v in known if wanted is not None and v <= wanted), default=None)
    note = _note(profile.title, version, wanted, taken, known) or _memory_note(name, profile.title, taken)
    taken = taken or (known[-1] if wanted is None else known[0])
    band = _band(name, str(taken))
    flags_version = _flags_version(name, taken)
    flags = _flags(name, str(flags_version)) if flags_version else FlagTable({})
    return EngineFacts(
        name=name,
        profile=profile,
        version=str(wanted) if wanted is not None else version or str(taken),
        facts_version=str(taken),
        release=wanted,
        approximated_from=note,
        flags=flags,
        flags_version=str(flags_version) if flags_version else None,
        environment=_environment(name, str(flags_version)) if flags_version else frozenset(),
        utilization_default=float(_said(band.utilization_default, name, "utilizationDefault")),
        kv_tokens_line=_said(band.kv_tokens_line, name, "kvTokensLine"),
        graphs_in_budget=_said(band.graphs_in_budget, name, "graphsInBudget"),
        whole_prompts=bool(band.whole_prompts),
        chunks_above=band.chunks_above,
        steps_ahead=bool(band.steps_ahead),
        prefix_caching_default=bool(band.prefix_caching_default),
        default_block_size=_said(band.default_block_size, name, "defaultBlockSize"),
        batch_rules=band.batch_rules,
        kv_dtypes=_values_of(flags, "--kv-cache-dtype", taken, flags_version) or band.kv_dtypes,
        quantizations=_values_of(flags, "--quantization", taken, flags_version) or band.quantizations,
        metrics=MappingProxyType({key: names for key, names in sorted(band.metrics.items()) if names}),
    )


def brought_in(engine: EngineFacts, image: str | None) -> EngineFacts:
    """The same engine in an image that its owner brings. Equal calls return the same object, as results worked out from facts are remembered
    by identity."""
    return _brought_in(Same(engine), image) if image else engine


@lru_cache(OWN_IMAGES)
def _brought_in(engine: Same[EngineFacts], image: str) -> EngineFacts:
    return replace(engine.value, image=image)


def _note(
    title: str, text: str | None, wanted: Version | None, taken: Version | None, known: tuple[Version, ...]
) -> str | None:
    """A sentence that the facts of another version are used; None where those of the version itself are."""
    if text is None or (wanted is not None and wanted == taken):
        return None
    if wanted is None:
        return f"{text!r} names no release of {title} that is known; the facts of the newest known one, {known[-1]}, are used"
    if taken is None:
        return f"{title} {wanted} is older than every version that is known; the facts of the oldest, {known[0]}, are used"
    return f"there are no facts of {title} {wanted} itself; those of {taken}, the nearest lower version, are used"


def _memory_note(name: str, title: str, taken: Version | None) -> str | None:
    """A sentence that memory is counted as in another version, for facts that an image told, which does not tell that; else None."""
    handed = _handed.get((name, str(taken)))
    if handed is None or handed.extends in (None, handed.version):
        return None
    return f"how {title} {taken} counts memory is taken from {handed.extends}; its flags are those that its image told"


def _values_of(flags: FlagTable, name: str, taken: Version, listed: Version | None) -> tuple[str, ...]:
    """The values that a flag may have by the parser's list, unless the list is of a newer version."""
    if listed is None or listed > taken or name not in flags:
        return ()
    return flags[name].values or flags[name].choices


def _said(value: T | None, name: str, key: str) -> T:
    if value is None:
        raise ValueError(f"data/engines/{name}-*.yaml: {key} is stated by no version that the others extend")
    return value


@cache
def _stems() -> tuple[tuple[str, str], ...]:
    """(name, suffix) of every data file: ("vllm-0.20.2", "flags.json")."""
    found = []
    for entry in _DATA.iterdir():
        for suffix in ("flags.json", "environment.json", "yaml"):
            if entry.name.endswith(f".{suffix}"):
                found.append((entry.name.removesuffix(f".{suffix}"), suffix))
                break
    return tuple(sorted(found))


def _versions(name: str, suffix: str) -> tuple[Version, ...]:
    handed = {release(version) for engine, version in _handed if engine == name}
    return tuple(sorted({*_bundled_versions(name, suffix), *handed}))


def _bundled_versions(name: str, suffix: str = "yaml") -> tuple[Version, ...]:
    found = (stem for stem, kind in _stems() if kind == suffix and _belongs(stem, name))
    return tuple(sorted(release(stem.removeprefix(f"{name}-")) for stem in found))


def bundled_versions(name: str) -> tuple[str, ...]:
    """Versions that have a file in this release of Plimsoll, the oldest first."""
    return tuple(map(str, _bundled_versions(name)))


def _belongs(stem: str, name: str) -> bool:
    return stem.startswith(f"{name}-") and stem.removeprefix(f"{name}-")[:1].isdigit()


def _flags_version(name: str, taken: Version) -> Version | None:
    listed = _versions(name, "flags.json")
    return max((v for v in listed if v <= taken), default=listed[0] if listed else None)


@cache
def _releases(name: str) -> Mapping[Version, date]:
    return {release(text): day for text, day in engine_profile(name).releases.items()}


@cache
def _band(name: str, version: str) -> Band:
    """A version's facts, with all that it takes from the versions that it extends."""
    handed = _handed.get((name, version))
    if handed is None:
        return _bundled(name, version)
    own_file = handed.extends in (None, version)
    return _over(_bundled(name, version) if own_file else _band(name, str(handed.extends)), handed)


def _bundled(name: str, version: str) -> Band:
    own = Band.model_validate(_yaml(f"{name}-{version}.yaml"))
    return own if own.extends is None else _over(_bundled(name, own.extends), own)


def _over(below: Band, own: Band) -> Band:
    """What a version states over what it extends. Metrics are merged by logical name."""
    stated = {key: getattr(own, key) for key in own.model_fields_set & Band.model_fields.keys()}
    stated["metrics"] = {**below.metrics, **own.metrics}
    return below.model_copy(update=stated)


@cache
def _flags(name: str, version: str) -> FlagTable:
    handed = _handed.get((name, version))
    if handed is not None:
        return flag_table(handed.flags)
    listed = json.loads((_DATA / f"{name}-{version}.flags.json").read_text("utf-8"))
    return flag_table({flag: FlagEntry.model_validate(entry) for flag, entry in listed.items()})


@cache
def _environment(name: str, version: str) -> frozenset[str]:
    handed = _handed.get((name, version))
    if handed is not None:
        return frozenset(handed.environment)
    return frozenset(json.loads((_DATA / f"{name}-{version}.environment.json").read_text("utf-8")))


def _yaml(file: str) -> Any:
    return own_data("plimsoll.facts", f"data/engines/{file}") or {}


__all__ = [
    "BatchRule",
    "EngineFacts",
    "EngineFile",
    "EngineNotPlannedError",
    "EngineProfile",
    "StaleFlag",
    "UnknownEngineError",
    "bundled_versions",
    "engine_facts",
    "engine_names",
    "engine_profile",
    "hand_in",
    "listed_versions",
]
