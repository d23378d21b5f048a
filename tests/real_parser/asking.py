"""The judge of one version, which stays: to start takes ten seconds, a command line milliseconds."""

import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Self

from tests.real_parser import setup

JUDGE = Path(__file__).parent / "judge.py"
SCRIPT = Path(__file__).parents[2] / "operator" / "plimsoll" / "cli" / "engine_script.py"


class Parser:
    """Use it with `with`."""

    def __init__(self, place: Path, version: str) -> None:
        self._place, self._version = place, version

    def __enter__(self) -> Self:
        self._said = tempfile.TemporaryFile("w+")
        words = [str(setup.python(self._place)), str(JUDGE), str(setup.source(self._place, self._version))]
        self._process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._said, text=True
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()  # it ends where its questions do
        self._said.close()

    def flags(self) -> Any:
        return self._asked({"ask": "flags"})

    def environment(self) -> Any:
        return self._asked({"ask": "environment"})

    def verdicts(self, lines: list[list[str]], *, configured: bool = False) -> list[dict[str, Any]]:
        """Of the words behind `vllm serve`, up to the engine's arguments, or up to its whole configuration."""
        verdicts: list[dict[str, Any]] = self._asked(
            {"ask": "configurations" if configured else "lines", "lines": lines}
        )
        return verdicts

    def _asked(self, question: object) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{json.dumps(question)}\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            self._said.seek(0)
            raise RuntimeError(f"the judge of vLLM {self._version} ended:\n{self._said.read()[-2000:]}")
        return json.loads(answer)


def told(place: Path, version: str) -> str:
    """What `plimsoll engine describe` hears of the version."""
    words = [str(setup.python(place)), str(SCRIPT), str(setup.source(place, version))]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout
