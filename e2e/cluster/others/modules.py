"""Where others publish their CRDs as part of a Go module: fetched when a test asks for them, never copied into this repository."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from cluster.binaries import BinariesMissing, Places
from cluster.binaries.build import Go, fetch_go, find_go
from cluster.binaries.pins import TOOLS
from cluster.binaries.progress import Progress
from cluster.binaries.store import Store

FETCH_SECONDS: Final = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """One, pinned by version and by the hash of its content."""

    path: str
    version: str
    hash: str
    folder: str
    """In it, with the CRDs."""
    files: tuple[str, ...]
    """Those that are of use here."""

    def crds(self, go: Go) -> list[dict[str, Any]]:
        """What is in the files."""
        home = self._fetch(go)
        return [yaml.safe_load((home / self.folder / name).read_text()) for name in self.files]

    def _fetch(self, go: Go) -> Path:
        what = f"{self.path}@{self.version}"
        done = subprocess.run(
            [go.program, "mod", "download", "-json", what],
            cwd=TOOLS,  # there is no module file, so nothing is looked at but what is asked for
            env={**os.environ, "GOWORK": "off", "GOFLAGS": "", "GOTOOLCHAIN": "local"},  # noqa: TID251 - proxies and caches
            capture_output=True,
            text=True,
            timeout=FETCH_SECONDS,
            check=False,
        )
        said = json.loads(done.stdout) if done.stdout.startswith("{") else {}
        if done.returncode != 0:
            raise BinariesMissing(
                f"the CRDs in {what} are neither in Go's module cache nor to be had:"
                f" {said.get('Error') or done.stderr.strip()}.\nGive this machine a network with a Go module proxy (GOPROXY)."
            )
        if said["Sum"] != self.hash:
            raise BinariesMissing(
                f"{what} is not what was pinned: its hash is {said['Sum']}, not {self.hash}"
            )
        return Path(said["Dir"])


MODULES: Final = {
    "gateway-api": Module(
        path="sigs.k8s.io/gateway-api",
        version="v1.6.3",
        hash="h1:lKpJa5bGlraC/QeACvCpsHLdmO6y0iKfzVl6gzaFEYc=",
        folder="config/crd/standard",
        files=(
            "gateway.networking.k8s.io_gatewayclasses.yaml",
            "gateway.networking.k8s.io_gateways.yaml",
            "gateway.networking.k8s.io_httproutes.yaml",
            "gateway.networking.k8s.io_referencegrants.yaml",
        ),
    ),
    "keda": Module(
        path="github.com/kedacore/keda/v2",
        version="v2.21.0",
        hash="h1:R6z2HZvstK4RLUMxroNACzBj74xGxt3kG59b5Xc+Xps=",
        folder="config/crd/bases",
        files=("keda.sh_scaledobjects.yaml", "keda.sh_triggerauthentications.yaml"),
    ),
    "prometheus-operator": Module(
        path="github.com/prometheus-operator/prometheus-operator",
        version="v0.85.0",
        hash="h1:M5xLCLEoaW2IJfnuCwFzzpL+jSVQu3KGT84Pye+fW8s=",
        folder="example/prometheus-operator-crd",
        files=(
            "monitoring.coreos.com_podmonitors.yaml",
            "monitoring.coreos.com_prometheusrules.yaml",
            "monitoring.coreos.com_servicemonitors.yaml",
        ),
    ),
}


def a_go(places: Places) -> Go:
    """The machine's, else one of our own."""
    if go := find_go(places.path):
        return go
    progress = Progress(sys.stderr)
    with Store(places.binaries).lock(lambda: progress.say("another run is fetching Go; waiting for it ...")):
        return fetch_go(places)
