"""The README shows what the program says: every `$ plimsoll` line in it is run, and its output compared.

`pytest tests/test_readme.py --write-golden` writes the outputs anew.
"""

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from plimsoll.api.loading import load_deployments
from tests.cli.running import plimsoll

README = Path(__file__).parents[1] / "README.md"
CONSOLE = re.compile(r"(?<=^```console\n)(\$ plimsoll [^\n]*\n)(.*?)(?=^```$)", re.MULTILINE | re.DOTALL)


@pytest.fixture(autouse=True)
def beside_the_resource(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder in which llm.yaml is the resource that the README shows."""
    shown = re.search(r"^```yaml\n(.*?)^```$", README.read_text(), re.MULTILINE | re.DOTALL)
    assert shown is not None
    (tmp_path / "llm.yaml").write_text(shown[1])
    monkeypatch.chdir(tmp_path)


def printed(line: str) -> str:
    ran = plimsoll(*shlex.split(line)[2:])
    assert ran.code == 0, ran.err
    return ran.out


def test_every_output_in_the_readme_is_what_the_program_prints(golden: Callable[[Path, str], None]):
    text = README.read_text()
    assert len(CONSOLE.findall(text)) >= 5
    golden(README, CONSOLE.sub(lambda block: block[1] + printed(block[1]), text))


def test_the_resource_in_the_readme_is_one():
    assert load_deployments(Path("llm.yaml").read_text()).problems == ()


def test_every_path_in_the_readme_exists():
    paths = re.findall(
        r"`((?:operator|examples|crds|docs|benchmarks|tests|runtime|e2e)[\w/.-]*)`", README.read_text()
    )
    assert len(paths) >= 8
    assert [path for path in paths if not (README.parent / path).exists()] == []
