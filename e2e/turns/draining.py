"""What a person does who needs a node for something else, and what is left of a deployment meanwhile."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

from plimsoll import names
from turns.running import Desk


def drained(desk: Desk, node: str) -> int:
    """The fewest pods that answered while the node was drained."""
    command = ("drain", node, f"--pod-selector={names.LABEL_DEPLOYMENT}=chat", "--delete-emptydir-data")
    fewest = ready(desk)
    with ThreadPoolExecutor(1) as pool:
        drain = pool.submit(desk.cluster.kubectl, *command, "--timeout=10m")
        while not drain.done():
            fewest = min(fewest, ready(desk))
            time.sleep(0.05)
    done = drain.result()
    assert done.returncode == 0, done.stderr
    return fewest


def ready(desk: Desk) -> int:
    """Pods that answer and are not told to go."""
    return sum(
        any(
            one["type"] == "Ready" and one["status"] == "True"
            for one in pod["status"].get("conditions") or ()
        )
        for pod in desk.pods()
    )
