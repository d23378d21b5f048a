"""The real parsers, one process a version for all tests; left out, or failed where that must not be, where there are none."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import pytest

from real import left_out
from tests.real_parser import setup
from tests.real_parser.asking import Parser


@pytest.fixture(scope="session")
def place() -> Path:
    place = setup.folder()
    if reason := setup.missing(place):
        left_out(f"{reason}: run `make test-parser`")
    return place


@pytest.fixture(scope="session")
def parsers(place: Path) -> Iterator[Callable[[str], Parser]]:
    with ExitStack() as stack:
        yield cache(lambda version: stack.enter_context(Parser(place, version)))


@pytest.fixture(scope="session")
def template(tmp_path_factory):
    """The parser looks whether a pod's file is there."""
    file = tmp_path_factory.mktemp("template") / "template.jinja"
    file.write_text("{{ messages }}", "utf-8")
    return str(file)
