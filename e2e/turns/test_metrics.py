"""The operator's own page of metrics while it works: read by Prometheus' own judge, and held against what the docs list."""

from __future__ import annotations

import re
import urllib.request

from cluster.metrics import promtool
from common import ROOT, eventually
from turns.running import Desk, Operator


def page(operator: Operator) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{operator.port}/metrics", timeout=30) as answer:
        return str(answer.read().decode())


def about(operator: Operator, desk: Desk) -> list[str]:
    return [line for line in page(operator).splitlines() if f'llm_namespace="{desk.namespace}"' in line]


def test_the_page_is_what_the_docs_list_and_what_prometheus_reads(operator: Operator, desk: Desk) -> None:
    desk.apply(slo={"ttftP99Ms": 2000})
    assert desk.says("Ready", "True", "Serving")
    said = promtool("check", "metrics", text=page(operator))
    assert (said.returncode, said.stdout + said.stderr) == (0, "")
    listed = re.findall(
        r"^\| `([a-z_]+)` \| (\w+) \|", (ROOT / "docs" / "metrics.md").read_text(), re.MULTILINE
    )
    told = re.findall(r"^# TYPE ([a-z_]+) (\w+)$", page(operator), re.MULTILINE)
    assert set(told) <= set(listed)


def test_a_resource_has_series_while_it_is_there_and_none_when_it_is_gone(
    operator: Operator, desk: Desk
) -> None:
    desk.apply(slo={"ttftP99Ms": 2000})
    assert desk.says("Ready", "True", "Serving")
    who = f'llm_namespace="{desk.namespace}",llm="chat"'
    wanted = {
        f'plimsoll_replicas{{{who},state="ready"}} 1',
        f'plimsoll_slo_seconds{{{who},latency="ttft_p99"}} 2',
        f'plimsoll_tensor_parallel{{{who},link="nvlink"}} 1',
        f'plimsoll_condition{{{who},type="Ready"}} 1',
        f"plimsoll_engine_restarts_total{{{who}}} 0",
    }
    assert eventually(lambda: wanted <= set(about(operator, desk)))
    desk.cluster.api.delete(desk.path())
    assert eventually(lambda: about(operator, desk) == [])
