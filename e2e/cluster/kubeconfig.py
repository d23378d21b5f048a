"""The file by which kubectl, clients and the programs themselves reach a cluster as somebody."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

CONTEXT: Final = "plimsoll-e2e"


def write_kubeconfig(
    file: Path, *, server: str, ca: Path, user: str, token: str, namespace: str = "default"
) -> Path:
    """JSON is YAML too. For its owner only: the token is all one needs."""
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": CONTEXT, "cluster": {"server": server, "certificate-authority": str(ca)}}],
        "users": [{"name": user, "user": {"token": token}}],
        "contexts": [
            {"name": CONTEXT, "context": {"cluster": CONTEXT, "user": user, "namespace": namespace}}
        ],
        "current-context": CONTEXT,
    }
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch(mode=0o600)
    file.write_text(json.dumps(content, indent=2) + "\n")
    return file
