"""The configuration of a LiteLLM gateway in front of deployments, so that it never asks for more than was planned.

It is made from the plan alone: lengths from the planned context, rates from what all replicas together are predicted to answer, as many
as there may come to be. Where a plan predicts no rates the file has none, and a note says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import floor
from typing import Any, Final

from plimsoll.api.config import OperatorConfig
from plimsoll.api.defaults import effective
from plimsoll.api.v1alpha1.deployment import LLMDeployment
from plimsoll.api.v1alpha1.spec import LLMDeploymentSpec
from plimsoll.engines.timing import TAIL, long_length, wait_seconds
from plimsoll.engines.vllm import served_names
from plimsoll.planning.plan import Plan
from plimsoll.render.sets import owner_of
from plimsoll.render.shared import service_host

LEAST_ANSWER, MOST_ANSWER = 50, 75
"""Percent of the context that the longest answer takes at least and at most: less would cut answers that fit, more would leave prompts no
room. It takes less where prompts are declared that need more."""
PROVIDER: Final = "hosted_vllm"
"""LiteLLM's word for this kind of OpenAI-compatible engine."""
MODES: Final = {"embed": "embedding", "rerank": "rerank", "classify": "rerank"}


@dataclass(frozen=True, slots=True)
class Planned:
    """A deployment and its plan."""

    deployment: LLMDeployment
    plan: Plan


def litellm(planned: Iterable[Planned], config: OperatorConfig) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The file's content, and notes on what it lacks. Deployments whose plan runs nothing have no entry."""
    entries: list[dict[str, Any]] = []
    notes: list[str] = []
    aliases: dict[str, str] = {}
    for one in planned:
        if one.plan.sets:
            spec = effective(one.deployment.spec, one.deployment.namespace, config).spec
            name, *others = served_names(spec.model)
            adapters = spec.adapters.items if spec.adapters is not None else ()
            # An alias would have the gateway ask for the model itself.
            made = [_entry(one, spec, each) for each in (name, *(item.name for item in adapters))]
            entries += made
            # With an entry of its own each of them would be allowed the same rates again.
            aliases |= dict.fromkeys(others, name)
            notes += _notes(one.plan, made)
    # The gateway refuses requests that are longer than the context, before an engine has to.
    router: dict[str, Any] = {"enable_pre_call_checks": True}
    if aliases:
        router["model_group_alias"] = aliases
    return {"model_list": entries, "router_settings": router}, tuple(notes)


def _entry(planned: Planned, spec: LLMDeploymentSpec, name: str) -> dict[str, Any]:
    owner = owner_of(planned.deployment)
    base = f"{spec.networking.scheme}://{service_host(spec, owner)}:{spec.networking.service.port}/v1"
    lengths, rates = _lengths(spec, planned.plan), _rates(planned.plan, _replicas(spec, planned.plan))
    params: dict[str, Any] = {"model": f"{PROVIDER}/{name}", "api_base": base}
    if spec.networking.api_key_secret is not None:
        params["api_key"] = f"os.environ/{_variable(owner.name)}"
    if "max_output_tokens" in lengths:
        params["max_tokens"] = lengths["max_output_tokens"]
    params |= {**rates, "timeout": max(wait_seconds(spec, one) for one in planned.plan.sets)}
    generates = planned.plan.sets[0].load.generates
    mode = MODES.get(spec.model.task or "", "chat" if generates else "embedding")
    return {"model_name": name, "litellm_params": params, "model_info": {"mode": mode, **lengths}}


def _lengths(spec: LLMDeploymentSpec, plan: Plan) -> dict[str, int]:
    """The longest prompt and answer, by the set that takes the least: the gateway does not know which set answers. It asks for the longest
    answer wherever a request names none, and the engine refuses what does not fit beside its prompt: so long prompts are left their room, as
    far as long answers leave it."""
    context = min(one.settings.max_model_len for one in plan.sets)
    load, prompts = plan.sets[0].load, spec.workload.input_tokens
    if not load.generates:
        return {"max_input_tokens": context}
    half = context // 2
    answers = long_length(spec.workload.output_tokens) or TAIL * load.output_tokens
    # A median says nothing of the longest prompts, and what would be guessed of them is no reason to cut answers.
    longest = None if prompts is None else prompts.p99 or prompts.p95
    room = context - (longest or min(load.input_tokens, context * (100 - LEAST_ANSWER) // 100))
    answer = max(min(answers, half), min(room, context * MOST_ANSWER // 100))
    return {"max_input_tokens": context - min(load.output_tokens, half), "max_output_tokens": answer}


def _replicas(spec: LLMDeploymentSpec, plan: Plan) -> list[int]:
    """Of each set as many as there may come to be. A gateway that held back what today's replicas can not answer would keep the load from
    whoever decides to add some; those come to the first set."""
    planned = [one.replicas for one in plan.sets]
    most = spec.scaling.max if spec.replicas is None else None
    return [planned[0] + max(0, (most or 0) - sum(planned)), *planned[1:]]


def _rates(plan: Plan, replicas: Sequence[int]) -> dict[str, int]:
    """Requests and tokens a minute of all replicas together, and how many requests they answer at once within the target."""
    sets = tuple(zip(plan.sets, replicas, strict=True))
    found = {"max_parallel_requests": sum(one.max_concurrency * number for one, number in sets)}
    rates = [
        one.performance.requests_per_second * number for one, number in sets if one.performance is not None
    ]
    if len(rates) < len(sets):
        return found
    load = plan.sets[0].load
    minutely = max(1, floor(60 * sum(rates)))
    tokens = load.input_tokens + (load.output_tokens if load.generates else 0)
    return {"rpm": minutely, "tpm": minutely * tokens, **found}


def _notes(plan: Plan, entries: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    title, info = f"{plan.namespace}/{plan.name}", entries[0]["model_info"]
    if any(one.performance is None for one in plan.sets):
        yield f"{title}: no rpm and tpm, since no rate is predicted on its hardware"
    if "max_output_tokens" in info:
        room = min(one.settings.max_model_len for one in plan.sets) - info["max_output_tokens"]
        yield f"{title}: requests whose prompt is longer than {room} tokens have to say max_tokens themselves"
    if len(entries) > 1:
        yield f"{title}: its {len(entries) - 1} adapters are each allowed what all of it can answer, as a LiteLLM counts by entry"


def _variable(name: str) -> str:
    """The environment variable from which the gateway reads the API key, as keys have no place in a file."""
    return f"{name.upper().replace('-', '_')}_API_KEY"
