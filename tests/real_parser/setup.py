"""Make the environment in which vLLM's own argument parser runs without a GPU: `python -m tests.real_parser.setup`.

A virtual environment with what the parser imports, and of each vLLM release only its Python files, all in a cache folder
outside the repository. About 0.6 GB to download, minutes, and 1.4 to 5 GB on disk, by which torch there is.
Run again it keeps what is there already.
"""

import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

VERSIONS = ("0.33.0", "0.32.0", "0.20.2")
FOLDER_VARIABLE = "PLIMSOLL_REAL_PARSER"
TORCH = ("torch==2.13.0",)
IMPORTED = (
    "aiohttp",
    "blake3",
    "cachetools",
    "cbor2",
    "cloudpickle",
    "einops",
    "fastapi>=0.133.0,<0.137.0",
    "huggingface_hub>=1.31.0",
    "jmespath",
    "jsonschema",
    "loguru",
    "msgspec",
    "numpy",
    "openai",
    "orjson",
    "oss-harmony",
    "partial-json-parser",
    "pillow",
    "prometheus_client",
    "prometheus-fastapi-instrumentator",
    "psutil",
    "py-cpuinfo",
    "pybase64",
    "pydantic>=2.12",
    "python-json-logger",
    "pyyaml",
    "pyzmq",
    "regex",
    "requests",
    "setproctitle",
    "starlette>=1.0.1",
    "tiktoken",
    "tqdm",
    "transformers>=5.16.1,<5.21.0",
    "uvicorn",
    "uvloop",
    "watchfiles",
)
# These would pull in packages for GPUs; the parser needs only their Python.
ALONE = (
    "apache-tvm-ffi",
    "compressed-tensors==0.17.0",
    "gguf",
    "llguidance",
    "model-hosting-container-standards",
    "xgrammar==0.2.8",
)
KEPT = (".py", ".json", "METADATA", "entry_points.txt")


def folder() -> Path:
    """Where the environment is: the folder that the variable names, else one in the user's cache."""
    told = os.environ.get(FOLDER_VARIABLE)  # noqa: TID251 - an entry point
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"  # noqa: TID251
    return Path(told) if told else Path(cache) / "plimsoll" / "real-parser"


def missing(place: Path) -> str | None:
    """What keeps the environment from being used, or None where it is whole."""
    if not (place / "venv" / "bin" / "python").exists():
        return f"there is no {place / 'venv'}"
    absent = [version for version in VERSIONS if not (place / f"vllm-{version}" / "vllm").is_dir()]
    return f"there is no vLLM {', '.join(absent)} in {place}" if absent else None


def make(place: Path) -> None:
    python = place / "venv" / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(place / "venv")], check=True)
    pip = [str(python), "-m", "pip", "--quiet", "--disable-pip-version-check"]
    marker = place / ".installed"
    wanted = "\n".join((*TORCH, *IMPORTED, *ALONE))
    if not marker.exists() or marker.read_text("utf-8") != wanted:
        subprocess.run([*pip, "install", *TORCH], check=True)
        subprocess.run([*pip, "install", *IMPORTED], check=True)
        subprocess.run([*pip, "install", "--no-deps", *ALONE], check=True)
        marker.write_text(wanted, "utf-8")
    for version in VERSIONS:
        if not (place / f"vllm-{version}" / "vllm").is_dir():
            unpack(pip, version, place / f"vllm-{version}")


def unpack(pip: list[str], version: str, target: Path) -> None:
    """The Python files of one release; its compiled parts, most of its size, are left out."""
    with tempfile.TemporaryDirectory() as scratch:
        fetch = [
            "download",
            "--no-deps",
            "--only-binary=:all:",
            "--python-version",
            "3.12",
            "--dest",
            scratch,
        ]
        subprocess.run([*pip, *fetch, f"vllm=={version}"], check=True)
        (wheel,) = Path(scratch).glob("vllm-*.whl")
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                if name.endswith(KEPT) and "/third_party/" not in name:
                    archive.extract(name, target)
    third_party = target / "vllm" / "third_party"
    third_party.mkdir(parents=True, exist_ok=True)
    (third_party / "__init__.py").touch()


if __name__ == "__main__":
    place = folder()
    place.mkdir(parents=True, exist_ok=True)
    make(place)
    sys.stdout.write(f"{place}\n")
