"""What the supervisor may be made of, since it runs in images of other people."""

from __future__ import annotations

import ast
import json
import re
import sys
from pathlib import Path

import pytest

from build import PACKAGE, build
from plimsoll_runtime.preflight import need_of
from plimsoll_runtime.rules import RULES

SOURCES = sorted(PACKAGE.rglob("*.py"))
OLDEST = (3, 9)


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.name)
def test_the_oldest_python_reads_it(source):
    ast.parse(source.read_text(), feature_version=OLDEST)
    # What only annotations hold is never looked at, as long as they stay text.
    assert "from __future__ import annotations" in source.read_text() or source.name == "__init__.py"


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.name)
def test_it_imports_nothing_but_the_standard_library(source):
    for node in ast.walk(ast.parse(source.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        else:
            continue
        for name in names:
            top = name.partition(".")[0]
            assert top in sys.stdlib_module_names or top == "plimsoll_runtime", name


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.name)
def test_classes_use_nothing_that_came_after_the_oldest_python(source):
    for node in ast.walk(ast.parse(source.read_text())):
        if isinstance(node, ast.keyword):
            assert node.arg not in {"slots", "kw_only", "strict"}, f"{source.name}:{node.value.lineno}"
        assert not isinstance(node, ast.Match)


def test_packing_twice_gives_the_same_bytes(tmp_path: Path):
    assert build(tmp_path / "a").read_bytes() == build(tmp_path / "b").read_bytes()


def test_every_word_of_failure_is_in_the_docs():
    page = (PACKAGE.parents[1] / "docs" / "runtime.md").read_text()
    told = set(re.findall(r"`([A-Z]\w+)`", page))
    literal = {
        node.args[0].value
        for source in SOURCES
        for node in ast.walk(ast.parse(source.read_text()))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("Failure", "Warned", "rule")
        and isinstance(node.args[0], ast.Constant)
    }
    assert {rule.word for rule in RULES} <= literal
    assert told == literal


def test_the_plan_of_the_docs_is_one():
    page = (PACKAGE.parents[1] / "docs" / "runtime.md").read_text()
    shown = re.search(r"```json\n(.*?)```", page, re.DOTALL)
    assert shown is not None
    assert None not in need_of(json.loads(shown[1]))._replace(cuda=(13, 0))  # which no plan says
