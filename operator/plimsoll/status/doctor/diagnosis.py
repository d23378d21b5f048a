"""The findings of all checks over one look, worst first and each once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from plimsoll import names
from plimsoll.facts.examined import Examined
from plimsoll.status.doctor import cluster, deployments, namespaces
from plimsoll.status.doctor.found import Found

Check = Callable[[Examined], Iterator[Found]]

CHECKS: Final[tuple[Check, ...]] = (
    cluster.crd, cluster.operator, cluster.nodes, cluster.accelerators, cluster.health,
    deployments.pods, deployments.leaving, deployments.setting_up, deployments.probes, deployments.refusals, deployments.group_pods,
    namespaces.claims, namespaces.quotas, namespaces.scalers, namespaces.scalers_fail,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Diagnosis:
    found: tuple[Found, ...]
    unseen: tuple[str, ...]
    """What could not be looked at, so that something may be wrong there too."""

    @property
    def errors(self) -> int:
        return sum(one.severity == "error" for one in self.found)

    def to_dict(self) -> dict[str, object]:
        return {"found": [one.to_dict() for one in self.found], "unseen": list(self.unseen)}


def diagnose(examined: Examined) -> Diagnosis:
    found = [one for check in CHECKS for one in check(examined)]
    # A condition often repeats the words of another finding, which is the better one where only that one has the remedy apart.
    found += [one for one in deployments.conditions_told(examined) if one.remedy or not _repeats(one, found)]
    order = sorted(found, key=lambda one: (one.severity != "error", one.about, one.reason, one.message))
    unseen = tuple(f"{what}: {why}" for what, why in sorted((examined.unseen or {}).items()))
    return Diagnosis(tuple(dict.fromkeys(order)), unseen)


def _repeats(one: Found, others: list[Found]) -> bool:
    """Whether another finding in the same namespace says it too; a warning does not say that something is kept from serving."""
    namespace = one.about.removeprefix(f"{names.KIND} ").partition("/")[0]
    return any(
        other.message in one.message
        for other in others
        if f" {namespace}/" in other.about and (other.severity == "error" or one.severity == "warning")
    )
