"""What a case of an alert is: metrics that differ from those by which all is well, and everything that fires then; and how promtool reads it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from alert_series import AT, WELL


@dataclass(frozen=True, slots=True)
class Case:
    about: str
    change: Mapping[str, str | None] = field(default_factory=dict)
    """Series that are otherwise than well; None is gone."""
    fires: frozenset[tuple[str, str]] = frozenset()
    """Alert and severity."""
    at: str = AT
    """When is looked."""

    @property
    def series(self) -> dict[str, str]:
        changed = {**WELL, **self.change}
        return {name: values for name, values in changed.items() if values is not None}


def case(about: str, change: Mapping[str, str | None], *fires: str, at: str = AT) -> Case:
    """Each that fires as Name, or Name! where it is critical."""
    return Case(
        about,
        change,
        frozenset(
            (f"Plimsoll{name.rstrip('!')}", "critical" if name.endswith("!") else "warning") for name in fires
        ),
        at,
    )


def suite(rules: str, tests: list[dict[str, Any]]) -> dict[str, Any]:
    """Tests of the rules as promtool reads them, each with metrics of every minute."""
    return {
        "rule_files": [rules],
        "evaluation_interval": "1m",
        "group_eval_order": ["plimsoll.records", "plimsoll.latencies", "plimsoll.alerts"],
        "tests": [{"interval": "1m", **one} for one in tests],
    }


def tests(rules: str, cases: Iterable[Case]) -> dict[str, Any]:
    """Cases as promtool reads them. What fires is asked as a query, since what is said is Prometheus' to fill in."""
    return suite(
        rules,
        [
            {
                "name": one.about,
                "input_series": [{"series": name, "values": values} for name, values in one.series.items()],
                "promql_expr_test": [
                    {
                        "expr": 'count by (alertname, severity) (ALERTS{alertstate="firing"})',
                        "eval_time": one.at,
                        "exp_samples": [
                            {"labels": f'{{alertname="{alert}",severity="{severity}"}}', "value": 1}
                            for alert, severity in sorted(one.fires)
                        ],
                    }
                ],
            }
            for one in cases
        ],
    )
