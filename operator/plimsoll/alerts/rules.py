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
    recorded: dict[bool, list[dict[str, str]]] = {True: [], False: []}
    for record in RECORDS:
        recorded[record.dear].append({"record": record.name, "expr": record.expr})
    alerts = [_rule(alert, level) for alert in ALERTS for level in alert.levels]
    return {
        "groups": [
            {"name": "plimsoll.records", "rules": recorded[False]},
            # How often is otherwise Prometheus' own setting: four times in a minute these would be half a core at 10,000 replicas.
            {"name": "plimsoll.latencies", "interval": "1m", "rules": recorded[True]},
            {"name": "plimsoll.alerts", "rules": alerts},
        ]
    }


def _rule(alert: Alert, level: Level) -> dict[str, Any]:
    return {
        "alert": alert.alert,
        "expr": level.expr,
        "for": level.lasting,
        **({"keep_firing_for": level.keeps} if level.keeps else {}),
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
