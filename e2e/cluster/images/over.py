"""An image over another one that the store has: what a Dockerfile adds to the base, put on top of the other's layers instead.

The store's large layers are unpacked and hollow, so that no builder could start from them, and making them again takes minutes. What
comes here is an archive of the small layer and of what it is described by; containerd finds the layers below by their sums.
"""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, Self

from cluster.node.runtime import Runtime

OURS: Final = ("Entrypoint", "ExposedPorts", "Labels", "User")
"""What the upper image's Dockerfile says of how it runs, beside its variables; the rest is as below."""
INDEX: Final = "application/vnd.oci.image.index.v1+json"
BASE_LAYERS: Final = 1
Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """One image, without its bytes."""

    manifest: Json
    config: Json

    @classmethod
    def stored(cls, runtime: Runtime, reference: str) -> Self:
        """By containerd."""
        listed = (line.split() for line in runtime.ctr("images", "list").splitlines()[1:])
        digest = next(one[2] for one in listed if one[0] == reference)
        manifest = json.loads(runtime.ctr("content", "get", digest))
        return cls(
            manifest=manifest, config=json.loads(runtime.ctr("content", "get", manifest["config"]["digest"]))
        )

    @classmethod
    def laid_out(cls, folder: Path) -> Self:
        """As a folder of OCI's layout with one image."""
        (about,) = json.loads((folder / "index.json").read_text())["manifests"]
        manifest = json.loads(blob(folder, about).read_text())
        return cls(manifest=manifest, config=json.loads(blob(folder, manifest["config"]).read_text()))

    def over(self, below: Described) -> Described:
        """What this one adds to the base, on another."""
        upper, lower = self.config, below.config
        sums = [*lower["rootfs"]["diff_ids"], *upper["rootfs"]["diff_ids"][BASE_LAYERS:]]
        runs = lower["config"] | {name: upper["config"][name] for name in OURS}
        variables = variables_of(lower) | variables_of(upper)
        config = {name: value for name, value in lower.items() if name != "history"} | {
            "config": runs | {"Env": [f"{name}={value}" for name, value in variables.items()]},
            "rootfs": {"type": "layers", "diff_ids": sums},
        }
        body = json.dumps(config).encode()
        told = below.manifest["config"] | {"digest": digest_of(body), "size": len(body)}
        layers = [*below.manifest["layers"], *self.manifest["layers"][BASE_LAYERS:]]
        return Described(manifest=below.manifest | {"config": told, "layers": layers}, config=config)


def pack(upper: Path, below: Described, reference: str, to: Path) -> None:
    """The archive, of the image that is laid out in the folder `upper`."""
    own = Described.laid_out(upper)
    made = own.over(below)
    manifest = json.dumps(made.manifest).encode()
    named = {
        "mediaType": made.manifest["mediaType"],
        "digest": digest_of(manifest),
        "size": len(manifest),
        "annotations": {"io.containerd.image.name": reference},
    }
    files: dict[str, bytes] = {
        "oci-layout": b'{"imageLayoutVersion": "1.0.0"}',
        "index.json": json.dumps({"schemaVersion": 2, "mediaType": INDEX, "manifests": [named]}).encode(),
    }
    for body in (manifest, json.dumps(made.config).encode()):
        files[path_of(digest_of(body))] = body
    for layer in own.manifest["layers"][BASE_LAYERS:]:
        files[path_of(layer["digest"])] = blob(upper, layer).read_bytes()
    with tarfile.open(to, "w") as tar:
        for name, body in files.items():
            about = tarfile.TarInfo(name)
            about.size = len(body)
            tar.addfile(about, io.BytesIO(body))


def variables_of(config: Json) -> dict[str, str]:
    return dict(one.split("=", 1) for one in config["config"]["Env"])


def digest_of(body: bytes) -> str:
    return f"sha256:{sha256(body).hexdigest()}"


def path_of(digest: str) -> str:
    return f"blobs/{digest.replace(':', '/')}"


def blob(folder: Path, about: Mapping[str, Any]) -> Path:
    return folder / path_of(about["digest"])
