"""The shape of the repository: rules about files that no linter knows, each with its reason."""

import re
import shutil
import socket
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "operator" / "plimsoll"
LOCKS = ("requirements/run.txt", "requirements/dev.txt")
LONGEST_MODULE = 400

# Written as patterns that do not match their own text.
PACKAGE_HOST = re.compile(
    r"\b(?:(?:pypi|pythonhosted)\.org|(?:proxy|sum)\.golang\.org|registry\.npmjs\.org"
    r"|deb\.debian\.org|static\.crates\.io|repo1\.maven\.org)"
)
MACHINE_PATH = re.compile(r"(?<![\w.])/(?:work|farm|opt/wheels)/")
PINNED = re.compile(r"^(?P<name>[\w.-]+)==(?P<version>\S+)")


def tracked(suffix: str = "") -> list[Path]:
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        pytest.skip("not a git checkout, so no file is tracked")
    listed = subprocess.run(
        [git, "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    paths = (ROOT / name for name in listed.split("\0") if name.endswith(suffix) and name)
    return sorted(path for path in paths if path.is_file())


def lines_that_match(pattern: re.Pattern[str]) -> list[str]:
    found = []
    for path in tracked():
        for number, line in enumerate(path.read_bytes().decode(errors="replace").splitlines(), 1):
            if pattern.search(line):
                found.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()[:100]}")
    return found


def locked(lock: str) -> dict[str, str]:
    pins = (PINNED.match(line) for line in (ROOT / lock).read_text().splitlines())
    return {pin["name"]: pin["version"] for pin in pins if pin}


def test_the_operator_folder_does_not_shadow_the_standard_library():
    assert not (ROOT / "operator" / "__init__.py").exists()
    assert not list(ROOT.glob("operator/**/operator.py"))
    script = "import operator; print(operator.eq(1, 1))"
    run = subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=True, capture_output=True, text=True)
    assert run.stdout.strip() == "True"


def test_every_folder_with_modules_is_a_package_and_carries_types():
    assert (PACKAGE / "py.typed").is_file()
    folders = {path.parent for path in tracked(".py") if PACKAGE in path.parents}
    assert sorted(folder for folder in folders if not (folder / "__init__.py").is_file()) == []


def test_the_wheel_ships_every_file_of_the_package(tmp_path: Path):
    wheel = next(WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"]))
    shipped = set(zipfile.ZipFile(wheel).namelist())
    needed = {str(path.relative_to(ROOT / "operator")) for path in tracked() if PACKAGE in path.parents}
    assert sorted(needed - shipped) == []


def test_tests_need_no_packages_of_their_own():
    assert list(ROOT.glob("tests/**/__init__.py")) == []


def test_no_module_outgrows_its_idea():
    lengths = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in tracked(".py")}
    assert {path: length for path, length in lengths.items() if length > LONGEST_MODULE} == {}


def test_the_picture_of_the_rooms_is_what_the_import_rules_say():
    (picture,) = re.findall(
        r"^```text\n( +handlers.*?)^```$", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL
    )
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (rooms,) = [one["layers"] for one in contracts if one.get("containers") == ["plimsoll"]]
    floors = [re.findall(r"\w+", layer) for layer in rooms]
    assert [line.split() for line in picture.splitlines()] == [one for one in floors if one != ["__main__"]]


@pytest.mark.parametrize(
    "pattern", [PACKAGE_HOST, MACHINE_PATH], ids=["package hosts", "paths of one machine"]
)
def test_no_tracked_file_names(pattern: re.Pattern[str]):
    assert lines_that_match(pattern) == []


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (PACKAGE_HOST, "--index-url https://" + "pypi" + ".org/simple"),
        (MACHINE_PATH, "open('/" + "work/main/x')"),
        (MACHINE_PATH, "--find-links /" + "opt/wheels/"),
    ],
)
def test_forbidden_names_would_be_seen(pattern: re.Pattern[str], text: str):
    assert pattern.search(text)


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_file_holds_pins_and_hashes_and_nothing_else(lock: str):
    allowed = re.compile(r"[\w.-]+==\S+( ;.*)? \\|    --hash=sha256:[0-9a-f]{64}( \\)?|    #.*|")
    text = (ROOT / lock).read_text()
    assert [line for line in text.splitlines() if not allowed.fullmatch(line)] == []
    blocks = re.split(r"^(?=\S)", text, flags=re.MULTILINE)[1:]
    assert [block.split()[0] for block in blocks if "--hash" not in block] == []


@pytest.mark.parametrize(
    ("lock", "extras"), [("requirements/run.txt", ()), ("requirements/dev.txt", ("dev",))]
)
def test_the_lock_satisfies_what_the_project_asks_for(lock: str, extras: tuple[str, ...]):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    asked = project["dependencies"] + [line for e in extras for line in project["optional-dependencies"][e]]
    pins = locked(lock)
    for requirement in map(Requirement, asked):
        name = requirement.name.lower().replace("_", "-")
        assert name in pins, f"{lock} lacks {name}: run `make lock`"
        assert requirement.specifier.contains(pins[name]), (
            f"{lock} has {name} {pins[name]}, asked: {requirement}"
        )


def test_both_locks_pin_the_same_versions():
    run, dev = (locked(lock) for lock in LOCKS)
    assert {name: dev.get(name) for name in run} == run


def test_a_test_cannot_reach_beyond_this_machine():
    with pytest.raises(OSError, match="tests use no network"):
        socket.create_connection(("192.0.2.1", 80), timeout=1)
    with pytest.raises(OSError, match="tests use no network"):
        socket.getaddrinfo("example.org", 443)
