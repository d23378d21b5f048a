"""Pages for people: the list of alerts and thresholds, the operator's metrics, and the head of each runbook.

What a runbook says of cause, check and cure is written by hand below its head, and kept when the head is made again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from plimsoll import names
from plimsoll.alerts import ALERTS
from plimsoll.alerts.base import NAMED, WHO, Alert
from plimsoll.alerts.records import RECORDS, WORDS
from plimsoll.alerts.thresholds import TABLE
from plimsoll.prometheus import own

MARK: Final = "<!-- Above this line `make generate` writes; below it people do. -->\n"
BY_HAND: Final = f"""\
With kubectl alone: `kubectl describe llm NAME -n NAMESPACE` has the conditions in full sentences, and
`kubectl get llm NAME -n NAMESPACE -o jsonpath='{{.status}}'` each field of the status that is named below (one by `{{.status.plan}}`).
Its pods: `kubectl get pods -n NAMESPACE -l {names.LABEL_DEPLOYMENT}=NAME`.
"""
OPERATORS: Final = f"""\
The operator's pods are found by `kubectl get pods -A -l {names.LABEL_ROLE}={names.OPERATOR}`, here in the namespace plimsoll. Its log, of which the pod that acts has more lines:
`kubectl logs -n plimsoll -l {names.LABEL_ROLE}={names.OPERATOR} --prefix --tail 500`.
"""
COMMAND: Final = """\
Lines about this deployment have NAMESPACE/NAME. The command `plimsoll` is in these pods, and asks with the operator's rights (what these do not let it read it names):
`kubectl exec -i -n plimsoll POD -- plimsoll doctor NAME -n NAMESPACE`, and so for each `plimsoll` below, also behind a pipe.
"""
SECTIONS: Final = ("Cause", "Check", "Cure")
SKELETON: Final = "".join(f"\n## {section}\n" for section in SECTIONS)

_ALERTS_HEAD: Final = """\
# Alerts

Rules for Prometheus, made from [operator/plimsoll/alerts](../operator/plimsoll/alerts): one module an alert. The chart brings them as a PrometheusRule
with `metrics.rules.enabled` (it needs the CRD of the Prometheus operator); for another Prometheus,
[files/rules.yaml](../charts/plimsoll/files/rules.yaml) is a rule file as it stands. They need the engines' metrics, found in any way that labels
series with `namespace` and `pod`, and the operator's own ([metrics](metrics.md)), which carry each resource's `slo` so that one rule serves all.

All of it in one command (of Helm 3.14 or later), for a Prometheus that selects by the label `release`, as kube-prometheus-stack's does. Engines' PodMonitors come with each deployment, without a label to choose: let
`podMonitorSelector` take those with `app.kubernetes.io/managed-by: plimsoll`, or all (there `podMonitorSelectorNilUsesHelmValues: false`). `repository` is where those who are alerted read the runbooks.

```sh
helm upgrade plimsoll charts/plimsoll -n plimsoll --reset-then-reuse-values --set metrics.podMonitor.enabled=true --set metrics.podMonitor.labels.release=kps \\
  --set metrics.rules.enabled=true --set metrics.rules.labels.release=kps --set metrics.dashboards.enabled=true \\
  --set metrics.rules.repository=https://git.example.com/plimsoll/blob/main
```

A pod that two jobs find counts once, in the rules as in what the operator itself asks (in quantiles and the mean of caches it weighs twice, which
changes them only where not all pods are found twice). So does one that a pair of Prometheis finds, seen through Thanos or
Mimir without deduplication: series are told apart by `job`, `instance`, `prometheus`, `prometheus_replica`, `replica` and `__replica__`. Dashboards draw
once what both of a pair have recorded.

The rules must be worked out as they are. Where a Prometheus holds each PrometheusRule to its own namespace (`enforcedNamespaceLabel` of the Prometheus operator; OpenShift's
monitoring of user workloads does so by default), every selector finds series of the release's namespace alone: no alert about load, latency or failed requests can fire for resources
elsewhere, and PlimsollMetricsStale fires where all is well. On OpenShift list the release's namespace in `namespacesWithoutLabelEnforcement`, in the `config.yaml` of the ConfigMap
`user-workload-monitoring-config`; elsewhere name the rule in `excludedFromEnforcement` of the Prometheus (or ThanosRuler):
`{group: monitoring.coreos.com, resource: prometheusrules, namespace: plimsoll, name: plimsoll}`.

Alerts about a resource have the labels `namespace` and `llm`, and `cluster` where series have it: [several clusters](#several-clusters). [Below](#sent-to-the-operator) is how they reach the operator.

| alert | severity | lasts | says |
|---|---|---|---|
"""
_TABLE_HEAD: Final = """
An alert fires once it has lasted for so long; one that says how long later it still does (`keep_firing_for`: Prometheus 2.42 or later, and a CRD of its operator that
knows the field) is about what swings, and calls nobody again at each swing.

Latency and failed requests are held against the resource's own `spec.slo`; what it does not promise raises no alert.
A promise inside a bucket of the engine's histogram may be found broken though it is kept, as a p99 is guessed within its bucket; one at a bound (vLLM's gaps: 25, 50, 75, 100, 150, 200, 300 ms)
is held against the very share.

Everything else stands in one table, `operator/plimsoll/alerts/thresholds.py`:

| threshold | value | meaning |
|---|---|---|
"""
_RECORDS_HEAD: Final = """
What they are told in is recorded first, one series a resource (of conditions, replicas, limits and the plan's figures one of each kind); dashboards and alerts of your own may use it. Quantiles are worked out once a minute,
the rest as often as your Prometheus works out rules. It was measured to take 0.65 ms of a processor's time a replica for the quantiles and 0.2 ms for
the rest (Prometheus 3.15, 22 buckets): at 10,000 replicas and every 15 seconds a quarter of a core.

| record | of |
|---|---|
"""
_WEBHOOK: Final = """
## Dashboards

[The fleet](../charts/plimsoll/dashboards/fleet.json) and [a deployment](../charts/plimsoll/dashboards/deployment.json), for Grafana 10 or later: imported
by hand, or by a sidecar that loads ConfigMaps, with the chart's `metrics.dashboards.enabled`. They draw records, so the rules must be there too.
Where series have the label `cluster`, one of its values is chosen at their head.

## Several clusters

A Prometheus in each cluster, with the rules in it, needs nothing: what it gives to Thanos or Mimir has its external labels, alerts and records too. Where one ruler (Thanos
Ruler, Mimir's) works out the rules for several clusters, they are told apart by the label `cluster`. It must be on all series or on none: on the engines' and the
operator's alike. Then

- every record and alert has it, and of two deployments that share a name each is judged by itself;
- PlimsollOperatorGone fires only where no cluster has an operator that acts. Write one for each: `absent(plimsoll_leads{cluster="eu-1"} == 1)`;
- Alertmanager sends an alert to its own cluster's operator by a matcher more, `cluster = "eu-1"`. An operator that hears of another's deployments looks at one of its own
  that shares the name, for nothing.

Clusters that another label tells apart need it under that name, by a relabelling or in copies of the rules and dashboards in which it stands in the place of `cluster`.
[`control.prometheusMatchLabels`](live-traffic.md#several-clusters-behind-one-address), by which the operator itself asks, may name any labels.

## Sent to the operator

With the chart's `alerts.enabled` the operator that acts listens at the Service `NAME-alerts`, with the certificate and the token of two Secrets:

```sh
kubectl -n plimsoll create secret tls plimsoll-alerts-tls --cert=tls.crt --key=tls.key
kubectl -n plimsoll create secret generic plimsoll-alerts-token --from-literal=token="$(openssl rand -hex 32)"
helm upgrade plimsoll charts/plimsoll -n plimsoll --reset-then-reuse-values --set alerts.enabled=true \\
  --set alerts.certificateSecret=plimsoll-alerts-tls --set alerts.tokenSecret=plimsoll-alerts-token
```

The certificate is for `plimsoll-alerts.plimsoll.svc`, by cert-manager or whoever else; it and the token may be renewed in their Secrets at any time. To
Alertmanager it is a webhook:

```yaml
receivers:
  - name: plimsoll
    webhook_configs:
      - url: https://plimsoll-alerts.plimsoll.svc/alerts
        max_alerts: 500
        http_config:
          authorization: {type: Bearer, credentials_file: /etc/alertmanager/plimsoll/token}
          tls_config: {ca_file: /etc/alertmanager/plimsoll/ca.crt}
route:
  routes:
    - receiver: plimsoll
      matchers: ['alertname =~ "Plimsoll.+"', 'llm != ""']
      group_by: [namespace, llm]
      group_wait: 0s
      group_interval: 15s
      repeat_interval: 1m
      continue: true
```

The route says how alerts are grouped, as what it would take over from the one above it (half a minute for the first of a group, five minutes for each that
joins it) is longer than the operator's own looks are apart; and how soon what fires still is told again, which is four hours else.

An alert makes the operator look at the deployment that it names, with a full turn at once, and at the metrics without waiting for their interval (never more
often than five times in one, and in a large fleet as much less often as looks are longer: such looks take a fifth of the time at most), and that is all
that it does: no figure of a message is believed, and what is done follows from what is then seen. What lasts takes
[several looks](live-traffic.md#when-a-setting-is-changed), so an alert that is repeated while it fires brings another. What comes again within ten seconds,
as from the second of two Alertmanagers, wakes nobody, nor does what is resolved. A message without the token, of more than a mebibyte or of more
than 500 alerts is refused. Where the webhook is off or away, the loop finds the same by its own looks, some seconds later. A pod that waits for the
Lease does not listen; Alertmanager then tries again and finds the one that does. `plimsoll_alerts_received_total` counts what came.
"""
_METRICS_HEAD: Final = """\
# The operator's own metrics

On port `http` (8080) at `/metrics`; the chart makes a PodMonitor with `metrics.podMonitor.enabled`. Resources are told by the labels `llm_namespace` and
`llm`, since a scraper writes the operator's own namespace into `namespace`. Only the process that acts speaks of resources, and their series go when
they go. A figure that is not known has no series; it is never 0.

| metric | type | labels | meaning |
|---|---|---|---|
"""


def runbook(alert: Alert, before: str = "") -> str:
    """The page of one alert; what people wrote on it stays."""
    _, mark, written = before.partition(MARK)
    body = written if mark else SKELETON
    means = f"{BY_HAND}\n{OPERATORS}{COMMAND}" if WHO in alert.summary else OPERATORS
    severities = ", ".join(f"{level.told} after {level.lasts}" for level in alert.levels)
    return (
        f"# {alert.alert}\n\n{_plain(alert.summary)}\n\n{_plain(alert.description)}\n\n"
        f"Severity: {severities}. The rule stands in [files/rules.yaml](../../charts/plimsoll/files/rules.yaml), "
        f"all alerts in [alerts](../alerts.md).\n\n{means}\n{MARK}{body}"
    )


def _plain(text: str) -> str:
    """Without the templates, for a page about any resource."""
    text = text.replace(WHO, "a deployment").replace(NAMED, "NAME -n NAMESPACE")
    return re.sub(r"(?:\{\{.*?\}\})+", "N", text)


def alerts_page() -> str:
    return (
        _ALERTS_HEAD
        + "".join(_alert_rows())
        + _TABLE_HEAD
        + "".join(f"| {name} | {value} | {value.meaning} |\n" for name, value in TABLE.items())
        + _RECORDS_HEAD
        + "".join(f"| `{record.name}` | {_sources(record.expr)} |\n" for record in RECORDS)
        + _WEBHOOK
    )


def _alert_rows() -> Iterator[str]:
    for alert in ALERTS:
        for level in alert.levels:
            page = alert.runbook.removeprefix("docs/")
            yield f"| [{alert.alert}]({page}) | {level.told} | {level.lasts} | {_plain(alert.summary)} |\n"


def _sources(expr: str) -> str:
    """The metrics and records that an expression names."""
    words = "".join(letter if letter.isalnum() or letter in "_:" else " " for letter in expr).split()
    known = tuple(name for names in WORDS.names.values() for name in names)
    found = dict.fromkeys(word for word in words if word.startswith(("llm:", "plimsoll_", *known)))
    return ", ".join(f"`{word}`" for word in found)


def metrics_page() -> str:
    rows = (
        f"| `{metric.name}` | {metric.kind} | {', '.join(f'`{label}`' for label in metric.labels)} | {metric.text} |\n"
        for metric in own.ALL
    )
    return _METRICS_HEAD + "".join(rows)
