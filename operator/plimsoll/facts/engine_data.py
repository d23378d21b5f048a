"""The form of the data files about engines, and of the file that describes an engine's own image.

`engines` reads these files, and finds the one that holds for a version.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from plimsoll.facts.engine_flags import Flag, FlagKind, FlagTable
from plimsoll.facts.gpus import GIB

KvTokensLine = Literal["pool", "request"]


class _Data(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel)


def _kind(text: str) -> str:
    FlagKind(text.removesuffix("?"))
    return text


class BatchRule(_Data):
    """Defaults of the scheduler on the GPUs that the rule covers. Of several rules the first that covers a GPU counts."""

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


class FlagEntry(_Data):
    """A flag as the engine's parser registers it."""

    type: Annotated[str, AfterValidator(_kind)]
    """A FlagKind, with a question mark behind it where null is a value too."""
    default: Any = None
    nargs: str | int | None = None
    also: tuple[str, ...] = ()
    choices: tuple[str | int | float | bool, ...] = ()
    values: tuple[str | int | float | bool, ...] = ()
    deprecated: bool = False


class StaleFlag(_Data):
    """A flag that no version has any more, but that older commands still contain."""

    flag: str
    words: int
    """How many words follow it."""
    instead: str


class EngineProfile(_Data):
    """What holds for every version of an engine."""

    title: str
    plans: bool
    """Whether memory and layouts can be planned for it; of other engines only the flags are known."""
    why_not: str | None = None
    image: str | None = None
    metrics_path: str
    releases: Mapping[str, date]
    metrics: Mapping[str, tuple[str, ...]] = Field(default_factory=dict)
    """By logical name: the names under which it is exported, for engines whose versions are not distinguished."""
    owned: tuple[str, ...] = ()
    """Flags that Plimsoll writes itself, so that a user's extra arguments must not contain them."""
    stale_flags: tuple[StaleFlag, ...] = ()
    stale_environment: Mapping[str, str] = Field(default_factory=dict)
    stale_values: Mapping[str, Mapping[str, str]] = Field(default_factory=dict)
    """By flag and value: what to use instead, where the version's own list lacks the value."""


class Band(_Data):
    """What a version changed against the one that it extends."""

    extends: str | None = None
    utilization_default: str | None = None
    kv_tokens_line: KvTokensLine | None = None
    graphs_in_budget: bool | None = None
    whole_prompts: bool | None = None
    chunks_above: int | None = None
    steps_ahead: bool | None = None
    prefix_caching_default: bool | None = None
    default_block_size: int | None = None
    batch_rules: tuple[BatchRule, ...] = ()
    kv_dtypes: tuple[str, ...] = ()
    quantizations: tuple[str, ...] = ()
    metrics: Mapping[str, tuple[str, ...]] = Field(default_factory=dict)


class EngineFile(Band):
    """All that an engine's own image tells of a version, in one file. What no image tells is as in the version that it extends."""

    engine: str
    version: str
    flags: Mapping[str, FlagEntry]
    environment: tuple[str, ...]


def flag_table(listed: Mapping[str, FlagEntry]) -> FlagTable:
    return FlagTable(dict(_each_flag(listed)))


def _each_flag(listed: Mapping[str, FlagEntry]) -> Iterator[tuple[str, Flag]]:
    for spelling, entry in listed.items():
        yield (
            spelling,
            Flag(
                name=spelling,
                kind=FlagKind(entry.type.removesuffix("?")),
                nullable=entry.type.endswith("?"),
                default=entry.default,
                nargs=None if entry.nargs is None else str(entry.nargs),
                also=entry.also,
                choices=tuple(map(str, entry.choices)),
                values=tuple(map(str, entry.values)),
                deprecated=entry.deprecated,
            ),
        )
