"""The words of the supervisor and the reasons of conditions are the same, though neither may import the other."""

import ast
from pathlib import Path

from plimsoll.api.conditions import FAILURES
from plimsoll.facts.failure import OUT_OF_MEMORY
from plimsoll.reconcile.retry import RUNGS

RUNTIME = Path(__file__).parents[2] / "runtime" / "plimsoll_runtime"
UNTOLD = {"EngineEnded"}
"""Says no more than that it ended, which is StartFailed."""


def said() -> set[str]:
    found = set()
    for file in RUNTIME.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
                first = node.args[0]
                if (
                    node.func.id in ("Failure", "_rule")
                    and isinstance(first, ast.Constant)
                    and isinstance(first.value, str)
                ):
                    found.add(first.value)
    return found


def test_every_word_of_the_supervisor_is_a_reason_that_is_explained():
    assert said() - UNTOLD == set(FAILURES)


def test_words_that_more_memory_would_cure_are_known_and_so_are_those_that_less_might():
    assert set(FAILURES) >= OUT_OF_MEMORY
    assert set(RUNGS) <= OUT_OF_MEMORY
