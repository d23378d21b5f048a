"""The alerts as Prometheus reads them: groups of rules, for the chart's PrometheusRule or a rule file of one's own."""

from __future__ import annotations

from typing import Any, Final

import yaml

from plimsoll.alerts import ALERTS
from plimsoll.alerts.base import Alert, Level
from plimsoll.alerts.records import RECORDS

HEAD: Final = "# Generated from operator/plimsoll/alerts; `make generate` writes it.\n"


def rules() -> dict[str, Any]:
    """The spec of a PrometheusRule, which is also a rule file. Records come first, since alerts are told in them."""
    recorded = [{"record": record.name, "expr": record.expr} for record in RECORDS]
    alerts = [_rule(alert, level) for alert in ALERTS for level in alert.levels]
    return {
        "groups": [
            {"name": "plimsoll.records", "rules": recorded},
            {"name": "plimsoll.alerts", "rules": alerts},
        ]
    }


def _rule(alert: Alert, level: Level) -> dict[str, Any]:
    return {
        "alert": alert.alert,
        "expr": level.expr,
        "for": level.lasting,
        "labels": {"severity": level.severity},
        "annotations": {
            "summary": alert.summary,
            "description": alert.description,
            "runbook_url": alert.runbook,
        },
    }


def rules_yaml() -> str:
    body: Any = rules()
    return HEAD + yaml.safe_dump(body, sort_keys=False, width=110)
