"""When a pod counts as started, serving and alive, and how it ends without dropping an answer.

Started and alive are asked of /health, which says no more than that the engine's process lives. Serving is asked of the
served name: an answering port may be anybody's, and a body is something that no HTTP probe looks at, so a few fixed lines
of Python in the engine's own image do (no key or certificate leaves the pod). The engine neither listens before all is
loaded nor stops by itself to be asked while it drains, so traffic has to be gone before it is told to stop.
"""

from __future__ import annotations

from math import ceil
from typing import Any, Final

from plimsoll.engines.command import PORT
from plimsoll.render.start import PYTHON, verbatim

LET_GO_SECONDS: Final = 15
"""Until proxies, gateways and endpoint pickers no longer send requests to a pod that is ending."""
AFTER_DRAIN_SECONDS: Final = 15
"""From the engine's own deadline to a process that has ended: workers are given 5 s, on AMD 15."""
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
"""No library but sockets: 0.02 s of a core each time, where an HTTP client's imports alone take 0.06."""


def probes(*, start_seconds: int, scheme: str, served_name: str) -> dict[str, Any]:
    """Of a pod that answers requests."""
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
        # A busy server answers late: two minutes without any answer are a dead one.
        "livenessProbe": alive | {"periodSeconds": 20, "timeoutSeconds": 10, "failureThreshold": 6},
    }


def hold_seconds(drain_seconds: int, *, leads: bool) -> int:
    """How long a pod keeps its engine from hearing that it should stop; one that only computes outlives its leader."""
    return LET_GO_SECONDS if leads else LET_GO_SECONDS + drain_seconds


def grace_seconds(drain_seconds: int) -> int:
    return LET_GO_SECONDS + drain_seconds + AFTER_DRAIN_SECONDS
