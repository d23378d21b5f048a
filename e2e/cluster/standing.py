"""A cluster that stands between commands: one process in the background holds it, and the commands find it by its folder.

The holder is an ordinary owner of a `Cluster`, so whatever ends it ends the cluster. It lives as long as it holds a lock on a file
in the folder: what a dead one left is told from what a living one has without trusting process ids.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import IO, Any, Final

import yaml

from cluster.cluster import Cluster
from cluster.fleet import read_fleet
from cluster.images import VLLM_CPU, VLLM_CPU_VERSION, supervisor_reference
from cluster.processes import ClusterFailed

PACKAGE: Final = Path(__file__).parent
CRD: Final = PACKAGE.parent.parent / "crds" / "llmdeployments.plimsoll.dev.yaml"
WATCH_SECONDS: Final = 1.0
SCRAPE_MS: Final = 2000
STOP_SECONDS: Final = 120.0
TAIL_LINES: Final = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What stands in a cluster beside its control plane."""

    fleet: str | None = None
    """A ready fleet's name, or the absolute path of a file."""
    real_node: bool = False
    prometheus: bool = False
    operator: bool = False

    def args(self) -> list[str]:
        """As the command line says it."""
        return [
            *(["--fleet", self.fleet] if self.fleet else []),
            *(["--real-node"] if self.real_node else []),
            *(["--prometheus"] if self.prometheus else []),
            *(["--operator"] if self.operator else []),
        ]

    def engines(self) -> dict[str, Any]:
        """For the admin's config: what a real node runs, which has no GPU."""
        if not self.real_node:
            return {}
        return {
            "engines": {"versions": [{"version": VLLM_CPU_VERSION, "cpuImage": VLLM_CPU.reference}]},
            "registry": {"runtimeImage": supervisor_reference()},
        }


@dataclass(frozen=True, slots=True)
class Standing:
    """A cluster's folder, whether or not one stands there."""

    folder: Path

    @property
    def cluster_folder(self) -> Path:
        return self.folder / "cluster"

    @property
    def holder_log(self) -> Path:
        return self.folder / "holder.log"

    def is_held(self) -> bool:
        """Whether a holder lives."""
        try:
            with self._lock():
                return False
        except BlockingIOError:
            return True
        except FileNotFoundError:
            return False

    def read(self) -> dict[str, Any] | None:
        """What the holder says of its cluster; None until it is ready, and when it is gone."""
        if not self.is_held():
            return None
        try:
            found: dict[str, Any] = json.loads((self.folder / "ready.json").read_text())
        except FileNotFoundError:
            return None
        return found

    @property
    def config(self) -> Path:
        """The admin's config that belongs to the fleet, for the planner."""
        return self.cluster_folder / "config.yaml"

    def up(self, wanted: Wanted) -> dict[str, Any]:
        """Start a holder in the background and wait until its cluster is ready. One that stands and has all this is left alone."""
        if self.is_held():
            if (about := self.read()) and about["wanted"] == wanted.args():
                return about
            raise ClusterFailed(
                f"another cluster stands in {self.folder}"
                f"{', with ' + ' '.join(about['wanted']) if about and about['wanted'] else ''}; take it down first"
            )
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        argv = [sys.executable, "-m", PACKAGE.name, "hold", str(self.folder), *wanted.args()]
        try:
            with self.holder_log.open("wb") as log:
                subprocess.run(
                    argv,
                    cwd=PACKAGE.parent,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                    check=False,
                )
            while (ready := self.read()) is None:
                if not self.is_held():
                    last = self.holder_log.read_text(errors="replace").splitlines()[-TAIL_LINES:]
                    raise ClusterFailed("the cluster did not start:\n" + "\n".join(last))
                time.sleep(0.1)
        except KeyboardInterrupt:
            self.down()
            raise
        return ready

    def down(self) -> bool:
        """End the holder, and with it the cluster; whether there was one."""
        was = self.is_held()
        if was:
            os.kill(int((self.folder / "pid").read_text()), signal.SIGTERM)
            deadline = time.monotonic() + STOP_SECONDS
            while self.is_held():
                if time.monotonic() > deadline:
                    raise ClusterFailed(f"the cluster in {self.folder} does not end; see {self.holder_log}")
                time.sleep(0.05)
        shutil.rmtree(self.folder, ignore_errors=True)
        return was

    def hold(self, wanted: Wanted) -> None:
        """Be the holder, until a signal or until a program of the cluster ends; return once the holder goes on alone.

        That is a child of this process, so that whoever started this one has no child that it would have to wait for.
        """
        for one in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(one, _leave)
        with self._lock(create=True), ExitStack() as held:
            if child := os.fork():
                (self.folder / "pid").write_text(str(child))
                os._exit(0)  # the child has the lock
            cluster = held.enter_context(
                Cluster(folder=self.cluster_folder, real_nodes=int(wanted.real_node))
            )
            cluster.install(CRD)
            about: dict[str, Any] = {"server": cluster.server, "kubeconfig": str(cluster.kubeconfig)}
            about |= {"wanted": wanted.args(), "logs": [str(cluster.folder / "logs")]}
            about["kubectl"] = str(cluster.programs["kubectl"])
            watched = [cluster.processes.check]
            if wanted.fleet:
                fleet = read_fleet(wanted.fleet)
                self.config.write_text(yaml.safe_dump({**fleet.config, **wanted.engines()}))
                watched.append(held.enter_context(cluster.growing(fleet)).check)
            if wanted.operator:
                cluster.processes.start("operator", self._operator(cluster.kubeconfig))
            pids = {"holder": os.getpid(), **cluster.processes.pids}
            if wanted.prometheus:
                prometheus = held.enter_context(cluster.prometheus(interval_ms=SCRAPE_MS))
                about["prometheus"] = prometheus.url
                about["logs"].append(str(prometheus.folder / "logs"))
                watched.append(prometheus.processes.check)
                pids |= prometheus.processes.pids
            written = self.folder / "ready.json.new"
            written.write_text(json.dumps({**about, "pids": pids}))
            written.rename(self.folder / "ready.json")
            while True:
                time.sleep(WATCH_SECONDS)
                for check in watched:
                    check()

    def _operator(self, kubeconfig: Path) -> list[str | Path]:
        """It is of this repository, and asks nobody for models."""
        argv: list[str | Path] = [sys.executable, "-m", "plimsoll", "--kubeconfig", kubeconfig]
        argv += ["--standalone", "--offline", "--port=0", "--log-format=text"]
        return [*argv, "--config", self.config] if self.config.exists() else argv

    @contextmanager
    def _lock(self, *, create: bool = False) -> Iterator[IO[str]]:
        with (self.folder / "lock").open("a" if create else "r") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield file


def _leave(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - the signature is the signal module's
    raise SystemExit(0)
