"""What is wrong with autoscalers that are not Plimsoll's, in words that conditions and `plimsoll doctor` share."""

from __future__ import annotations

from collections.abc import Sequence


def set_replicas(scalers: Sequence[str], running: int) -> str:
    """Says that autoscalers scale a resource whose number of replicas Plimsoll decides, and what to do."""
    return (
        f"{_listed(scalers)} {_verb(scalers, 'scales', 'scale')} this resource, which works only while spec.replicas is "
        f"set: set it once, e.g. to the number that runs now ({running}), by kubectl scale, and never in what GitOps applies"
    )


def conflict(scalers: Sequence[str], below: Sequence[str]) -> str:
    """Says which autoscalers undo each other's or our writes, and what to do; empty where none do."""
    wrong = [several(scalers)] if len(scalers) > 1 else []
    wrong += [on_children(below)] if below else []
    return "; ".join(wrong)


def several(scalers: Sequence[str]) -> str:
    """Says that more than one autoscaler writes spec.replicas."""
    return f"{_listed(scalers)} all write spec.replicas and undo each other: keep one and delete the others"


def on_children(scalers: Sequence[str]) -> str:
    """Says that autoscalers write to a workload that Plimsoll makes, so that each write is taken back."""
    return (
        f"{_listed(scalers)} {_verb(scalers, 'targets', 'target')} an object that Plimsoll makes, so that every change is "
        "put back: target the LLMDeployment itself (apiVersion plimsoll.dev/v1alpha1), with spec.replicas set"
    )


def _listed(scalers: Sequence[str]) -> str:
    return ", ".join(scalers)


def _verb(scalers: Sequence[str], one: str, many: str) -> str:
    return one if len(scalers) == 1 else many
