"""How long the test cluster takes to be there, part by part, and what its programs hold in memory.

`--cold` also builds all programs from nothing, in an empty cache of its own: ten minutes and more. `--cycles N` does nothing but
start and end a cluster with a fleet N times, and looks after each time for what is left. What this machine cannot do is null, and
named with the reason. Times are of the clock, since that is what a person waits for; the load of the machine is printed beside.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import urllib3

ROOT: Final = Path(__file__).parent.parent
E2E: Final = ROOT / "e2e"
sys.path.insert(0, str(E2E))  # programs there find one another by bare name, as those here do

from arguments import count, from_zero  # noqa: E402
from cluster import Cluster, ClusterFailed  # noqa: E402
from cluster.binaries import PINS, BinariesMissing, Places, ensure  # noqa: E402
from cluster.binaries.progress import Progress  # noqa: E402
from cluster.estate import estate  # noqa: E402
from cluster.fleet import read_fleet  # noqa: E402
from cluster.images import VLLM_CPU, ensure_images  # noqa: E402
from cluster.node import packages  # noqa: E402
from cluster.processes import memory_mb  # noqa: E402
from cluster.remains import Footprint, open_files  # noqa: E402
from common import is_ready  # noqa: E402
from engines import PORT, engine  # noqa: E402
from models import dense  # noqa: E402

NODES: Final = 1000
AIMS: Final = {
    "cold.binaries_s": 600,
    "warm.binaries_s": 5,
    "warm.control_plane_s": 5,
    "warm.nodes_1000_s": 20,
    "warm.real_node_s": 20,
    "warm.vllm_first_token_s": 60,
}
GONE_SECONDS: Final = 30.0
POLL_SECONDS: Final = 0.05
Figures = dict[str, float | None]


class Testbed:
    """What was measured so far."""

    def __init__(self, places: Places, progress: Progress) -> None:
        self.places = places
        self.progress = progress
        self.cold: Figures = {}
        self.warm: Figures = {}
        self.rss_mb: dict[str, int] = {}
        self.cpu_s: dict[str, float] = {}
        self.missing: dict[str, str] = {}

    @contextmanager
    def timed(self, figures: Figures, name: str) -> Iterator[None]:
        """A figure, or null with the reason."""
        figures[name] = None
        started = time.monotonic()
        try:
            with self.progress.step(f"measuring {name}"):
                yield
        except (ClusterFailed, BinariesMissing, RuntimeError, OSError, subprocess.SubprocessError) as error:
            self.missing[name] = str(error).partition("\n")[0]
            return
        figures[name] = round(time.monotonic() - started, 2)

    def weigh(self, cluster: Cluster) -> None:
        """The most that each program held."""
        for name, pid in cluster.processes.pids.items():
            if memory := memory_mb(pid):
                self.rss_mb[name] = max(memory, self.rss_mb.get(name, 0))

    def weigh_pods(self, cluster: Cluster, name: str, word: str) -> None:
        """What runs inside real nodes, which are processes of the cluster: all whose command has the word, together."""
        nodes = {pid for one, pid in cluster.processes.pids.items() if one.startswith("real-")}
        inside = [pid for pid in processes() if nodes & ancestors(pid) and word in command(pid)]
        self.rss_mb[name] = sum(memory_mb(pid) or 0 for pid in inside)

    def report(self) -> dict[str, Any]:
        return {
            "cold": self.cold,
            "warm": self.warm,
            "rss_mb": self.rss_mb,
            "cpu_s": self.cpu_s,
            "missing": self.missing,
            "machine": {"cores": os.cpu_count(), "load_1m": round(os.getloadavg()[0], 2)},
        }


def measure(bed: Testbed, *, cold: bool) -> None:
    if cold:
        with bed.timed(bed.cold, "binaries_s"):
            build_from_nothing()
    with bed.timed(bed.warm, "binaries_s"):
        ensure(PINS, bed.places, bed.progress)
    with started(bed, "control_plane_s") as cluster:
        if cluster:
            before = cpu_seconds(cluster)
            with bed.timed(bed.warm, f"nodes_{NODES}_s"):
                cluster.simulator.load(estate(NODES))
            # What it takes however busy the machine is.
            bed.cpu_s[f"nodes_{NODES}"] = round(cpu_seconds(cluster) - before, 1)
            bed.weigh(cluster)
    measure_real(bed)


def measure_real(bed: Testbed) -> None:
    """A node whose pods run, and an engine in one of them. Preparing machine and image is not part of it."""
    names = ("real_node_s", "vllm_first_token_s")
    try:
        packages.require_root()
        packages.require(packages.NODE, bed.progress)
        ensure_images([VLLM_CPU], bed.places, bed.progress)
    except (packages.Unavailable, ClusterFailed, BinariesMissing, RuntimeError, OSError) as error:
        for name in names:
            bed.warm[name], bed.missing[name] = None, str(error).partition("\n")[0]
        return
    with started(bed, names[0], real_nodes=1) as cluster:
        if cluster:
            with bed.timed(bed.warm, names[1]):
                first_token(cluster)
            bed.weigh(cluster)
            bed.weigh_pods(cluster, "vllm", "vllm")


@contextmanager
def started(bed: Testbed, name: str, *, real_nodes: int = 0) -> Iterator[Cluster | None]:
    """A cluster whose start is measured; None where it did not."""
    with ExitStack() as held:
        cluster = Cluster(places=bed.places, progress=bed.progress, real_nodes=real_nodes)
        with bed.timed(bed.warm, name):
            held.enter_context(cluster)
        yield cluster if bed.warm[name] is not None else None


def first_token(cluster: Cluster) -> None:
    """From applying the objects to the first piece of an answer."""
    model, name = dense(), "engine"
    for one in (model.config_map(), *engine(model, name)):
        kind = {"ConfigMap": "configmaps", "Service": "services", "Pod": "pods"}[one["kind"]]
        cluster.api.apply(f"/api/v1/namespaces/default/{kind}/{one['metadata']['name']}", one)
    path = f"/api/v1/namespaces/default/pods/{name}"
    wait(lambda: is_ready(cluster.api.get(path)), 600)
    address = cluster.api.get(path)["status"]["podIP"]
    asked = {"model": model.name, "prompt": "one two three", "max_tokens": 8, "stream": True}
    answer = urllib3.request(
        "POST", f"http://{address}:{PORT}/v1/completions", json=asked, preload_content=False, timeout=60
    )
    if answer.status != 200:
        raise ClusterFailed(f"the engine answers {answer.status}: {answer.data.decode()[:200]}")
    next(answer.stream(1))
    answer.close()


def wait(done: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not done():
        if time.monotonic() > deadline:
            raise ClusterFailed(f"not there after {seconds:.0f} s")
        time.sleep(POLL_SECONDS)


def cpu_seconds(cluster: Cluster) -> float:
    """Of its programs so far."""
    ticks = 0
    for pid in cluster.processes.pids.values():
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def processes() -> list[int]:
    return [int(one.name) for one in Path("/proc").iterdir() if one.name.isdigit()]


def ancestors(pid: int) -> set[int]:
    found: set[int] = set()
    while pid > 1:
        try:
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, IndexError):
            break
        found.add(pid)
    return found


def command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def build_from_nothing() -> None:
    """In a process of its own, with empty caches of ours and of Go's."""
    with tempfile.TemporaryDirectory(prefix="plimsoll-cold-") as folder:
        own = {"PLIMSOLL_CACHE": "cache", "GOCACHE": "built", "GOMODCACHE": "modules"}
        environ = dict(os.environ)  # noqa: TID251 - proxies and mirrors are for the build
        environ |= {name: str(Path(folder) / place) for name, place in own.items()}
        environ["GOFLAGS"] = "-modcacherw"  # or the folder could not be removed
        environ.pop("KUBEBUILDER_ASSETS", None)
        subprocess.run([sys.executable, "-m", "cluster", "programs"], cwd=E2E, env=environ, check=True)


def cycle(times: int, bed: Testbed, real_nodes: int) -> int:
    """Whether nothing was left; each round has a control plane, a fleet with pods of others, and the real nodes asked for."""
    if real_nodes:
        packages.require_root()
        packages.require(packages.NODE, bed.progress)
    files: list[set[str]] = []
    failures = 0
    for number in range(1, times + 1):
        started = time.monotonic()
        with (
            Cluster(places=bed.places, progress=bed.progress, real_nodes=real_nodes) as cluster,
            cluster.fleet(read_fleet("h100")),
        ):
            footprint = Footprint.of(cluster)
        ended = time.monotonic()
        while (left := footprint.left()) and time.monotonic() - ended < GONE_SECONDS:
            time.sleep(POLL_SECONDS)
        files.append(open_files())
        failures += bool(left)
        print(
            f"{number:>3}/{times}  {ended - started:5.1f} s  {'; '.join(left) or 'nothing left'}", flush=True
        )
    more = sorted(files[-1] - files[0])
    print(f"{failures} of {times} left something; this process has {len(more)} more open: {more}")
    return 1 if failures or more else 0


def table(report: dict[str, Any]) -> str:
    lines = [f"{'':<28}{'seconds':>9}{'aim':>7}"]
    for part in ("cold", "warm"):
        for name, seconds in report[part].items():
            said = "-" if seconds is None else f"{seconds:.1f}"
            lines.append(f"{part + '.' + name:<28}{said:>9}{AIMS[part + '.' + name]:>7}")
    lines += ["", f"{'':<28}{'MB':>9}"]
    lines += [f"{name:<28}{memory:>9}" for name, memory in report["rss_mb"].items()]
    lines += ["", *(f"{name}: {spent} s of processor time" for name, spent in report["cpu_s"].items())]
    lines += ["", *(f"{name}: {why}" for name, why in report["missing"].items())]
    return "\n".join([*lines, f"{report['machine']['cores']} cores, load {report['machine']['load_1m']}"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--cold", action="store_true", help="also build all programs from nothing")
    parser.add_argument(
        "--cycles", type=count, metavar="N", help="start and end a cluster N times, and nothing else"
    )
    parser.add_argument(
        "--real-nodes", type=from_zero, default=0, metavar="N", help="so many in each of these cycles"
    )
    chosen = parser.parse_args()
    places = Places.of(os.environ)  # noqa: TID251 - this is the entry point
    bed = Testbed(places, Progress(sys.stderr))
    if chosen.cycles:
        return cycle(chosen.cycles, bed, chosen.real_nodes)
    measure(bed, cold=chosen.cold)
    report = bed.report()
    print(json.dumps(report, indent=1) if chosen.json else table(report))
    return 0


if __name__ == "__main__":
    sys.exit(main())
