"""Grafana's form of a dashboard, as far as ours need it: panels in rows of a grid, and the choices at their head."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from plimsoll.alerts.records import CLUSTER, Record, each
from plimsoll.prometheus import own

SCHEMA: Final = 39
"""Of Grafana 11; later ones read it and bring it up to theirs."""
WIDTH: Final = 24
TALL: Final = 8
SOURCE: Final = {"type": "prometheus", "uid": "$datasource"}
Json = dict[str, Any]


HERE: Final = f'{CLUSTER}="${CLUSTER}"'
"""Of the cluster that is chosen. Where no series has such a label none can be, and the empty choice finds them all."""


def seen(name: str, *match: str) -> str:
    """Series of one cluster: all that is drawn is selected here."""
    return f"{name}{{{','.join((HERE, *match))}}}"


def drawn(record: Record, *match: str) -> str:
    """As it is seen from outside, where two Prometheis may have recorded the same."""
    return each("max", seen(record.name, *match), *record.labels)


@dataclass(frozen=True, slots=True)
class Line:
    """One query; what it is called in the legend may name labels, as {{pod}}."""

    expr: str
    legend: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    title: str
    about: str
    """What it shows, and what to think of it."""
    lines: tuple[Line, ...]
    unit: str = "short"
    """Grafana's word: s, percentunit, reqps, suffix:WORD, ..."""
    kind: str = "timeseries"
    """timeseries, stat or table."""
    stacked: bool = False


def panel(title: str, about: str, *lines: Line, unit: str = "short", **more: Any) -> Panel:
    return Panel(title=title, about=about, lines=lines, unit=unit, **more)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A variable at the dashboard's head."""

    name: str
    label: str
    query: str


CHOSEN: Final = Choice(name=CLUSTER, label="Cluster", query=f"label_values({own.REPLICAS.name}, {CLUSTER})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Dashboard:
    uid: str
    title: str
    about: str
    choices: tuple[Choice, ...]
    rows: tuple[tuple[str, tuple[Panel, ...]], ...]
    """By title."""
    links: tuple[tuple[str, str], ...] = ()
    """Title and address."""

    @property
    def file(self) -> str:
        return f"{self.uid.removeprefix('plimsoll-')}.json"

    def to_data(self) -> Json:
        return {
            "uid": self.uid,
            "title": self.title,
            "description": self.about,
            "tags": ["plimsoll"],
            "schemaVersion": SCHEMA,
            "version": 1,
            "editable": False,
            "graphTooltip": 1,
            "refresh": "30s",
            "time": {"from": "now-6h", "to": "now"},
            "timezone": "browser",
            "annotations": {"list": []},
            "links": [
                {
                    "title": title,
                    "type": "link",
                    "url": url,
                    "keepTime": True,
                    "includeVars": True,
                    "targetBlank": False,
                }
                for title, url in self.links
            ],
            "templating": {"list": [_source(), *map(_choice, (CHOSEN, *self.choices))]},
            "panels": _placed(self.rows),
        }


def _source() -> Json:
    return {
        "name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus", "hide": 0, "refresh": 1,
        "includeAll": False, "multi": False, "current": {}, "options": [], "regex": "",
    }  # fmt: skip


def _choice(choice: Choice) -> Json:
    return {
        "name": choice.name, "label": choice.label, "type": "query", "datasource": SOURCE, "hide": 0, "refresh": 2, "sort": 1,
        "query": {"query": choice.query, "refId": choice.name}, "includeAll": False,
        "multi": False, "current": {}, "options": [], "regex": "",
    }  # fmt: skip


def _placed(rows: Sequence[tuple[str, tuple[Panel, ...]]]) -> list[Json]:
    """Rows below one another; the panels of a row share its width."""
    found: list[Json] = []
    y = 0
    for title, panels in rows:
        found.append({
            "id": len(found) + 1, "type": "row", "title": title, "collapsed": False, "panels": [],
            "gridPos": {"x": 0, "y": y, "w": WIDTH, "h": 1},
        })  # fmt: skip
        y += 1
        width = WIDTH // len(panels)
        tall = TALL // 2 if all(one.kind == "stat" for one in panels) else TALL
        for place, one in enumerate(panels):
            where = {"x": place * width, "y": y, "w": width, "h": tall}
            found.append({"id": len(found) + 1, "gridPos": where, **_panel(one)})
        y += tall
    return found


def _panel(one: Panel) -> Json:
    custom: Json = {}
    options: Json = {
        "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
        "tooltip": {"mode": "multi"},
    }
    if one.kind == "timeseries":
        custom = {"lineWidth": 1, "fillOpacity": 20 if one.stacked else 0, "showPoints": "never"}
        custom["stacking"] = {"mode": "normal" if one.stacked else "none", "group": "A"}
    else:
        options = (
            {"reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False}}
            if one.kind == "stat"
            else {}
        )
    return {
        "type": one.kind,
        "title": one.title,
        "description": one.about,
        "datasource": SOURCE,
        "fieldConfig": {"defaults": {"unit": one.unit, "custom": custom, **_leading(one)}, "overrides": []},
        "options": options,
        "targets": [_target(number, line, one) for number, line in enumerate(one.lines)],
        "transformations": [{"id": "merge", "options": {}}] if one.kind == "table" else [],
    }


def _leading(one: Panel) -> Json:
    """From a curve of one deployment among others to the page of that one, at the same time."""
    legends = " ".join(line.legend for line in one.lines)
    if "{{llm}}" not in legends:
        return {}
    namespace = "llm_namespace" if "{{llm_namespace}}" in legends else "namespace"
    url = (
        f"/d/plimsoll-deployment?var-datasource=${{datasource}}&var-{CLUSTER}=${{{CLUSTER}}}&var-namespace=${{__field.labels.{namespace}}}"
        "&var-llm=${__field.labels.llm}&${__url_time_range}"
    )
    return {"links": [{"title": "This deployment", "url": url}]}


def _target(number: int, line: Line, one: Panel) -> Json:
    instant = one.kind != "timeseries"
    return {
        "refId": chr(ord("A") + number), "datasource": SOURCE, "expr": line.expr, "legendFormat": line.legend or "__auto",
        "instant": instant, "range": not instant, "format": "table" if one.kind == "table" else "time_series",
    }  # fmt: skip
