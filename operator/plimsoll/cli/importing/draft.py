"""An LLMDeployment being written from somebody else's words, with an account of what became of every one of them.

Each word ends in exactly one outcome: a typed field, an extra argument, a translation, or lost with the reason. Readers
only say what they found; that nothing vanishes and that the result is a valid resource is seen to here and in `finish`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from plimsoll.facts.engines import EngineFacts
from plimsoll.names import NAME_MAX

if TYPE_CHECKING:
    from plimsoll.cli.importing.sources import Mount

_SECRET = re.compile(r"TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL|API_?KEY|ACCESS_KEY", re.IGNORECASE)
_SHOWN = 160


class ImportProblem(ValueError):
    """The text cannot become a resource: says what is wrong with it and what would be right."""


class Outcome(StrEnum):
    FIELD = "field"
    EXTRA = "extraArgs"
    TRANSLATED = "translated"
    LOST = "lost"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """What became of one thing that the text said."""

    what: str
    """The words as they stood there; values of secrets are left out."""
    outcome: Outcome
    to: str = ""
    """The field, or what the words are now."""
    why: str = ""


class Draft:
    """The resource while it is written. Later words win over earlier ones, as on every command line."""

    def __init__(self, facts: EngineFacts) -> None:
        self.facts = facts
        self.metadata: dict[str, Any] = {}
        self.spec: dict[str, Any] = {}
        self.fates: list[Fate] = []
        self.warnings: list[str] = []
        self.said: frozenset[str] = frozenset()
        """Flags that the command line holds, by their main spelling."""
        self.mounts: tuple[Mount, ...] = ()
        """Volumes in the engine's container, which say where a path of the command line comes from."""
        self.gpus: int | None = None
        """Devices that the text gives a pod, to compare with what its command uses."""

    def name(self, told: str) -> None:
        """Name the resource after something, as far as its name may be."""
        self.metadata["name"] = name_from(told)
        if self.metadata["name"] != told:
            self.warn(
                f"the name {shown(told)} became {self.metadata['name']}: names here are short and plain"
            )

    def put(self, path: str, value: Any, what: str) -> None:
        """Write a typed field of the spec."""
        self._write(path, value, what, Fate(what=shown(what), outcome=Outcome.FIELD, to=f"spec.{path}"))

    def put_group(self, path: str, values: Mapping[str, Any], what: str, why: str = "") -> None:
        """Write several fields of one group that the same words say."""
        holder = self.spec
        for part in path.split("."):
            holder = holder.setdefault(part, {})
        holder.update(values)
        outcome = Outcome.TRANSLATED if why else Outcome.FIELD
        self.fates.append(Fate(what=shown(what), outcome=outcome, to=f"spec.{path}", why=why))

    def translate(self, path: str, value: Any, what: str, why: str) -> None:
        """Write a typed field from words that mean the same in another form."""
        self._write(
            path, value, what, Fate(what=shown(what), outcome=Outcome.TRANSLATED, to=f"spec.{path}", why=why)
        )

    def put_variable(self, item: Mapping[str, Any], what: str, why: str = "") -> None:
        """Hand an environment variable to the engine as it is."""
        env = self.spec.setdefault("engine", {}).setdefault("env", [])
        env[:] = [other for other in env if other["name"] != item["name"]] + [dict(item)]
        outcome = Outcome.TRANSLATED if why else Outcome.FIELD
        self.fates.append(Fate(what=shown(what), outcome=outcome, to="spec.engine.env", why=why))

    def drop(self, what: str, instead: str) -> None:
        """Note words that need no field, since what they say is so anyway or something else takes their place."""
        self.fates.append(Fate(what=shown(what), outcome=Outcome.TRANSLATED, to=instead))

    def pass_on(self, words: tuple[str, ...], what: str, why: str = "") -> None:
        """Hand words to the engine as they are."""
        self.spec.setdefault("engine", {}).setdefault("extraArgs", []).extend(words)
        outcome = Outcome.TRANSLATED if why else Outcome.EXTRA
        self.fates.append(Fate(what=shown(what), outcome=outcome, to="spec.engine.extraArgs", why=why))

    def lose(self, what: str, why: str) -> None:
        """Say that words are lost, and why."""
        self.fates.append(Fate(what=shown(what), outcome=Outcome.LOST, why=why))

    def warn(self, message: str) -> None:
        """Tell something that the reader should look at; the same thing only once."""
        if message not in self.warnings:
            self.warnings.append(message)

    def get(self, path: str) -> Any:
        """The value of a field of the spec, or None where it is not written."""
        value: Any = self.spec
        for part in path.split("."):
            if not isinstance(value, dict) or part not in value:
                return None
            value = value[part]
        return value

    def remove(self, path: str, why: str) -> None:
        """Take a field out again; the words it came from are then lost."""
        *parents, last = path.split(".")
        holder: Any = self.spec
        for part in parents:
            holder = holder.get(part, {}) if isinstance(holder, dict) else {}
        if isinstance(holder, dict):
            holder.pop(last, None)
        self._forget(path, why, whole=True)

    def leave_replicas_to(self, who: str) -> None:
        """Take out a number of replicas that an autoscaler wrote: one in the spec is obeyed exactly, and nothing would scale again."""
        if self.get("replicas") is not None:
            self.remove("replicas", f"{who} decides it, and so does Plimsoll within scaling")

    def _write(self, path: str, value: Any, what: str, fate: Fate) -> None:
        old = self.get(path)
        if old is not None and old != value:
            self._forget(path, f"said again later, as {shown(what)}; the last word counts")
        *parents, last = path.split(".")
        holder = self.spec
        for part in parents:
            holder = holder.setdefault(part, {})
        holder[last] = value
        self.fates.append(fate)

    def _forget(self, path: str, why: str, *, whole: bool = False) -> None:
        target = f"spec.{path}"
        for place, fate in enumerate(self.fates):
            inside = fate.to == target or fate.to.startswith(f"{target}.")
            if inside or (whole and fate.to.count(".") > 0 and target.startswith(f"{fate.to}.")):
                self.fates[place] = replace(fate, outcome=Outcome.LOST, to="", why=why)


def shown(what: str) -> str:
    """Words as they may be printed: on one line and of bounded length."""
    flat = " ".join(what.split())
    return flat if len(flat) <= _SHOWN else f"{flat[: _SHOWN - 1]}…"


def is_secret(name: str) -> bool:
    """Whether a variable or key of this name holds something that must not be printed or stored."""
    return bool(_SECRET.search(name)) and not name.upper().endswith(("_FILE", "_PATH", "_SECONDS"))


def leaves(value: Any, path: str) -> list[tuple[str, Any]]:
    """Every scalar below a value with its path, for saying what was not read."""
    if isinstance(value, Mapping) and value:
        return [
            leaf
            for key, item in value.items()
            for leaf in leaves(item, f"{path}.{key}" if path else str(key))
        ]
    if isinstance(value, list) and value:
        return [leaf for place, item in enumerate(value) for leaf in leaves(item, f"{path}[{place}]")]
    return [(path, value)]


def name_from(text: str) -> str:
    """A name for the resource from a model's: small letters, digits and dashes, short enough for all that follows."""
    tail = text.rstrip("/").rpartition("/")[2].partition("@")[0]
    slug = re.sub(r"[^a-z0-9]+", "-", tail.lower()).strip("-")
    slug = slug.lstrip("0123456789-") or "model"
    return slug[:NAME_MAX].rstrip("-")
