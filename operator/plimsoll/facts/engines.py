"""What an engine *is*, version by version: its flags, its defaults by GPU, how it counts memory, what its metrics are called.

One data file a version says only what that version changed; a version without a file is taken as the nearest lower one,
and the facts then say so in words that reach the user. What a plan tells the engine is `engines/`'s work, constants
that were fitted to measurements are the ledger's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Literal, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from plimsoll.facts.engine_flags import Flag, FlagKind, FlagTable
from plimsoll.facts.engine_versions import Version, parse_version, release
from plimsoll.facts.gpus import GIB

T = TypeVar("T")
_DATA = files("plimsoll.facts") / "data" / "engines"

KvTokensLine = Literal["pool", "request"]


class UnknownEngineError(ValueError):
    """An engine name that no data file describes."""


class EngineNotPlannedError(ValueError):
    """An engine whose words are known but whose memory is not, so that nothing can be planned for it."""


class _Data(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel)


class BatchRule(_Data):
    """Defaults of the scheduler on the GPUs that the rule covers; the first rule that covers a GPU counts."""

    batched_tokens: int
    offline_batched_tokens: int
    sequences: int
    memory_at_least_gib: int = 0
    excluded: tuple[str, ...] = Field(default=(), alias="except")
    """GPU architectures, and `unified` for memory shared with the host."""
    only: tuple[str, ...] = ()
    per_rank: bool = False
    """True where the defaults are multiplied by the number of ranks."""

    def covers(self, memory_bytes: int, classes: frozenset[str]) -> bool:
        if self.only and not classes & set(self.only):
            return False
        return memory_bytes >= self.memory_at_least_gib * GIB and not classes & set(self.excluded)


class Tunable(_Data):
    """One lever of a running deployment; every one of them costs a restart of the pod."""

    name: str
    flag: str
    unit: str
    raises: str
    """What goes up when the lever goes up."""


class StaleFlag(_Data):
    """A flag that older texts still carry."""

    flag: str
    words: int
    """How many words follow it."""
    instead: str


class EngineProfile(_Data):
    """What holds for every version of an engine: where it listens and what it calls the concepts all engines share."""

    title: str
    plans: bool
    """Whether memory and layouts can be planned for it; for the others only the words are known."""
    why_not: str | None = None
    image: str | None = None
    command: tuple[str, ...]
    port: int
    host: str
    """What it listens on unless told otherwise; 127.0.0.1 is not reachable from outside the pod."""
    metrics_path: str
    health_path: str
    ready_path: str
    drain: str
    enable_metrics: str | None = None
    """The argument that turns metrics on, where they are off by default."""
    releases: Mapping[str, date]
    vocabulary: Mapping[str, str | None]
    """Concept to flag; None where the engine has no such thing."""
    tunables: tuple[Tunable, ...] = ()
    metrics: Mapping[str, tuple[str, ...]] = Field(default_factory=dict)
    """Logical name to exported names, for engines whose versions are not told apart."""
    owned: tuple[str, ...] = ()
    """Flags that Plimsoll writes itself; they have no place among a user's extra arguments."""
    stale_flags: tuple[StaleFlag, ...] = ()
    stale_environment: Mapping[str, str] = Field(default_factory=dict)
    stale_values: Mapping[str, Mapping[str, str]] = Field(default_factory=dict)
    """Flag and value to what to use instead, where the version's own list does not hold the value."""


class _Band(_Data):
    extends: str | None = None
    utilization_default: str | None = None
    kv_tokens_line: KvTokensLine | None = None
    graphs_in_budget: bool | None = None
    whole_prompts: bool | None = None
    chunks_above: int | None = None
    prefix_caching_default: bool | None = None
    default_block_size: int | None = None
    batch_rules: tuple[BatchRule, ...] = ()
    kv_dtypes: tuple[str, ...] = ()
    quantizations: tuple[str, ...] = ()
    metrics: Mapping[str, tuple[str, ...]] = Field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineFacts:
    name: str
    profile: EngineProfile
    version: str
    """The version that was asked for, or the newest one known."""
    facts_version: str
    """The version whose data file these facts are."""
    names_release: bool
    """Whether the version that was asked for is one; else `version` is the text as it was given."""
    approximated_from: str | None
    """Why these facts are another version's, as a sentence for the user; None where the version itself is known."""
    flags: FlagTable
    flags_version: str | None
    """The version whose parser listed the flags: the nearest one below with a list, else the oldest list."""
    environment: frozenset[str]
    """Variables that this version reads; it warns of others that begin like them."""
    utilization_default: float
    kv_tokens_line: KvTokensLine
    """What the log's KV tokens count: the whole pool, or what requests of the maximal length can hold (concurrency
    times length)."""
    graphs_in_budget: bool
    """Whether the estimate of CUDA graphs is taken out of the utilization's share before the KV pool is."""
    whole_prompts: bool
    """Whether prompts are processed (and profiled) whole, up to the maximal length, instead of in chunks."""
    chunks_above: int | None
    """Where prompts are whole: the maximal length above which text models are cut into chunks all the same."""
    prefix_caching_default: bool
    default_block_size: int
    batch_rules: tuple[BatchRule, ...]
    kv_dtypes: tuple[str, ...]
    quantizations: tuple[str, ...]
    tunables: tuple[Tunable, ...]
    metrics: Mapping[str, tuple[str, ...]]
    """Logical name to the names under which this version exports it, the current one first; absent: not exported."""

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
        """Tokens a step and sequences that the engine takes when it is told neither."""
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


@cache
def engine_names() -> tuple[str, ...]:
    """Every engine with a data file, sorted."""
    return tuple(sorted(stem for stem, _ in _stems() if not re.search(r"-\d", stem)))


@cache
def engine_profile(name: str) -> EngineProfile:
    """What is known of an engine whatever its version, planned for or not."""
    if name not in engine_names():
        raise UnknownEngineError(f"engine {name!r} is not known; known are {', '.join(engine_names())}")
    return EngineProfile.model_validate(_yaml(f"{name}.yaml"))


def listed_versions(name: str) -> tuple[str, ...]:
    """Versions whose flags are listed one by one, the oldest first."""
    return tuple(str(version) for version in _versions(name, "flags.json"))


@cache
def engine_facts(name: str = "vllm", version: str | None = None) -> EngineFacts:
    """What is known of one engine at one version; without a version, of the newest one known."""
    profile = engine_profile(name)
    if not profile.plans:
        raise EngineNotPlannedError(f"nothing can be planned for {profile.title}: {profile.why_not}")
    known = _versions(name, "yaml")
    wanted = parse_version(version, _releases(name)) if version else known[-1]
    taken = max((v for v in known if wanted is not None and v <= wanted), default=None)
    note = _note(profile.title, version, wanted, taken, known)
    taken = taken or (known[-1] if wanted is None else known[0])
    band = _band(name, str(taken))
    flags_version = _flags_version(name, taken)
    flags = _flags(name, str(flags_version)) if flags_version else FlagTable({})
    return EngineFacts(
        name=name,
        profile=profile,
        version=str(wanted) if wanted is not None else version or str(taken),
        facts_version=str(taken),
        names_release=wanted is not None,
        approximated_from=note,
        flags=flags,
        flags_version=str(flags_version) if flags_version else None,
        environment=_environment(name, str(flags_version)) if flags_version else frozenset(),
        utilization_default=float(_said(band.utilization_default, name, "utilizationDefault")),
        kv_tokens_line=_said(band.kv_tokens_line, name, "kvTokensLine"),
        graphs_in_budget=_said(band.graphs_in_budget, name, "graphsInBudget"),
        whole_prompts=bool(band.whole_prompts),
        chunks_above=band.chunks_above,
        prefix_caching_default=bool(band.prefix_caching_default),
        default_block_size=_said(band.default_block_size, name, "defaultBlockSize"),
        batch_rules=band.batch_rules,
        kv_dtypes=_values_of(flags, "--kv-cache-dtype", taken, flags_version) or band.kv_dtypes,
        quantizations=_values_of(flags, "--quantization", taken, flags_version) or band.quantizations,
        tunables=tuple(lever for lever in profile.tunables if lever.flag in flags),
        metrics=MappingProxyType({key: names for key, names in sorted(band.metrics.items()) if names}),
    )


def _note(
    title: str, text: str | None, wanted: Version | None, taken: Version | None, known: tuple[Version, ...]
) -> str | None:
    if text is None or (wanted is not None and wanted == taken):
        return None
    if wanted is None:
        return f"{text!r} names no release of {title} that is known; the facts of the newest known one, {known[-1]}, are used"
    if taken is None:
        return f"{title} {wanted} is older than every version that is known; the facts of the oldest, {known[0]}, are used"
    return f"there are no facts of {title} {wanted} itself; those of {taken}, the nearest lower version, are used"


def _values_of(flags: FlagTable, name: str, taken: Version, listed: Version | None) -> tuple[str, ...]:
    """What the parser's list says a flag may be, where the list is not a newer version's."""
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
    return tuple(
        sorted(
            release(stem.removeprefix(f"{name}-"))
            for stem, kind in _stems()
            if kind == suffix and _belongs(stem, name)
        )
    )


def _belongs(stem: str, name: str) -> bool:
    return stem.startswith(f"{name}-") and stem.removeprefix(f"{name}-")[:1].isdigit()


def _flags_version(name: str, taken: Version) -> Version | None:
    listed = _versions(name, "flags.json")
    return max((v for v in listed if v <= taken), default=listed[0] if listed else None)


@cache
def _releases(name: str) -> Mapping[Version, date]:
    return {release(text): day for text, day in engine_profile(name).releases.items()}


@cache
def _band(name: str, version: str) -> _Band:
    """A version's facts with everything it extends filled in; metrics are merged by logical name."""
    own = _Band.model_validate(_yaml(f"{name}-{version}.yaml"))
    if own.extends is None:
        return own
    below = _band(name, own.extends)
    stated = {key: getattr(own, key) for key in own.model_fields_set}
    stated["metrics"] = {**below.metrics, **own.metrics}
    return below.model_copy(update=stated)


@cache
def _flags(name: str, version: str) -> FlagTable:
    listed: dict[str, dict[str, Any]] = json.loads(
        (_DATA / f"{name}-{version}.flags.json").read_text("utf-8")
    )
    return FlagTable(dict(_each_flag(listed)))


@cache
def _environment(name: str, version: str) -> frozenset[str]:
    return frozenset(json.loads((_DATA / f"{name}-{version}.environment.json").read_text("utf-8")))


def _each_flag(listed: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, Flag]]:
    for spelling, entry in listed.items():
        kind = str(entry["type"])
        yield (
            spelling,
            Flag(
                name=spelling,
                kind=FlagKind(kind.removesuffix("?")),
                nullable=kind.endswith("?"),
                default=entry.get("default"),
                nargs=entry.get("nargs"),
                also=tuple(entry.get("also", ())),
                choices=tuple(map(str, entry.get("choices", ()))),
                values=tuple(map(str, entry.get("values", ()))),
                deprecated=bool(entry.get("deprecated", False)),
            ),
        )


def _yaml(file: str) -> Any:
    return yaml.safe_load((_DATA / file).read_text("utf-8")) or {}
