"""One answer to "where is this program?": the machine's own in the right version, the cache's, a fetched one, a built one.

In that order, so that nothing is built that is there already, and so that a person who names a folder is obeyed.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from cluster.binaries.build import BuildFailed, Go, fetch_go, find_go
from cluster.binaries.pins import PINS, Pin
from cluster.binaries.places import Places
from cluster.binaries.progress import Progress
from cluster.binaries.store import Store


class BinariesMissing(RuntimeError):
    """Programs that are nowhere and could not be made; says where they were looked for and what would help."""


def ensure(names: Iterable[str], places: Places, progress: Progress) -> dict[str, Path]:
    """Each program's file, whatever it takes."""
    pins = [PINS[name] for name in names]
    store = Store(places.binaries)
    with ThreadPoolExecutor() as pool:
        # A look hashes up to 100 MB or starts the program: 0.2 s each, side by side.
        looked = list(pool.map(lambda pin: on_machine(pin, places) or store.find(pin), pins))
    found = {pin.name: file for pin, file in zip(pins, looked, strict=True) if file}
    missing = [pin for pin in pins if pin.name not in found]
    if not missing:
        return found
    try:
        with store.lock(lambda: progress.say("another run is preparing programs here; waiting for it ...")):
            return found | _prepare(missing, places, store, progress)
    except OSError as error:
        raise BinariesMissing(
            f"{error}; set PLIMSOLL_CACHE to a folder that can be written, with 1 GB free"
        ) from error


def on_machine(pin: Pin, places: Places) -> Path | None:
    """In KUBEBUILDER_ASSETS or on PATH, in the pinned minor version."""
    for file in _candidates(pin, places):
        if version_fits(pin, version_of(pin, file)):
            return file
    return None


def _candidates(pin: Pin, places: Places) -> list[Path]:
    files = [places.assets / pin.name] if places.assets else []
    if on_path := shutil.which(pin.name, path=places.path):
        files.append(Path(on_path))
    return [file for file in files if file.is_file()]


def version_of(pin: Pin, file: Path) -> str | None:
    """What the program calls itself; None where it does not run."""
    try:
        said = subprocess.run(
            [file, *pin.version_args], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r"\d+\.\d+\.\d+", said.stdout)
    return match[0] if match and said.returncode == 0 else None


def version_fits(pin: Pin, version: str | None) -> bool:
    """Patches may differ."""
    return version is not None and version.rpartition(".")[0] == pin.minor


def _prepare(pins: list[Pin], places: Places, store: Store, progress: Progress) -> dict[str, Path]:
    for pin in pins:
        for other in _candidates(pin, places):
            progress.say(
                f"{other} is {version_of(pin, other) or 'not to be run'}; {pin.minor} is needed, so it is left aside"
            )
    found: dict[str, Path] = {}
    for pin in pins:  # whoever held the lock before may have made them
        if file := store.find(pin):
            found[pin.name] = file
        elif store.is_broken(pin):
            progress.say(f"{pin}: the cached file is not the one that was put there; making it anew")
    missing = [pin for pin in pins if pin.name not in found]
    fetched = _from_envtest(missing, places, progress)
    found |= fetched
    missing = [pin for pin in missing if pin.name not in fetched]
    go: Go | None = None
    for place, pin in enumerate(missing, start=1):
        try:
            go = go or find_go(places.path) or _fetched_go(places, progress)
            with progress.step(f"[{place}/{len(missing)}] building {pin}"):
                found[pin.name] = store.put(pin, partial(_make, go, pin))
        except BuildFailed as failure:
            raise BinariesMissing(_nowhere(missing[place - 1 :], places, str(failure))) from failure
    return found


def _fetched_go(places: Places, progress: Progress) -> Go:
    with progress.step("fetching Go"):
        return fetch_go(places)


def _make(go: Go, pin: Pin, to: Path) -> None:
    go.build(pin, to)
    if not version_fits(pin, said := version_of(pin, to)):
        raise BuildFailed(f"the built program calls itself {said}, not {pin.version}")


def _from_envtest(pins: list[Pin], places: Places, progress: Progress) -> dict[str, Path]:
    """What setup-envtest has or can fetch; nothing where it is not installed or has no network."""
    program = shutil.which("setup-envtest", path=places.path)
    wanted = [pin for pin in pins if pin.in_envtest]
    if program is None or not wanted:
        return {}
    kubernetes = PINS["kube-apiserver"].minor
    with progress.step(f"asking setup-envtest for {', '.join(map(str, wanted))}"):
        argv = [program, "use", f"{kubernetes}.x", "-p", "path"]
        try:
            said = subprocess.run(argv, capture_output=True, text=True, timeout=600, check=False)
        except (OSError, subprocess.TimeoutExpired):
            return {}
    if said.returncode != 0:
        return {}
    folder = Path(said.stdout.strip())
    files = {pin.name: folder / pin.name for pin in wanted}
    return {
        name: file
        for name, file in files.items()
        if file.is_file() and version_fits(PINS[name], version_of(PINS[name], file))
    }


def _nowhere(pins: list[Pin], places: Places, why: str) -> str:
    looked = [
        f"KUBEBUILDER_ASSETS ({places.assets or 'not set'})",
        "PATH",
        str(places.binaries),
        "setup-envtest",
    ]
    return (
        f"needed and not there: {', '.join(map(str, pins))}.\n"
        f"Looked in: {', '.join(looked)}. Building failed:\n"
        + "".join(f"    {line}\n" for line in why.splitlines())
        + "Either give this machine a network with a Go module proxy (GOPROXY), or put the programs into a folder and name it"
        " in KUBEBUILDER_ASSETS."
    )
