"""A real Prometheus and a real Alertmanager, what they scrape, and what they tell."""

from cluster.metrics.config import PodDiscovery, Target, Webhook
from cluster.metrics.pages import MetricsServer, Page
from cluster.metrics.prometheus import Prometheus, QueryRefused, Sample
from cluster.metrics.promtool import promtool
from cluster.metrics.receiver import Receiver

__all__ = [
    "MetricsServer",
    "Page",
    "PodDiscovery",
    "Prometheus",
    "QueryRefused",
    "Receiver",
    "Sample",
    "Target",
    "Webhook",
    "promtool",
]
