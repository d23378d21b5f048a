"""Write the bundled lists of flags and variables again from the real parsers: `python -m tests.real_parser.regenerate`."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.real_parser import setup

LISTS = Path(__file__).parents[2] / "operator" / "plimsoll" / "facts" / "data" / "engines"
SCRIPT = Path(__file__).parents[2] / "operator" / "plimsoll" / "cli" / "engine_script.py"
JUDGE = Path(__file__).parent / "judge.py"


def ask(place: Path, version: str, *options: str, told: object = None) -> Any:
    """The judge's answer, from its own environment."""
    python = place / "venv" / "bin" / "python"
    words = [str(python), str(JUDGE), str(place / f"vllm-{version}"), *options]
    done = subprocess.run(words, input=json.dumps(told), capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"the judge of vLLM {version} failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout)


def told(place: Path, version: str) -> str:
    """What `plimsoll engine describe` hears of the version."""
    python = place / "venv" / "bin" / "python"
    words = [str(python), str(SCRIPT), str(place / f"vllm-{version}")]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def flags_text(flags: dict[str, object]) -> str:
    """One flag a line, so that a difference reads like one."""
    return (
        "{\n"
        + ",\n".join(f"{json.dumps(name)}: {json.dumps(entry)}" for name, entry in flags.items())
        + "\n}\n"
    )


def names_text(names: list[str]) -> str:
    return "[\n" + ",\n".join(map(json.dumps, names)) + "\n]\n"


def expected(place: Path, version: str) -> dict[str, str]:
    """File names to their whole text."""
    flags, names = ask(place, version, "--flags"), ask(place, version, "--environment")
    return {
        f"vllm-{version}.flags.json": flags_text(flags),
        f"vllm-{version}.environment.json": names_text(names),
    }


if __name__ == "__main__":
    place = setup.folder()
    reason = setup.missing(place)
    if reason:
        sys.exit(f"{reason}: run `python -m tests.real_parser.setup` first")
    for version in setup.VERSIONS:
        for name, text in expected(place, version).items():
            (LISTS / name).write_text(text, "utf-8")
