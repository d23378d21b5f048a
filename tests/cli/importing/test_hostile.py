"""Whatever stands in a text, it becomes a valid resource or a problem in words, never a traceback."""

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.api.loading import load_deployments
from plimsoll.cli.importing import ImportProblem, import_text

SAMPLES = [
    path.read_text("utf-8")
    for path in sorted((Path(__file__).parents[2] / "samples" / "import").iterdir())
    if path.is_file()
]
MANIFESTS = [
    documents
    for text in SAMPLES
    if "apiVersion:" in text or "services:" in text or "servingEngineSpec:" in text
    for documents in [list(yaml.safe_load_all(text))]
]
SPLINTERS = st.sampled_from(
    (
        *(
            "",
            "\x00",
            '"',
            "'",
            "{",
            "[",
            ": ",
            "- ",
            "\n",
            "\t",
            "☃",
            "--",
            "=",
            "$(",
            "${X:-",
            "|",
            "&a ",
            "*a",
            "#",
        ),
        *(
            "\\",
            "!!python/object:os.system ",
            "null",
            "1e999",
            "~",
            "[]",
            "{}",
            "-1",
            "9" * 40,
            "%",
            "\u202e",
        ),
        "a" * 500,
    )
)
WRONG: list[Any] = [
    None,
    "",
    [],
    {},
    0,
    -1,
    1.5,
    True,
    "x",
    [1],
    {"a": 1},
    "☃",
    [None],
    [{}],
    [[]],
    {"name": None},
]


def read(text):
    try:
        imported = import_text(text)
    except ImportProblem:
        return
    assert load_deployments(yaml.safe_dump_all(imported.documents)).problems == ()


@settings(max_examples=300)
@given(
    st.sampled_from(SAMPLES),
    st.lists(st.tuples(st.floats(0, 1), st.integers(0, 40), SPLINTERS), min_size=1, max_size=4),
)
def test_broken_text(text, breaks):
    for place, length, splinter in breaks:
        at = int(place * len(text))
        text = text[:at] + splinter + text[at + length :]
    read(text)


def paths(value, path=()):
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from paths(item, (*path, key))


@settings(max_examples=400)
@given(st.data())
def test_manifests_with_values_of_the_wrong_kind(data):
    documents = copy.deepcopy(data.draw(st.sampled_from(MANIFESTS)))
    for _ in range(data.draw(st.integers(1, 2))):
        path = data.draw(st.sampled_from(list(paths(documents))))
        holder = documents
        for key in path[:-1]:
            holder = holder[key]
        if path:
            holder[path[-1]] = copy.deepcopy(data.draw(st.sampled_from(WRONG)))
    read(yaml.safe_dump_all(documents))


@pytest.mark.parametrize(
    "text",
    [
        "a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\n",
        "kind: !!python/object/apply:os.system [id]\n",
        "vllm serve " + "a" * 100_000,
        "vllm serve a/b " + "--seed 1 " * 5_000,
        "[" * 3_000,
        "vllm serve a/b --speculative-config " + "'" + "[" * 5_000 + "'",
    ],
    ids=["aliases", "tags", "long-name", "many-words", "deep-yaml", "deep-json"],
)
def test_texts_made_to_hurt(text):
    read(text)
