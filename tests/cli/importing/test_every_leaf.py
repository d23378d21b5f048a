"""Whatever stands in a manifest is told: each leaf by itself is made a word of its own, and that word is looked for in what comes out."""

import copy
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from plimsoll.cli.importing import ImportProblem, import_text

WORD, NUMBER = "zzsentinel", 47110815
HERE = Path(__file__).parents[2] / "samples" / "import"
SAMPLES = {
    path.stem: list(yaml.safe_load_all(path.read_text("utf-8")))
    for path in sorted(HERE.glob("*.yaml"))
    if re.search("^(apiVersion|servingEngineSpec):", path.read_text("utf-8"), re.MULTILINE)
}
RICH = yaml.safe_load((HERE.parent / "import-leaves.yaml").read_text("utf-8"))
# What says only how the parts of a manifest find each other, or what Plimsoll would have to be told of itself.
PLUMBING = re.compile(
    r"^(apiVersion|kind|status\..*)$"
    r"|^spec\.selector\."
    r"|^spec\.ports\[0\]\.(name|protocol|targetPort)$"
    r"|containers\[0\]\.name$"
    r"|^spec\.(components\[\d+\]|services\.\w+)\.(name|type|componentType|subComponentType)$"
    r"|^metadata\.(uid|resourceVersion|annotations\.(kubectl|deployment)\.kubernetes\.io/.*)$"
)
# What is told as a whole by its name alone.
WHOLE = re.compile(r"(containers|initContainers|components)\[\d+\]$|^spec\.services\.\w+$")

Place = tuple[Any, ...]


def places(value: Any, above: Place = ()) -> Iterator[Place]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    if not items and not isinstance(value, dict | list) and value is not None:
        yield above
    for key, item in items:
        yield from places(item, (*above, key))


def written(place: Place) -> str:
    """A place as the account writes it."""
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in place).removeprefix(".")


def with_word(documents: list[Any], place: Place) -> tuple[list[Any], str]:
    """The documents with another value at a place, and how that value is told."""
    changed: Any = copy.deepcopy(documents)
    holder = changed
    for key in place[:-1]:
        holder = holder[key]
    old = holder[place[-1]]
    holder[place[-1]] = not old if isinstance(old, bool) else NUMBER if isinstance(old, int | float) else WORD
    return changed, str(holder[place[-1]])


def account(documents: list[Any]) -> list[str]:
    """All that a user is told: the resources, what became of every word, and what to look at."""
    imported = import_text(yaml.safe_dump_all(documents))
    fates = [f"{fate.what} {fate.to} {fate.why}" for fate in imported.fates]
    return [*fates, *imported.warnings, yaml.safe_dump_all(imported.documents)]


def is_told(documents: list[Any], place: Place) -> bool:
    changed, word = with_word(documents, place)
    try:
        said = account(changed)
    except ImportProblem:
        return True  # nothing came out of which the word could be missing
    if word in ("True", "False"):
        if said != account(documents):
            return True
    elif any(word in one.lower() for one in said):
        return True
    above = [written(place[1:end]) for end in range(2, len(place) + 1)]
    return any(
        re.match(rf"{re.escape(above[-1])}:? \(hidden\)", one)
        or any(re.match(rf"{re.escape(path)} \(\d+( values)?\)", one) for path in above)
        or any(WHOLE.search(path) and one.startswith(f"{path} ") for path in above)
        for one in said
    )


@pytest.mark.parametrize("documents", [*SAMPLES.values(), *RICH.values()], ids=[*SAMPLES, *RICH])
def test_every_leaf_of_a_manifest_is_told(documents: list[Any]) -> None:
    assert [
        path
        for place in places(documents)
        if not PLUMBING.search(path := written(place[1:])) and not is_told(documents, place)
    ] == []
