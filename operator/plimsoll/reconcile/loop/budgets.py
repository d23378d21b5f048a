"""What the admin's budgets still allow a namespace, by the last decisions of all its deployments; counted once a tick."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from plimsoll.api.config import OperatorConfig
from plimsoll.planning.placing.budgets import UNLIMITED, Claim, Limits, limits_of


class Budgets:
    def __init__(self, config: OperatorConfig, spends: Mapping[str, tuple[tuple[Claim, int], ...]]) -> None:
        self._config, self._spends = config, spends
        self._left: dict[str, Limits] = {}

    def allows(self, key: str, claim: Claim) -> int | None:
        """How many further replicas of this kind a deployment may have for a while; None is any number. The most replicas of one deployment
        are no bound here: they are those that stay. Until plans are read nobody knows what its neighbours take."""
        namespace = key.partition("/")[0]
        if namespace not in self._left:
            self._left[namespace] = self._of(namespace)
        left = self._left[namespace]
        if left == UNLIMITED:
            return None
        return left.allows(claim) if key in self._spends else 0

    def _of(self, namespace: str) -> Limits:
        left = replace(limits_of(namespace, self._config), replicas=None)
        if left == UNLIMITED:
            return UNLIMITED
        for key, spent in self._spends.items():
            if key.startswith(f"{namespace}/"):
                for claim, replicas in spent:
                    left = left.less(claim, replicas)
        return left
