"""How containerd is told: folders of its own, runc, one network plugin, and an image for pods' first process.

Images come from archives; nothing is ever pulled, as there is no way out of a machine.
"""

from __future__ import annotations

import io
import json
import platform
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cluster.binaries.store import sha256_of
from cluster.node.machine import Machine

NAMESPACE: Final = "k8s.io"
"""Where containerd keeps what is Kubernetes'."""
SOCKET: Final = "/run/containerd/containerd.sock"
START_SECONDS: Final = 120.0
CLIENT: Final = ("ctr", "--address", SOCKET, "--namespace", NAMESPACE)
PAUSE: Final = "localhost/plimsoll/pause:1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """One node's containerd."""

    machine: Machine
    folder: Path
    """Of its configuration."""
    root: Path
    """What it keeps: images and containers."""
    plugins: Path
    """Folder of network plugins."""
    pods: str
    """Addresses of the node's pods."""

    @property
    def program(self) -> str:
        """What it is called among the cluster's programs."""
        return f"containerd-{self.machine.name}"

    @property
    def config(self) -> Path:
        return self.folder / "containerd.toml"

    def start(self, program: Path) -> None:
        """Returns when it answers."""
        network = self.folder / "cni"
        network.mkdir(parents=True)
        (network / "pods.conflist").write_text(json.dumps(self._network()))
        self.config.write_text(self._config(network))
        self.machine.start_program(self.program, [program, "--config", self.config])
        socket = Path(f"/proc/{self.machine.pid}/root{SOCKET}")
        self.machine.processes.wait(self.program, socket.exists, START_SECONDS)

    def ctr(self, *args: str | Path) -> str:
        """containerd's own client."""
        return self.machine.run(*CLIENT, *args)

    def load(self, archive: Path) -> None:
        """Import an archive; the image is there by the name that the archive says."""
        self.ctr("images", "import", archive)

    def start_loading(self, name: str, pipe: Path) -> None:
        """The same, as a program of this name that reads as long as somebody writes."""
        self.machine.start_program(name, [*CLIENT, "images", "import", pipe])

    def remove(self, reference: str) -> None:
        """The image, by all its names (kubelet's part of containerd gives it one more), and what only it needed."""
        listed = [line.split() for line in self.ctr("images", "list").splitlines()[1:]]
        digests = {digest for name, _, digest, *_ in listed if name == reference}
        if names := sorted(name for name, _, digest, *_ in listed if digest in digests):
            self.ctr("images", "remove", "--sync", *names)

    def _network(self) -> dict[str, object]:
        return {
            "cniVersion": "1.0.0",
            "name": "pods",
            "plugins": [
                {
                    # Each pod is routed to: two on one bridge would answer one another past the rules for services.
                    "type": "ptp",
                    "ipam": {
                        "type": "host-local",
                        "ranges": [[{"subnet": self.pods}]],
                        "routes": [{"dst": "0.0.0.0/0"}],
                        "dataDir": "/run/cni",
                    },
                }
            ],
        }

    def _config(self, network: Path) -> str:
        return f"""
version = 2
root = {json.dumps(str(self.root))}
state = "/run/containerd/state"
disabled_plugins = ["io.containerd.internal.v1.opt", "io.containerd.tracing.processor.v1.otlp"]
[grpc]
  address = "{SOCKET}"
[debug]
  level = "warn"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE}"
  # Without CAP_SYS_RESOURCE no score can be lowered, and every pod would fail.
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = {json.dumps(str(self.plugins))}
    conf_dir = {json.dumps(str(network))}
"""


def pause_archive(program: Path, to: Path) -> Path:
    """An image of one static program, as an archive."""
    layer = to.with_suffix(".layer")
    with tarfile.open(layer, "w") as tar:
        tar.add(program, "pause", filter=_anonymous)
    config = {
        "architecture": _architecture(),
        "os": "linux",
        "config": {"Entrypoint": ["/pause"], "User": "65535:65535"},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{sha256_of(layer)}"]},
    }
    manifest = [{"Config": "config.json", "RepoTags": [PAUSE], "Layers": ["layer.tar"]}]
    with tarfile.open(to, "w") as tar:
        for name, content in (("config.json", config), ("manifest.json", manifest)):
            data = json.dumps(content).encode()
            about = tarfile.TarInfo(name)
            about.size = len(data)
            tar.addfile(about, io.BytesIO(data))
        tar.add(layer, "layer.tar", filter=_anonymous)
    layer.unlink()
    return to


def _anonymous(about: tarfile.TarInfo) -> tarfile.TarInfo:
    about.uid = about.gid = about.mtime = 0
    about.uname = about.gname = ""
    about.mode = 0o755
    return about


def _architecture() -> str:
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
