"""The README shows what the program says: every `$ plimsoll` line in it is run, and its output compared. What asks a cluster
gets the answers of a deployment under a load that rose and fell.

`pytest tests/test_readme.py --write-golden` writes the outputs anew.
"""

import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from plimsoll.api.loading import load_deployments
from plimsoll.control import telling
from plimsoll.control.decision import Need
from plimsoll.control.record import Act, Record
from plimsoll.control.situation import Role
from tests.cli.running import plimsoll
from tests.cli.test_history import MAPS, kept
from tests.control.situations import serving as serving_set
from tests.control.situations import signals
from tests.kube.api_server import serving

README = Path(__file__).parents[1] / "README.md"
CONSOLE = re.compile(r"(?<=^```console\n)(\$ plimsoll [^\n]*\n)(.*?)(?=^```$)", re.MULTILINE | re.DOTALL)


def scaled(at: float, before: int, after: int, reason: str, *, ahead_s: float, **need: float) -> Act:
    """In the words of the law, with figures that a simulated rise and fall had."""
    role = Role(sets=(serving_set(),), signals=signals(before))
    says = telling.figures(role, Need(lead_s=ahead_s, **need))
    message = f"{before} to {after} replicas: {says}"
    return Act(at=at, what="scale", before=str(before), after=str(after), reason=reason, message=message)


ACTS = (
    scaled(1_800_005_420, 6, 4, "LoadFell", ahead_s=330, tokens=1.3, running=1.4, prompts=0.5, forecast=1.3),
    scaled(1_800_002_090, 5, 7, "LoadRose", ahead_s=180, tokens=5.0, running=5.6, prompts=2.3, forecast=6.1),
    scaled(1_800_002_015, 4, 5, "LoadRose", ahead_s=180, tokens=3.7, running=4.2, prompts=1.7, forecast=4.4),
)


@pytest.fixture(autouse=True)
def a_cluster(tmp_path: Path) -> Iterator[None]:
    with serving(tmp_path) as server:
        server.lists[MAPS] = [kept(Record(replicas=4, acts=ACTS))]
        yield


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
