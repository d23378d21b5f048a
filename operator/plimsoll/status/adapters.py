"""The status of LoRA adapters: on how many replicas each is loaded, and why it is not on the others.

Adapters among the engine's own arguments are loaded when the engine serves. Those that come and go are as the supervisors report them;
what a supervisor reports of an earlier list, or of an engine that does not serve yet, is not counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from plimsoll.api.v1alpha1.features import Adapter
from plimsoll.api.v1alpha1.status import AdapterStatus
from plimsoll.engines.adapters import adapter_id
from plimsoll.facts.report import AdapterSeen
from plimsoll.facts.serving import PodSeen, Stage
from plimsoll.status.story import Story
from plimsoll.status.summary import cut

UNSUPERVISED: Final = "NoSupervisor"
NO_LIST: Final = "NoList"
UNTOLD: Final = "ListUntold"


def adapters_of(story: Story) -> tuple[AdapterStatus, ...]:
    """The declared adapters, sorted by name; empty where nothing runs."""
    adapters = story.adapters
    if adapters is None or story.rollout is None:
        return ()
    items = sorted(adapters.items, key=lambda item: item.name)
    if not adapters.runtime_loading:
        return tuple(_fixed(item.name, story.on_plan) for item in items)
    leaders = [pod for pod in story.pods if pod.rank == 0 and pod.stage is Stage.READY]
    return tuple(_over(item, leaders, story) for item in items)


def failed_adapters(story: Story) -> str:
    """A sentence on the adapters that cannot be loaded; empty where all can."""
    found = [one for one in adapters_of(story) if one.state == "Failed"]
    if not found:
        return ""
    first = found[0]
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    return f"adapter {first.name}{more}: {first.message}"


def loaded_names(story: Story) -> tuple[str, ...]:
    """Names of the adapters that every replica has loaded."""
    return tuple(one.name for one in adapters_of(story) if one.state == "Loaded")


def _fixed(name: str, serve: int) -> AdapterStatus:
    """An adapter that is among the engine's arguments: a replica that serves has loaded it."""
    return AdapterStatus(name=name, state="Loaded" if serve else "Loading", loaded=serve, replicas=serve)


@dataclass(frozen=True, slots=True)
class _Here:
    """An adapter in one replica."""

    loaded: bool = False
    failed: bool = False
    reason: str = ""
    message: str = ""


def _over(item: Adapter, leaders: Sequence[PodSeen], story: Story) -> AdapterStatus:
    each = [_here(item, pod, story) for pod in leaders]
    loaded, count = sum(here.loaded for here in each), len(each)
    why = next(_worst(each), None)
    state: Literal["Loaded", "Loading", "Failed"] = "Loaded" if count and loaded == count else "Loading"
    if why is not None and why.failed:
        state = "Failed"
    message = None
    if why is not None:
        message = cut(f"on {loaded} of {count} replicas: {why.message}")
    elif not count:
        message = "no replica serves yet"
    return AdapterStatus(
        name=item.name,
        state=state,
        loaded=loaded,
        replicas=count,
        reason=(why.reason or None) if why is not None else None,
        message=message,
    )


def _worst(each: Sequence[_Here]) -> Iterator[_Here]:
    yield from (here for here in each if here.failed)
    yield from (here for here in each if not here.failed and not here.loaded)


def _here(item: Adapter, pod: PodSeen, story: Story) -> _Here:
    if pod.runtime_port is None:
        return _Here(
            failed=True,
            reason=UNSUPERVISED,
            message="its pod has no supervisor to load it (runtime.enabled of the admin's config when the set was made). Remedy: "
            "runtime.enabled and a new set, or spec.adapters.runtimeLoading: false, or load it by hand",
        )
    report = story.reports.get(pod.uid)
    if report is not None and report.serves and report.adapters is None:
        return _Here(
            failed=True,
            reason=NO_LIST,
            message="its supervisor keeps no adapters: its set was made by a release that told pods of no list. Remedy: a new set "
            "(any edit of spec.podAnnotations), or load it by hand",
        )
    seen = None if report is None else _seen(item, report.adapters or ())
    if seen is None:
        return _Here(
            reason=UNTOLD, message="its pod has not told of it; a new list takes a minute or so to reach pods"
        )
    if seen.state == "Loaded":
        return _Here(loaded=True)
    if seen.state == "Failed":
        helps = f". Remedy: {seen.remedy}" if seen.remedy else ""
        return _Here(failed=True, reason=seen.reason, message=f"{seen.message}{helps}")
    return _Here(reason=seen.state, message=seen.message or "it is being fetched")


def _seen(item: Adapter, told: Sequence[AdapterSeen]) -> AdapterSeen | None:
    return next((one for one in told if one.name == item.name and one.id == adapter_id(item)), None)
