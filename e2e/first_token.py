"""The part of `make demo` that ends with a token of the real engine: as a pod on a real node, or, without root, as a plain process.

Either way the engine is started with what the planner and the renderer say for `hello.yaml`, and nothing else.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import yaml

import models
from cluster.binaries import BinariesMissing, Places
from cluster.binaries.progress import Progress
from cluster.engine import EngineProcess, EngineUnavailable
from cluster.images import VLLM_CPU, VLLM_CPU_VERSION, ensure_images, supervisor
from cluster.node import Unavailable, packages

ROOT: Final = Path(__file__).parent.parent
RESOURCE: Final = ROOT / "e2e" / "hello.yaml"
SPACE: Final = "hello"
QUESTION: Final = {
    "model": "tiny",
    "messages": [{"role": "user", "content": "Hello, who are you?"}],
    "max_tokens": 12,
}
ANSWER_SECONDS: Final = 120.0
OWN: Final = frozenset({"OMP_NUM_THREADS", "VLLM_CPU_KVCACHE_SPACE", "VLLM_CPU_OMP_THREADS_BIND"})
"""Of a pod's environment what makes an engine another one; the rest says where a pod's volumes are."""


def prepare(places: Places, progress: Progress) -> str | None:
    """Everything that takes minutes for a real node with the engine's image on it; why not, where it cannot be had."""
    try:
        packages.require_root()
        packages.require(packages.NODE, progress)
        with TemporaryDirectory() as folder:
            ensure_images([VLLM_CPU, supervisor(Path(folder))], places, progress)
    except (Unavailable, BinariesMissing, RuntimeError, OSError) as why:
        return str(why)
    return None


def storage(folder: Path) -> Path:
    """The model's files, and a manifest of the volume that has them. A real node sees the folders of its machine."""
    model = models.dense().write(folder / "tiny")
    objects = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}},
        *models.volume(model, "tiny", SPACE),
    ]
    file = folder / "volume.yaml"
    file.write_text(yaml.safe_dump_all(objects, sort_keys=False))
    return file


def ask(url: str) -> str:
    """One question as anybody's client asks it, shown with its answer. OSError where none comes, or one without a token."""
    body = json.dumps(QUESTION)
    print(f"\n$ curl {url}/v1/chat/completions -H 'Content-Type: application/json' -d '{body}'", flush=True)
    request = urllib.request.Request(
        f"{url}/v1/chat/completions", data=body.encode(), headers={"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=ANSWER_SECONDS) as answer:
        found = json.load(answer)
    said = str(found["choices"][0]["message"]["content"])
    print(f"{said!r}, {found['usage']['completion_tokens']} tokens, from {found['model']}", flush=True)
    if not found["usage"]["completion_tokens"]:
        raise OSError("the answer is empty")
    return said


def by_process(folder: Path, places: Places, progress: Progress) -> str | None:
    """The engine as a process on this machine, behind the plan for a host like it; why not, where it cannot be had."""
    args, environment = _planned(folder)
    model = models.dense().write(folder / "tiny")
    try:
        with EngineProcess(model, *args, environment=environment, places=places, progress=progress) as engine:
            ask(engine.url)
    except (EngineUnavailable, OSError) as why:
        return str(why)
    return None


def _planned(folder: Path) -> tuple[list[str], dict[str, str]]:
    """The words and the environment of the container that the operator would make."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    host = {"name": "host", "nodes": 1, "labels": {"kubernetes.io/hostname": "real-1"}}
    sizes = {"cpu": str(os.cpu_count() or 1), "memory": f"{memory // 2**20}Mi"}
    fleet, config = folder / "host.yaml", folder / "config.yaml"
    about = {"apiVersion": "plimsoll.dev/v1alpha1"}
    fleet.write_text(yaml.safe_dump({**about, "kind": "Fleet", "pools": [{**host, **sizes}]}))
    versions = [{"version": VLLM_CPU_VERSION, "cpuImage": VLLM_CPU.reference}]
    config.write_text(yaml.safe_dump({**about, "kind": "OperatorConfig", "engines": {"versions": versions}}))
    command = [str(Path(sys.executable).parent / "plimsoll"), "render", "-f", str(RESOURCE)]
    command += ["--snapshot", str(fleet), "--config", str(config)]
    made = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    (workload,) = (one for one in yaml.safe_load_all(made) if one["kind"] == "Deployment")
    (container,) = workload["spec"]["template"]["spec"]["containers"]
    words = [*container["command"], *container["args"]]
    words = words[words.index("serve", words.index("vllm")) + 1 :]  # whatever starts and watches it in a pod
    at = words.index("--port")
    # The folder comes first and the port is whatever is free here.
    kept = [*words[1:at], *words[at + 2 :]]
    environment = {one["name"]: one["value"] for one in container["env"] if one["name"] in OWN}
    return kept, environment
