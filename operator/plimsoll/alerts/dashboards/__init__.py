"""Dashboards for Grafana, made of the same names as the alerts. The chart brings them as ConfigMaps."""

from __future__ import annotations

import json
from typing import Final

from plimsoll.alerts.dashboards.deployment import DEPLOYMENT
from plimsoll.alerts.dashboards.fleet import FLEET
from plimsoll.alerts.dashboards.panels import Dashboard

DASHBOARDS: Final[tuple[Dashboard, ...]] = (DEPLOYMENT, FLEET)


def dashboard_json(dashboard: Dashboard) -> str:
    return json.dumps(dashboard.to_data(), indent=1, ensure_ascii=False) + "\n"
