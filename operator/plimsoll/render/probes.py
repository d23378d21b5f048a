"""When a pod counts as started, ready and alive, and how it ends without cutting off an answer.

The startup and liveness probes ask /health, which says no more than that the engine's process lives. The readiness probe checks that the
model's served name is listed: an open port may belong to any program, and HTTP probes do not look at bodies. So it runs a few fixed lines
of Python in the engine's own container, and no key or certificate leaves the pod. The engine listens only once everything is loaded, and
it goes on taking requests while it drains, so traffic has to be gone before it is told to stop.
"""

from __future__ import annotations

from math import ceil
from typing import Any, Final

from plimsoll.engines.command import PORT
from plimsoll.render.start import PYTHON, verbatim

LET_GO_SECONDS: Final = 15
"""How long it takes until proxies, gateways and endpoint pickers no longer send requests to a pod that is ending."""
AFTER_DRAIN_SECONDS: Final = 15
"""How long the engine's process may take to end after its own deadline for answers: it gives its workers 5 s, on AMD 15 s."""
PERIOD_SECONDS: Final = 10
PORT_NAME: Final = "http"

SERVES: Final = """\
import json, os, socket, sys
port, scheme, name = sys.argv[1:]
key = os.environ.get("VLLM_API_KEY")
lines = ["GET /v1/models HTTP/1.0", "Host: localhost", *(["Authorization: Bearer " + key] if key else []), "", ""]
try:
    door = socket.create_connection(("127.0.0.1", int(port)), 4)
    if scheme == "https":
        import ssl
        door = ssl._create_unverified_context().wrap_socket(door)
    door.sendall("\\r\\n".join(lines).encode())
    head, _, body = b"".join(iter(lambda: door.recv(65536), b"")).partition(b"\\r\\n\\r\\n")
    status = head.split()[1].decode()
    served = [model["id"] for model in json.loads(body)["data"]] if status == "200" else []
except (OSError, ValueError, LookupError) as error:
    sys.exit(f"/v1/models cannot be read: {error!r}")
if name not in served:
    sys.exit(f"/v1/models answers {status} and lists {served}, not {name!r}")
"""
"""It uses plain sockets, which takes 0.02 s of a core each time; the imports of an HTTP client alone would take 0.06 s."""


def probes(*, start_seconds: int, scheme: str, served_name: str) -> dict[str, Any]:
    """The probes of a pod that answers requests."""
    alive = {"httpGet": {"path": "/health", "port": PORT_NAME, "scheme": scheme.upper()}}
    serves = [*PYTHON, SERVES, str(PORT), scheme, served_name]
    return {
        "startupProbe": alive
        | {
            "periodSeconds": PERIOD_SECONDS,
            "timeoutSeconds": 5,
            "failureThreshold": ceil(start_seconds / PERIOD_SECONDS),
        },
        "readinessProbe": {
            "exec": {"command": [verbatim(word) for word in serves]},
            "periodSeconds": PERIOD_SECONDS,
            "timeoutSeconds": 5,
            "failureThreshold": 3,
        },
        # A busy server may answer late, so it is restarted only after two minutes without any answer.
        "livenessProbe": alive | {"periodSeconds": 20, "timeoutSeconds": 10, "failureThreshold": 6},
    }


def hold_seconds(drain_seconds: int, *, leads: bool) -> int:
    """How long a pod that is to end waits before its engine is told to stop. Workers wait longer, so that they outlive their leader."""
    return LET_GO_SECONDS if leads else LET_GO_SECONDS + drain_seconds


def grace_seconds(drain_seconds: int) -> int:
    return LET_GO_SECONDS + drain_seconds + AFTER_DRAIN_SECONDS
