"""Writes and reads a file about one version of an engine, made of what the engine's own image tells of itself.

An image tells its flags with their defaults and values, its variables, and the names of its metrics. What only measurements show (how
memory is counted, batch sizes by GPU) is taken from the nearest version that is known. An admin may hand such a file in, or a release
may bundle it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from plimsoll.api.config import OperatorConfig
from plimsoll.api.problems import Problem, SpecError
from plimsoll.facts.engine_data import EngineFile, FlagEntry
from plimsoll.facts.engine_versions import parse_version
from plimsoll.facts.engines import (
    EngineFacts,
    bundled_versions,
    engine_facts,
    engine_names,
    engine_profile,
    hand_in,
)

UTILIZATION = "--gpu-memory-utilization"
BLOCK = "--block-size"


class EngineFileError(ValueError):
    """A file, or what an image told, that cannot be used; the message says why."""


class ToldByImage(BaseModel):
    """What the script that runs in an image prints."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    engine: str
    version: str
    flags: Mapping[str, FlagEntry]
    environment: tuple[str, ...]
    metrics: tuple[str, ...]


def read_told(text: str) -> ToldByImage:
    """Reads what the script printed in an image."""
    try:
        told = ToldByImage.model_validate_json(text)
    except ValidationError as error:
        raise EngineFileError(_first(error)) from error
    _check(told.engine, told.version)
    return told


def describe(told: ToldByImage) -> tuple[EngineFile, tuple[str, ...]]:
    """The file about an image, and notes that a person should read."""
    nearest = engine_facts(told.engine, told.version)
    if nearest.facts_version not in bundled_versions(told.engine):
        raise EngineFileError(f"a file of {told.version} is handed in already; describe it without that")
    stated: dict[str, Any] = {
        "engine": told.engine,
        "version": str(parse_version(told.version)),
        "extends": nearest.facts_version,
        "flags": told.flags,
        "environment": tuple(sorted(told.environment)),
    }
    utilization = told.flags.get(UTILIZATION)
    if utilization is not None and isinstance(utilization.default, int | float):
        stated["utilizationDefault"] = f"{utilization.default:g}"
    block = told.flags.get(BLOCK)
    if block is not None and isinstance(block.default, int):
        stated["defaultBlockSize"] = block.default
    kept, gone = _metrics(nearest, told.metrics)
    stated["metrics"] = kept
    notes = [f"how memory is counted, and batches by GPU, are those of {nearest.facts_version}"]
    if gone:
        notes.append(f"of the metrics that are used these are not exported any more: {', '.join(gone)}")
    notes += [f"{flag} is no longer there" for flag in sorted(set(nearest.flags) - set(told.flags))]
    return EngineFile.model_validate(stated), tuple(notes)


def _metrics(nearest: EngineFacts, told: Iterable[str]) -> tuple[dict[str, tuple[str, ...]], tuple[str, ...]]:
    """The logical names whose exported names differ from the version that is extended, and those that are not exported any more."""
    there = {name.removesuffix("_total") for name in told}
    changed: dict[str, tuple[str, ...]] = {}
    for logical, exported in sorted(nearest.metrics.items()):
        left = tuple(name for name in exported if name.removesuffix("_total") in there)
        if left != exported:
            changed[logical] = left
    return changed, tuple(logical for logical, names in changed.items() if not names)


def engine_file_text(file: EngineFile) -> str:
    """The file's text, with one flag or variable on each line, so that a diff of two versions is easy to read."""
    body = file.model_dump(mode="json", by_alias=True, exclude_unset=True)
    flags, environment = body.pop("flags"), body.pop("environment")
    lines = [f"{json.dumps(key)}: {json.dumps(value, sort_keys=True)}," for key, value in body.items()]
    each = ",\n".join(f" {json.dumps(name)}: {json.dumps(entry)}" for name, entry in flags.items())
    names = ",\n".join(f" {json.dumps(name)}" for name in environment)
    return "\n".join(("{", *lines, f'"flags": {{\n{each}\n}},', f'"environment": [\n{names}\n]', "}")) + "\n"


def read_engine_file(text: str) -> EngineFile:
    try:
        file = EngineFile.model_validate_json(text)
    except ValidationError as error:
        raise EngineFileError(_first(error)) from error
    _check(file.engine, file.version)
    known = bundled_versions(file.engine)
    if file.extends not in known:
        raise EngineFileError(f"extends is {file.extends!r}; it must be one of {', '.join(known)}")
    return file


def handed_in(config: OperatorConfig) -> OperatorConfig:
    """Makes known the engine versions whose files are in the admin's config, and no others beside the bundled ones. Returns the config."""
    files, problems = [], []
    for number, one in enumerate(config.engines.versions):
        if one.facts is None:
            continue
        where = f"engines.versions[{number}].facts"
        try:
            file = read_engine_file(one.facts)
        except EngineFileError as error:
            problems.append(Problem(where, "", str(error)))
            continue
        if file.version != str(parse_version(one.version)):
            problems.append(Problem(where, file.version, f"is of another version than {one.version}"))
        files.append(file)
    if problems:
        raise SpecError(*problems)
    hand_in(files)
    return config


def _check(engine: str, version: str) -> None:
    if engine not in engine_names() or not engine_profile(engine).plans:
        raise EngineFileError(f"engine is {engine!r}; files are read for vllm")
    parsed = parse_version(version)
    if parsed is None or not parsed.released:
        raise EngineFileError(f"version is {version!r}; it must be a release, as 0.33.0")


def _first(error: ValidationError) -> str:
    found = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(map(str, found["loc"]))
    return f"{where}: {found['msg']}" if where else str(found["msg"])
