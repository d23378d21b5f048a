"""Stories in one line each: a real plan, pods in given stages, and the rollout that follows from both."""

from __future__ import annotations

from plimsoll.api.v1alpha1.deployment import LLMDeployment
from plimsoll.control.rollout import Rules, move
from plimsoll.control.rollout.targets import Wanted
from plimsoll.facts.serving import PodSeen, Serving, SetSeen, Stage
from plimsoll.planning.plan import Plan
from plimsoll.status.story import Story
from tests.planning.asking import deployment, planned, pool

NOW = "2026-01-01T00:00:00Z"
RULES = Rules()


def pod(stage: Stage = Stage.READY, number: int = 0, **others) -> PodSeen:
    return PodSeen(name=f"chat-aaaa-{number}", uid=str(number), stage=stage, **others)


def asked(**spec) -> LLMDeployment:
    found: LLMDeployment = deployment(**spec)
    return found.model_copy(update={"metadata": found.metadata.model_copy(update={"generation": 3})})


def story(
    *pods: PodSeen,
    spec: dict[str, object] | None = None,
    pools=(),
    plan: Plan | None = None,
    old: tuple[SetSeen, ...] = (),
    now: float = 0.0,
    per_replica: int = 1,
    rules: Rules = RULES,
    **others,
) -> Story:
    one = asked(**(spec or {}))
    plan = plan or planned(one, *(pools or (pool(),)))
    seen = (
        ()
        if not pods
        else (
            SetSeen(
                name="chat-aaaa", replicas=len(pods) // per_replica, pods_per_replica=per_replica, pods=pods
            ),
        )
    )
    serving = Serving(sets=(*old, *seen), scalers=others.pop("scalers", ()))
    rollout = None
    if plan.sets:
        wanted = [Wanted("chat-aaaa", plan.replicas)]
        rollout = move(wanted, serving, rules, now)
    return Story(deployment=one, plan=plan, rollout=rollout, serving=serving, **others)
