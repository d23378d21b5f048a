"""Engine settings that do not depend on the size of the cache: utilization, batched tokens, prefix caching, and those of features.

Each comes with the reason that `explain` prints. `sequences` decides how many sequences may run, and what follows from that.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Final

from plimsoll.api.quantity import format_gib, parse_bytes
from plimsoll.facts.gpus import GIB, Vendor
from plimsoll.planning.ask.features import kv_dtype, lora_slots, multimodal_items, speculation
from plimsoll.planning.ask.guesses import tokens_each, with_guesses
from plimsoll.planning.ask.stretched import rope_scaling
from plimsoll.planning.ask.task import Task
from plimsoll.planning.ask.values import as_set, explained
from plimsoll.planning.layouts.layout import Layout
from plimsoll.planning.placing.placement import Slot
from plimsoll.planning.plan import Origin, Value
from plimsoll.planning.settings import EngineSettings
from plimsoll.planning.settle.chunk import step_tokens
from plimsoll.planning.settle.cpu import cpu_size

UTILIZATION: Final = "memory.utilizationPercent"
RESERVE_BYTES: Final = 4 * GIB
"""Left outside the engine's share of a large device: what drivers, allocators and late buffers take after profiling."""
MOST_UTILIZATION: Final = 0.95
UNIFIED_UTILIZATION: Final = 0.80
"""Utilization where GPU and host share one memory, of which the pod and the kernel need a part."""
PREFIX_PAYS: Final = 0.35
"""Share of a prompt that is shared with others from which on prefix caching is worth its bookkeeping."""


def base_settings(
    task: Task, slot: Slot, layout: Layout, *, generous: bool = False
) -> tuple[EngineSettings, tuple[Value, ...]]:
    """The settings, and the reasons for them. The number of sequences is a first one: what somebody set, or the engine's default.

    With `generous` as much of the device is taken as is safe, which may be more than a preset says.
    """
    gpu, device_bytes = slot.gpu, slot.hardware.memory_bytes
    spec, memory, architecture = task.intent.spec, task.intent.spec.memory, task.model.architecture
    on_cpu = gpu.vendor is Vendor.CPU
    tokens_default, sequences_default = task.engine.batch_defaults(
        device_bytes, "cpu" if on_cpu else gpu.architecture, unified_memory=gpu.unified_memory
    )
    utilization, why_utilization = _utilization(task, slot, generous=generous)
    dtype, why_dtype = kv_dtype(task.intent, architecture)
    asked = spec.engine.max_sequences
    most = asked if asked is not None else sequences_default
    batched, why_batched = step_tokens(task, gpu, layout, dtype, sequences=most, default=tokens_default)
    batched, why_batched = with_guesses(task, batched, why_batched)
    caching, why_caching = _prefix_caching(task)
    fixed = None if memory.kv_cache_size is None else parse_bytes(memory.kv_cache_size)
    settings = EngineSettings(
        max_model_len=task.context.tokens,
        max_num_seqs=min(most, batched // tokens_each(spec, task.engine)),
        max_num_batched_tokens=batched,
        utilization=utilization,
        kv_cache_bytes=cpu_size(task, slot).cache_bytes if on_cpu else fixed,
        kv_dtype=dtype,
        block_size=spec.engine.block_tokens,
        prefix_caching=caching,
        # The image for CPUs has no compiler.
        eager=on_cpu if spec.engine.eager is None else spec.engine.eager,
        lora=lora_slots(spec),
        speculation=speculation(spec, task.model, task.draft),
        multimodal_items=multimodal_items(spec),
        rope=rope_scaling(task.intent, architecture),
        kv_offload_bytes=0 if memory.kv_offload is None else parse_bytes(memory.kv_offload.size),
        weight_offload_bytes=0 if memory.cpu_offload is None else parse_bytes(memory.cpu_offload),
    )
    return settings, (task.context.value, why_utilization, why_batched, why_caching, why_dtype)


def share_on(task: Task, slot: Slot) -> Fraction | None:
    """The part of a shared device that the engine may use; None is all of it."""
    share = task.intent.share
    if slot.hardware.sharing > 1:
        part = Fraction(1, slot.hardware.sharing)
        return part if share is None else min(share, part)
    return share


def most_utilization(task: Task, slot: Slot) -> float:
    """The largest utilization that may be tried on some devices."""
    return max(_utilization(task, slot, generous=generous)[0] for generous in (False, True))


def _utilization(task: Task, slot: Slot, *, generous: bool) -> tuple[float, Value]:
    intent, field, default = task.intent, UTILIZATION, task.engine.utilization_default
    gpu, device_bytes, share = slot.gpu, slot.hardware.memory_bytes, share_on(task, slot)
    asked = intent.spec.memory.utilization_percent
    within = asked is not None and (share is None or asked / 100 <= share)
    if asked is not None and within and (not generous or intent.binds(field)):
        return asked / 100, as_set(intent, "utilization", field, f"{asked}%")
    keep = max(RESERVE_BYTES, intent.headroom_bytes or 0)
    if gpu.unified_memory:
        chosen, formula = UNIFIED_UTILIZATION, "unified memory: the host lives in it too"
    elif not task.engine.graphs_in_budget:
        chosen = default
        formula = "the engine's default: this version takes CUDA graphs from outside its share"
    else:
        chosen = min(MOST_UTILIZATION, max(default, 1 - keep / device_bytes))
        formula = f"1 - reserve / device, within {default:.0%} and {MOST_UTILIZATION:.0%}"
    if intent.headroom_bytes is not None:
        chosen = min(chosen, 1 - intent.headroom_bytes / device_bytes)
    if share is not None and chosen > share:
        chosen, formula = float(share), "the deployment's share of the device"
    # Rounded down to whole percent. What is added keeps 0.95 at 95, which as a float times 100 may come out a little lower.
    chosen = max(1, int(chosen * 100 + 1e-9)) / 100
    return chosen, explained(
        "utilization",
        f"{chosen:.0%}",
        formula,
        inputs={
            "device": format_gib(device_bytes),
            "reserve": format_gib(keep),
            "engine default": f"{default:.0%}",
        },
        origin=Origin.DERIVED,
        source="GPU memory",
        changes=f"{field}, memory.headroom or memory.tenancySharePercent",
        field=field,
    )


def _prefix_caching(task: Task) -> tuple[bool, Value]:
    name, field, intent = "prefix_caching", "engine.prefixCaching", task.intent
    asked, share = intent.spec.engine.prefix_caching, intent.shared_prefix
    encoder = task.model.architecture.encoder
    if asked is not None and (intent.binds(field) or not encoder):
        return asked, as_set(intent, name, field, str(asked).lower())
    changes = f"workload.sharedPrefixPercent or {field}"
    if encoder:
        return False, explained(
            name,
            "false",
            "a model that looks both ways keeps nothing of one request for the next; the engine may fail with it",
            origin=Origin.DERIVED,
            source="the model's config",
            changes=field,
            field=field,
        )
    if share is not None:
        chosen = share >= PREFIX_PAYS
        return chosen, explained(
            name,
            str(chosen).lower(),
            f"on from {PREFIX_PAYS:.0%} shared prefix",
            inputs={"shared": f"{share:.0%}"},
            origin=Origin.DERIVED,
            source="workload.sharedPrefixPercent",
            changes=changes,
            field=field,
        )
    chosen = task.engine.prefix_caching_default and not task.model.architecture.is_hybrid
    return chosen, explained(
        name,
        str(chosen).lower(),
        "the engine's default; off where layers of fixed state would have to keep copies of it",
        origin=Origin.ENGINE,
        source=f"{task.engine.name} {task.engine.version}",
        changes=changes,
        field=field,
    )
