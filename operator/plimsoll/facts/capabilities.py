"""Which optional kinds a cluster serves, so that objects of these kinds are made only where it does."""

from __future__ import annotations

Capabilities = frozenset[tuple[str, str]]
"""Pairs of API group and kind, e.g. ("gateway.networking.k8s.io", "HTTPRoute"), served in the version that `render` writes."""

NONE: Capabilities = frozenset()
