"""A constant number of replicas."""

from __future__ import annotations

from collections.abc import Mapping

from plimsoll.simulate.policies.base import View, Wish


class Static:
    histograms = False

    def __init__(self, replicas: int, name: str = "static") -> None:
        self.name = name
        self.replicas = replicas
        self.settings: Mapping[str, float] = {"replicas": replicas}

    def decide(self, view: View) -> Wish | None:
        if view.told == self.replicas:
            return None
        return Wish(self.replicas, "Static", f"always {self.replicas}")
