"""The chart as helm renders it: for tests, and for the goldens in tests/charts/golden, which `python e2e/chart.py` writes.

The CustomResourceDefinition, the rules and the dashboards are left out of the goldens: they are long, generated, and compared elsewhere.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import yaml

from cluster.binaries import PINS, Places, ensure
from cluster.binaries.progress import Progress
from common import ROOT

CHART: Final = ROOT / "charts" / "plimsoll"
GOLDEN: Final = ROOT / "tests" / "charts" / "golden"
VALUES: Final = {
    file.name.removesuffix("-values.yaml"): file for file in sorted((CHART / "ci").glob("*.yaml"))
}
RELEASE: Final = "load"
NAMESPACE: Final = "plimsoll-system"
ELSEWHERE: Final = ("CustomResourceDefinition", "PrometheusRule")


def helm(*args: str) -> subprocess.CompletedProcess[str]:
    """The caller looks at the exit code."""
    places = Places.of(os.environ)  # noqa: TID251 - as the tests' own
    program = ensure(["helm"], places, Progress(sys.stderr))["helm"]
    return subprocess.run([str(program), *args], capture_output=True, text=True, check=False)


def rendered(values: Path, *more: str, namespace: str = NAMESPACE) -> str:
    """All objects, as helm would send them."""
    version = PINS["kube-apiserver"].version
    where = (RELEASE, str(CHART), "--namespace", namespace, "--kube-version", version)
    done = helm("template", *where, "--values", str(values), *more)
    if done.returncode != 0:
        raise ValueError(f"helm renders nothing of {values.name}: {done.stderr.strip()}")
    return done.stdout


def objects(text: str) -> list[dict[str, Any]]:
    return [one for one in yaml.safe_load_all(text) if one]


def golden(values: Path) -> str:
    """What a golden holds: without what is compared elsewhere."""
    kept = [one for one in objects(rendered(values)) if one["kind"] not in ELSEWHERE]
    for one in kept:
        if one["metadata"]["name"].endswith("-dashboards"):
            one["data"] = dict.fromkeys(one["data"], "...")
    return yaml.safe_dump_all(kept, sort_keys=False, width=110)


if __name__ == "__main__":
    GOLDEN.mkdir(exist_ok=True)
    for name, file in VALUES.items():
        (GOLDEN / f"{name}.yaml").write_text(golden(file))
