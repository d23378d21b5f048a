"""A replica over Ray for real, on one machine: two supervisors are told what a group's pods are told, a small program takes the
engine's place, joins their cluster and puts an actor on each node; then one member's Ray is killed, and the group starts again.

vLLM's own CPU platform refuses Ray, so this is what a machine without GPUs can show of it: who is who, the address by which a node is
known, one reason on both sides, and a second life on the same ports. RAY is a virtual environment that has Ray; how long things take
is not measured.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "e2e"), str(ROOT / "runtime")]  # programs there find one another by bare name

from build import NAME, build  # noqa: E402
from cluster.processes import Ports  # noqa: E402
from plimsoll.api.v1alpha1.spec import LLMDeploymentSpec  # noqa: E402
from plimsoll.engines.command import EngineCommand, Member  # noqa: E402
from plimsoll.engines.vllm_groups import NODE_ADDRESS, RAY_PORT, before, ray_worker, words  # noqa: E402
from plimsoll.render.start import start_of  # noqa: E402
from supervised import descendants  # noqa: E402

PATIENCE_SECONDS: Final = 600.0
ADDRESSES: Final = ("127.0.0.2", "127.0.0.3")
"""Of the two pods; the first one leads."""
SPEC: Final = LLMDeploymentSpec.model_validate(
    {"model": {"source": "hf://tiny/tiny"}, "topology": {"executor": "ray"}}
)
ENGINE: Final = '''\
#!{python}
"""In the place of `vllm serve`: an actor on each node of the cluster, and /metrics while all of them answer."""
import http.server, os, sys, threading, time
import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy as On


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = b'vllm:num_requests_running{{engine="0"}} 0.0\\nvllm:num_requests_waiting{{engine="0"}} 0.0\\n'
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


class Rank:
    def where(self):
        return ray.util.get_node_ip_address()


ray.init(address="auto", _node_ip_address=os.environ["{address}"], log_to_driver=False)
while len(nodes := [one["NodeID"] for one in ray.nodes() if one["Alive"]]) < {pods}:
    time.sleep(0.2)
ranks = [ray.remote(num_cpus=0)(Rank).options(scheduling_strategy=On(node, soft=False)).remote() for node in nodes]
print("ranks on", *sorted(ray.get([one.where.remote() for one in ranks])), flush=True)
port = int(sys.argv[sys.argv.index("--port") + 1])
server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print("Application startup complete", flush=True)
while True:
    ray.get([one.where.remote() for one in ranks])
    time.sleep(0.5)
'''


class Pod:
    """One supervisor with what it starts; the kubelet's part, which is to expand $(NAME), is done here."""

    def __init__(self, rank: int, folder: Path, packed: Path, ray: Path, ports: dict[str, int]) -> None:
        self.folder = folder / str(rank)
        self.folder.mkdir(exist_ok=True)
        self.message = self.folder / "why"
        self.message.unlink(missing_ok=True)
        self._side = ports[f"side-{rank}"]
        member = Member(
            pods=len(ADDRESSES),
            rank=str(rank),
            leader=ADDRESSES[0],
            leads=rank == 0,
            mixture=False,
            start_seconds=600,
        )
        told = ray_worker(SPEC, member) or EngineCommand(
            argv=("vllm", "serve", "tiny", "--port", str(ports["engine"])),
            placed=tuple(word for flag in words(SPEC, "internal", member) for word in flag),
            before=before(SPEC, member),
        )
        start = start_of(told)
        expanded = [self._expanded(word, rank, ports["ray"]) for word in (*start.command, *start.args)]
        own = [f"--port={self._side}", f"--leader-port={ports['side-0']}", "--grace=5"]
        own += [f"--termination-log={self.message}", "--member", str(rank), str(len(ADDRESSES)), ADDRESSES[0]]
        path = f"{folder / 'bin'}:{ray / 'bin'}:{os.defpath}"
        with (self.folder / "output").open("wb") as output:
            self.process = subprocess.Popen(  # noqa: S603 - what the renderer says
                [sys.executable, "-I", "-S", packed, "serve", *own, "--", *expanded],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={
                    "PATH": path,
                    "HOME": str(folder),
                    "RAY_TMPDIR": str(folder),
                    NODE_ADDRESS: ADDRESSES[rank],
                },
                start_new_session=True,
            )

    @staticmethod
    def _expanded(word: str, rank: int, port: int) -> str:
        word = word.replace("$$", "$").replace(f"$({NODE_ADDRESS})", ADDRESSES[rank])
        return word.replace(f":{RAY_PORT}", f":{port}").replace(f"--port={RAY_PORT}", f"--port={port}")

    def state(self) -> str:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._side}/facts", timeout=10) as answer:
                return str(json.load(answer)["state"])
        except OSError:
            return ""

    def said(self) -> str:
        return (self.folder / "output").read_text(errors="replace")

    def raylet(self) -> int:
        return next(
            pid for pid, called in descendants(self.process.pid).items() if "/raylet/raylet " in called
        )

    def why(self) -> dict[str, Any]:
        self.process.wait(PATIENCE_SECONDS)
        told: dict[str, Any] = json.loads(self.message.read_text())
        return {key: told[key] for key in ("word", "message")}

    def end(self) -> None:
        for _ in range(2):  # no answer is waited for
            if self.process.poll() is None:
                self.process.send_signal(signal.SIGTERM)
        self.process.wait(PATIENCE_SECONDS)


def until(holds: Callable[[], bool], pods: list[Pod]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        ended = [one for one in pods if one.process.poll() is not None]
        if ended or time.monotonic() > deadline:
            raise SystemExit("\n".join(one.said()[-3000:] for one in pods))
        time.sleep(0.2)


def life(start: Callable[[], list[Pod]], *, kill: bool) -> dict[str, Any]:
    """From two starts to two ends."""
    pods = start()
    try:
        until(lambda: all(one.state() == "serving" for one in pods), pods)
        told = {"ranks_on": next(line for line in pods[0].said().splitlines() if line.startswith("ranks on"))}
        if not kill:
            return told
        os.kill(pods[1].raylet(), signal.SIGKILL)
        return {**told, "leader": pods[0].why(), "member": pods[1].why()}
    finally:
        for one in reversed(pods):
            one.end()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ray", type=Path, help="a virtual environment that has Ray")
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    ports = Ports()
    taken = {name: ports.take() for name in ("engine", "side-0", "side-1", "ray")}
    ports.release()
    folder = Path(
        tempfile.mkdtemp(prefix="ray-")
    )  # short: the paths of Ray's sockets may have 107 characters
    try:
        (folder / "bin").mkdir()
        engine = folder / "bin" / "vllm"
        engine.write_text(
            ENGINE.format(python=chosen.ray / "bin" / "python3", address=NODE_ADDRESS, pods=len(ADDRESSES))
        )
        engine.chmod(0o755)
        packed = build(folder / NAME)

        def start() -> list[Pod]:
            return [Pod(rank, folder, packed, chosen.ray, taken) for rank in range(len(ADDRESSES))]

        report = {"first": life(start, kill=True), "again": life(start, kill=False)}
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(json.dumps(report, indent=None if chosen.json else 1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
