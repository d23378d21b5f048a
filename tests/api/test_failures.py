"""The words of the supervisor and the reasons of conditions are the same, though neither may import the other."""

import ast
from collections.abc import Iterable
from pathlib import Path

from plimsoll.api.conditions import FAILURES
from plimsoll.reconcile.retry import RUNGS

ROOT = Path(__file__).parents[2]
RUNTIME = ROOT / "runtime" / "plimsoll_runtime"
UNTOLD = {"EngineEnded"}
"""Says no more than that it ended, which is StartFailed."""


OF_ADAPTERS = ("adapters.py", "adapter_source.py", "lora.py", "lora_base.py")
"""Reasons of single adapters in status, and of no condition."""


def said(files: Iterable[Path]) -> set[str]:
    found = set()
    for file in files:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
                first = node.args[0]
                if (
                    node.func.id in ("Failure", "failed", "rule")
                    and isinstance(first, ast.Constant)
                    and isinstance(first.value, str)
                ):
                    found.add(first.value)
    return found


def test_every_word_of_the_supervisor_is_a_reason_that_is_explained():
    files = [file for file in RUNTIME.rglob("*.py") if file.name not in OF_ADAPTERS]
    assert said(files) - UNTOLD == set(FAILURES)


def test_every_word_of_an_adapter_is_explained():
    words = said(RUNTIME / name for name in OF_ADAPTERS)
    explained = (ROOT / "docs" / "runtime.md").read_text(encoding="utf-8")
    assert words
    assert [word for word in sorted(words) if f"`{word}`" not in explained] == []


def test_every_word_after_which_less_is_tried_is_known():
    assert set(RUNGS) <= set(FAILURES)
