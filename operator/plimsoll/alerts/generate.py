"""Writes what follows from the alerts: the chart's rules and dashboards, their pages, and the heads of the runbooks. `make generate` runs it, a test compares.

Takes the root of the repository as its only argument, by default the current folder.
"""

from __future__ import annotations

import sys
from pathlib import Path

from plimsoll.alerts import ALERTS
from plimsoll.alerts.dashboards import DASHBOARDS, dashboard_json
from plimsoll.alerts.pages import alerts_page, metrics_page, runbook
from plimsoll.alerts.rules import rules_yaml


def generated_files(root: Path) -> dict[str, str]:
    """By path in the repository; runbooks keep what is written on them."""
    found = {
        "charts/plimsoll/files/rules.yaml": rules_yaml(),
        "docs/alerts.md": alerts_page(),
        "docs/metrics.md": metrics_page(),
    }
    for dashboard in DASHBOARDS:
        found[f"charts/plimsoll/dashboards/{dashboard.file}"] = dashboard_json(dashboard)
    for alert in ALERTS:
        page = root / alert.runbook
        found[alert.runbook] = runbook(alert, page.read_text("utf-8") if page.exists() else "")
    return found


def main(root: Path) -> None:
    for path, text in generated_files(root).items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(*sys.argv[1:2]))
