"""Write the bundled lists of flags and variables again from the real parsers: `python -m tests.real_parser.regenerate`."""

import json
import sys
from pathlib import Path

from tests.real_parser import setup
from tests.real_parser.asking import Parser

LISTS = Path(__file__).parents[2] / "operator" / "plimsoll" / "facts" / "data" / "engines"


def flags_text(flags: dict[str, object]) -> str:
    """One flag a line, so that a difference reads like one."""
    return (
        "{\n"
        + ",\n".join(f"{json.dumps(name)}: {json.dumps(entry)}" for name, entry in flags.items())
        + "\n}\n"
    )


def names_text(names: list[str]) -> str:
    return "[\n" + ",\n".join(map(json.dumps, names)) + "\n]\n"


def expected(parser: Parser, version: str) -> dict[str, str]:
    """File names to their whole text."""
    return {
        f"vllm-{version}.flags.json": flags_text(parser.flags()),
        f"vllm-{version}.environment.json": names_text(parser.environment()),
    }


if __name__ == "__main__":
    place = setup.folder()
    reason = setup.missing(place)
    if reason:
        sys.exit(f"{reason}: run `python -m tests.real_parser.setup` first")
    for version in setup.VERSIONS:
        with Parser(place, version) as parser:
            for name, text in expected(parser, version).items():
                (LISTS / name).write_text(text, "utf-8")
