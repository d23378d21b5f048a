"""Which kinds a cluster serves beside those that every cluster does: optional objects are made only where they mean something."""

from __future__ import annotations

Capabilities = frozenset[tuple[str, str]]
"""(API group, kind), e.g. ("gateway.networking.k8s.io", "HTTPRoute"). Versions are those that render writes."""

NONE: Capabilities = frozenset()
