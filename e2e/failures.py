"""Ways for the real engine to fail that a CPU can show, each with the word that a person should be told: a table.

What a container would be without (a library, memory, a disk with room) is taken away in a mount namespace and a control group of
the engine's own, which needs root; the program that makes them becomes the supervisor.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import socket
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import models
from asking import Engine
from supervised import Supervised, Told
from surroundings import HUB_NAME, Shapes, answering, dense_shapes, limited, serving_files, zeros

MIB: Final = 1 << 20


@dataclass(slots=True)
class Scene:
    """What a failure is made of; each step of a case changes it."""

    folder: Path
    model: str | Path
    words: list[str] = field(default_factory=list)
    own: list[str] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)
    kv_gib: int = 1
    load: str = "dummy"
    mounts: list[str] = field(default_factory=list)
    """Lines of a shell in a mount namespace of its own."""
    program: Sequence[str | Path] = ()
    held: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    """What is to last until the end."""

    def told(self) -> Told:
        script = "\n".join(["set -e", *self.mounts, 'exec "$@"'])
        within = ("unshare", "--mount", "sh", "-c", script, "sh") if self.mounts else ()
        return Told(
            words=self.words,
            own=self.own,
            environment=self.environment,
            kv_gib=self.kv_gib,
            load=self.load,
            within=within,
            program=self.program,
        )

    def config(self, **changed: Any) -> None:
        """Keys of the model's config.json; None takes one away."""
        file = Path(self.model) / "config.json"
        body = {**json.loads(file.read_text()), **changed}
        file.write_text(json.dumps({key: value for key, value in body.items() if value is not None}))


Step = Callable[[Scene], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    name: str
    word: str
    steps: tuple[Step, ...] = ()
    serving: Callable[[Supervised], None] | None = None
    """What is done to an engine that serves."""
    root: bool = False
    in_tests: bool = False
    """Whether the tests provoke it too; the rest is the benchmark's."""


# Steps


def words(*more: str) -> Step:
    return lambda scene: scene.words.extend(more)


def environment(**more: str) -> Step:
    return lambda scene: scene.environment.update(more)


def config(**changed: Any) -> Step:
    return lambda scene: scene.config(**changed)


def mounted(*lines: str) -> Step:
    return lambda scene: scene.mounts.extend(lines)


def read_only(*places: str) -> Step:
    """What a container without a volume there has; all but the folder of the case, and no working directory to fall back on."""

    def step(scene: Scene) -> None:
        scene.mounts += [f"mount --bind {place} {place}" for place in (*places, scene.folder)]
        scene.mounts += [f"mount -o remount,ro,bind {place}" for place in places]
        scene.mounts.append("cd /proc")

    return step


def weights(change: Callable[[Shapes], None] | None = None, cut: int | None = None) -> Step:
    """A checkpoint of zeros, in the shapes that `change` leaves; `cut` bytes of it."""

    def step(scene: Scene) -> None:
        shapes = dense_shapes()
        if change is not None:
            change(shapes)
        content = zeros(shapes)
        (Path(scene.model) / "model.safetensors").write_bytes(content[:cut])
        scene.load = "auto"

    return step


def file(name: str, content: bytes) -> Step:
    def step(scene: Scene) -> None:
        (Path(scene.model) / name).write_bytes(content)
        scene.load = "auto"

    return step


def hub(status: int, code: str = "") -> Step:
    """The model is on a hub that answers so."""

    def step(scene: Scene) -> None:
        scene.model = HUB_NAME
        url = scene.held.enter_context(answering(status, {"X-Error-Code": code} if code else {}))
        scene.environment |= {"HF_HUB_OFFLINE": "0", "HF_ENDPOINT": url}

    return step


def full_hub(room: str) -> Step:
    """The model is on a hub that has it, and the disk that it is fetched to has little room."""

    def step(scene: Scene) -> None:
        weights()(scene)
        url = scene.held.enter_context(serving_files(Path(scene.model)))
        home = scene.folder / "hub"
        home.mkdir()
        scene.model = HUB_NAME
        scene.environment |= {"HF_HUB_OFFLINE": "0", "HF_ENDPOINT": url, "HF_HOME": str(home)}
        scene.mounts.append(f"mount -t tmpfs -o size={room} tmpfs {home}")

    return step


def memory(limit: int) -> Step:
    """A control group of its own, seen where a container sees its own."""

    def step(scene: Scene) -> None:
        group = scene.held.enter_context(limited(limit))
        seen = "/sys/fs/cgroup/memory" if "memory" in group.parts else "/sys/fs/cgroup"
        scene.mounts += [f"echo $$ > {group}/cgroup.procs", f"mount --bind {group} {seen}"]

    return step


def taken_port(scene: Scene) -> None:
    listener = scene.held.enter_context(socket.create_server(("127.0.0.1", 0)))
    scene.words.append(f"--port={listener.getsockname()[1]}")


def program(*argv: str) -> Step:
    def step(scene: Scene) -> None:
        scene.program = argv

    return step


def hangs_after(seconds: int) -> Step:
    """Long enough for a first token on a machine that is busy with other things."""
    return lambda scene: scene.own.append(f"--hang-seconds={seconds}")


# What is done to an engine that serves


def kill(name: str, number: int = signal.SIGKILL) -> Callable[[Supervised], None]:
    return lambda running: os.kill(running.one(name), number)


def stop_under_load(name: str) -> Callable[[Supervised], None]:
    """It stands still while a request runs."""

    def act(running: Supervised) -> None:
        asked = threading.Thread(target=_ask, args=(running.url,), daemon=True)
        asked.start()
        running.answering()
        os.kill(running.one(name), signal.SIGSTOP)

    return act


def _ask(url: str) -> None:
    """An engine that fails leaves it without an answer or with half of one, or says so itself."""
    with contextlib.suppress(OSError, AssertionError, http.client.HTTPException, ValueError):
        Engine(url=url).complete("dense", [5, 6, 7], 4000)


def _wider(shapes: Shapes) -> None:
    shapes["model.norm.weight"] = (512,)


def _fewer(shapes: Shapes) -> None:
    """A norm's: vLLM 0.32 serves without a word where a matrix is missing."""
    del shapes["model.layers.3.input_layernorm.weight"]


def _foreign(shapes: Shapes) -> None:
    shapes["model.layers.0.mlp.other_proj.weight"] = (4, 4)


LIBRARIES: Final = "$(dirname $(/sbin/ldconfig -p | sed -n 's/.*libnuma.so.1 .*=> //p' | head -1))"
WITHOUT_LIBNUMA: Final = (
    f"libraries={LIBRARIES}",
    "mount -t tmpfs tmpfs /mnt && mkdir /mnt/over /mnt/work",
    "mount -t overlay -o lowerdir=$libraries,upperdir=/mnt/over,workdir=/mnt/work overlay $libraries",
    "rm $libraries/libnuma.so.1",
)
CASES: tuple[Case, ...] = (
    Case(name="a flag of another release", word="BadFlag", steps=(words("--swap-space=4"),)),
    Case(name="a value of another kind", word="BadFlag", steps=(words("--max-num-seqs=many"),)),
    Case(name="an abbreviation of two flags", word="BadFlag", steps=(words("--device=cuda"),)),
    Case(name="a Service called vllm", word="BadEnvironment", steps=(environment(VLLM_PORT="tcp://10.0.0.7:80"),)),
    Case(
        name="a variable of another release",
        word="BadEnvironment",
        steps=(environment(VLLM_LOG_LEVEL="debug"), words("--fail-on-environ-validation")),
    ),
    Case(name="a quantization of another release", word="BadSetting", steps=(words("--quantization=squeezellm"),)),
    Case(name="ranks that do not divide the heads", word="BadSetting", steps=(words("--tensor-parallel-size=3"),)),
    Case(name="a context beyond the model's", word="BadSetting", steps=(words("--max-model-len=100000"),)),
    Case(name="a batch smaller than its sequences", word="BadSetting", steps=(words("--max-num-batched-tokens=64", "--max-num-seqs=128"),)),
    Case(name="a share of memory above one", word="BadSetting", steps=(words("--gpu-memory-utilization=1.9"),)),
    Case(name="no sequences at all", word="BadSetting", steps=(words("--max-num-seqs=0"),)),
    Case(name="a cache type of another release", word="BadFlag", steps=(words("--kv-cache-dtype=fp16"),)),
    Case(name="a load format that nobody knows", word="BadSetting", steps=(words("--load-format=nope"),)),
    Case(name="a chat template that is not there", word="BadSetting", steps=(words("--chat-template=/nowhere.jinja"),)),
    Case(name="an adapter that is not there", word="BadSetting", steps=(words("--enable-lora", "--lora-modules=a=/nowhere"),)),
    Case(name="a broken config.json", word="BadCheckpoint", steps=(file("config.json", b'{"architectures": ['),)),
    Case(name="a file of weights cut short", word="BadCheckpoint", steps=(weights(cut=4 * MIB),)),
    Case(name="a header cut short", word="BadCheckpoint", steps=(weights(cut=100),), in_tests=True),
    Case(name="a page of HTML for weights", word="BadCheckpoint", steps=(file("model.safetensors", b"<!doctype html>" * 20),)),
    Case(name="no weights at all", word="BadCheckpoint", steps=(lambda scene: setattr(scene, "load", "auto"),)),
    Case(name="a tensor of another shape", word="BadCheckpoint", steps=(weights(_wider),)),
    Case(name="a tensor that is missing", word="BadCheckpoint", steps=(weights(_fewer),), in_tests=True),
    Case(name="a tensor too many", word="BadCheckpoint", steps=(weights(_foreign),)),
    Case(name="an architecture that nobody knows", word="UnknownArchitecture", steps=(config(architectures=["FooForCausalLM"]),)),
    Case(name="a kind of model that nobody knows", word="UnknownArchitecture", steps=(config(model_type="foo", architectures=["FooForCausalLM"]),)),
    Case(name="a model with code of its own", word="RemoteCode", steps=(config(model_type="foo", auto_map={"AutoConfig": "configuration_foo.FooConfig"}),)),
    Case(name="a folder that is not there", word="ModelNotFound", steps=(lambda scene: setattr(scene, "model", "/nowhere/model"),)),
    Case(name="a model that the hub has not", word="ModelNotFound", steps=(hub(404, "RepoNotFound"),)),
    Case(name="a revision that the hub has not", word="ModelNotFound", steps=(hub(404, "RevisionNotFound"), words("--revision=nope"))),
    Case(name="a gated model", word="GatedModel", steps=(hub(403, "GatedRepo"),)),
    Case(name="a token that the hub refuses", word="GatedModel", steps=(hub(401),)),
    Case(name="a hub that fails", word="Download", steps=(hub(503),)),
    Case(
        name="a hub that is not there",
        word="Download",
        steps=(hub(200), environment(HF_ENDPOINT="http://hub.invalid")),
    ),
    Case(name="a disk too small for the weights", word="DiskFull", steps=(full_hub("2m"),), root=True, in_tests=True),
    Case(
        name="a folder for temporary files without room",
        word="DiskFull",
        steps=(mounted("mount -t tmpfs -o size=4k,nr_inodes=4 tmpfs /mnt"), environment(TMPDIR="/mnt", VLLM_CACHE_ROOT="/mnt")),
        root=True,
    ),
    Case(
        name="no folder for temporary files",
        word="NotWritable",
        steps=(read_only("/tmp", "/var/tmp"),),
        root=True,
        in_tests=True,
    ),
    Case(
        name="little shared memory between workers",
        word="SharedMemory",
        steps=(mounted("mount -t tmpfs -o size=64k tmpfs /dev/shm"), words("--tensor-parallel-size=2")),
        root=True,
        in_tests=True,
    ),
    Case(name="less memory than the cache is given", word="HostMemoryTaken", steps=(lambda scene: setattr(scene, "kv_gib", 4096),), in_tests=True),
    Case(name="less free memory than the cache is given", word="NoKvRoom", steps=(lambda scene: setattr(scene, "kv_gib", machine_gib()),)),
    Case(name="a request longer than the cache", word="RequestLongerThanPool", steps=(words("--num-gpu-blocks-override=8"),)),
    Case(name="a start that the kernel kills for memory", word="HostOutOfMemory", steps=(memory(700 * MIB), lambda scene: setattr(scene, "kv_gib", 0)), root=True, in_tests=True),
    Case(name="no libnuma", word="MissingLibrary", steps=(mounted(*WITHOUT_LIBNUMA),), root=True, in_tests=True),
    Case(name="a Python without the engine", word="NoEngine", steps=(program("/usr/bin/env", "python3", "-m", "vllm"),)),
    Case(name="an image without the program", word="NoEngine", steps=(program("/nowhere/vllm", "serve"),)),
    Case(name="a port that is taken", word="PortTaken", steps=(taken_port,), in_tests=True),
    # One server waits for its core without a limit; of several, each has it.
    Case(name="an engine that is not ready in time", word="StartTimeout", steps=(environment(VLLM_ENGINE_READY_TIMEOUT_S="1"), words("--api-server-count=2"))),
    Case(name="a worker that is killed", word="WorkerLost", serving=kill("Worker")),
    Case(name="a core that is killed", word="WorkerLost", serving=kill("EngineCore")),
    Case(name="a server that is killed", word="EngineEnded", serving=kill("vllm.entrypoints")),
    Case(name="a core that stands still", word="Hang", steps=(hangs_after(10),), serving=stop_under_load("EngineCore"), in_tests=True),
    # By the engine's own limit for a step, which comes long before ours.
    Case(name="a worker that stands still", word="Hang", steps=(environment(VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS="20"),), serving=stop_under_load("Worker")),
    Case(name="a server that stands still", word="Hang", steps=(hangs_after(10),), serving=stop_under_load("vllm.entrypoints")),
)  # fmt: skip


def machine_gib() -> int:
    """All the memory of this machine, of which some is always in use."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 30


def provoked(case: Case, running: Supervised, folder: Path) -> dict[str, Any]:
    """The failure, as the supervisor left it for the kubelet."""
    scene = Scene(folder, models.dense().write(folder / "dense"))
    with scene.held:
        for step in case.steps:
            step(scene)
        running.start(scene.model, scene.told())
        try:
            if case.serving is None:
                running.never_serving()
            else:
                running.serving()
                case.serving(running)
            return running.failure()
        finally:
            running.close()
