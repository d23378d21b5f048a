# ruff: noqa: PLC0415 - it runs in an environment of its own, which it must prepare before it imports
# mypy: ignore-errors
"""Let vLLM do its own arithmetic of weights and cache, without a GPU and without weights; a program for the parsers' environment.

    python engine_arithmetic_script.py FOLDER

FOLDER holds an unpacked `vllm` package. Standard input: a list of cases; standard output: a line of JSON for each, as it is
done. A case is {config, gpu: {compute, name, bytes}, tensor, pipeline, arguments, available: [bytes]}; its answer is {weights:
[bytes of a rank, a stage each], capacity: [{blocks, block_tokens, tokens, groups} or {refused}]} or {error, where}.

The model's own class is built on the meta device as rank 0 of each stage, so that every parameter has its shape and none has
bytes. What stands in for a GPU is `engine_without_gpu`.
"""

import contextlib
import json
import os
import sys
import tempfile
import traceback
from pathlib import Path

from engine_without_gpu import GPU, Ranks, classes_here, prepare


def configuration(case, folder):
    from vllm.engine.arg_utils import EngineArgs
    from vllm.usage.usage_lib import UsageContext

    Path(folder, "config.json").write_text(json.dumps(case["config"]), "utf-8")
    Path(folder, "preprocessor_config.json").write_text("{}", "utf-8")
    told = EngineArgs(
        model=folder,
        skip_tokenizer_init=True,
        load_format="dummy",
        tensor_parallel_size=case["tensor"],
        pipeline_parallel_size=case["pipeline"],
        distributed_executor_backend="mp",
        disable_log_stats=True,
        **case["arguments"],
    )
    return told.create_engine_config(usage_context=UsageContext.OPENAI_API_SERVER)


def built(config):
    """The model's class on the meta device."""
    import torch
    from vllm.model_executor.model_loader.utils import initialize_model

    try:
        from vllm.utils.torch_utils import set_default_torch_dtype
    except ImportError:
        from vllm.model_executor.model_loader.utils import set_default_torch_dtype

    class Redirected(torch.overrides.TorchFunctionMode):
        """What asks for the device by name gets the one that holds no bytes."""

        def __torch_function__(self, function, _types, args=(), kwargs=None):
            told = kwargs or {}
            if str(told.get("device")).startswith("cuda"):
                told = {**told, "device": "meta"}
            return function(*args, **told)

    with set_default_torch_dtype(config.model_config.dtype), torch.device("meta"), Redirected():
        return initialize_model(vllm_config=config)


def bytes_of(model):
    """Every tensor once: tied ones are shared, and tables of positions are buffers."""
    found = {}
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        found[id(tensor)] = (name, tensor.numel() * tensor.element_size())
    return dict(found.values())


def specs_of(config):
    """What each layer keeps, as the worker asks for it."""
    from vllm.config import get_layers_from_vllm_config
    from vllm.model_executor.layers.attention_layer_base import AttentionLayerBase

    try:
        from vllm.v1.worker.gpu.attn_utils import get_kv_cache_spec

        return get_kv_cache_spec(config)
    except ImportError:
        pass
    found = {}
    for name, layer in get_layers_from_vllm_config(config, AttentionLayerBase).items():
        if getattr(layer, "kv_sharing_target_layer_name", None):
            continue
        if spec := layer.get_kv_cache_spec(config):
            found[name] = spec
    return found


def resolved(config, specs):
    """What the engine's core settles between the layers' specs and the blocks, where this version settles it there."""
    with contextlib.suppress(ImportError):
        from vllm.v1.core.single_type_kv_cache_manager import register_all_kvcache_specs

        register_all_kvcache_specs(config)
    with contextlib.suppress(ImportError):
        from vllm.distributed.kv_transfer.kv_connector.utils import get_current_attn_backends
        from vllm.v1.attention.backends.utils import get_supported_kv_cache_layouts, resolve_kv_cache_layout

        names = [layout.name for layout in get_supported_kv_cache_layouts(get_current_attn_backends(config))]
        resolve_kv_cache_layout(config, [names], [spec for own in specs for spec in own.values()])


def capacity(config, specs, available):
    """Blocks and tokens for these bytes, by the functions that the engine's core calls."""
    from vllm.v1.core import kv_cache_utils

    try:
        from vllm.v1.core import kv_cache_planning as planning
    except ImportError:
        made = kv_cache_utils.get_kv_cache_configs(config, specs, available)
    else:
        groups = planning.get_global_kv_cache_groups(config, specs)
        made = planning.get_kv_cache_configs(config, specs, available, groups)
    scheduled = kv_cache_utils.generate_scheduler_kv_cache_config(made)
    requests = kv_cache_utils.get_max_concurrency_for_kv_cache_config(config, scheduled)
    kinds = [group.kv_cache_spec for group in scheduled.kv_cache_groups]
    printed = [kind for kind in kinds if getattr(kind, "prefix_cacheable", True)] or kinds
    return {
        "blocks": scheduled.num_blocks,
        "block_tokens": min(kind.block_size for kind in printed),
        "tokens": int(requests * config.model_config.max_model_len),
        "groups": [
            f"{type(group.kv_cache_spec).__name__} {len(group.layer_names)} x {group.kv_cache_spec.block_size} tokens, "
            f"{group.kv_cache_spec.page_size_bytes} B"
            for group in scheduled.kv_cache_groups
        ],
    }


def _held(config, specs, available):
    try:
        return capacity(config, specs, available)
    except ValueError as error:
        return {"refused": str(error)[:200]}


def answered(case):
    from vllm.config import set_current_vllm_config
    from vllm.platforms import current_platform

    GPU.update(case["gpu"], compute=tuple(case["gpu"]["compute"]))
    tensor, stages = case["tensor"], case["pipeline"]
    weights, specs = [], []
    with tempfile.TemporaryDirectory() as folder:
        for stage in range(stages):
            with Ranks(tensor, stages, stage):
                config = configuration(case, folder)
                sizes = bytes_of(built(config))
                weights.append(sum(sizes.values()))
                with set_current_vllm_config(config):
                    current_platform.update_block_size_for_backend(config)
                    specs.append(specs_of(config))
        with Ranks(tensor, stages, stages - 1), set_current_vllm_config(config):
            resolved(config, specs)
            found = [
                _held(config, [dict(own) for own in specs], [size] * stages) for size in case["available"]
            ]
    answer = {"weights": weights, "capacity": found, "length": config.model_config.max_model_len}
    return answer | ({"tensors": sizes} if case.get("tensors") else {})


def main():
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    prepare(str(Path(sys.argv[1]).resolve()))
    classes_here()
    for case in json.load(sys.stdin):
        try:
            found = answered(case)
        except Exception as error:  # noqa: BLE001 - what cannot be built is an answer
            found = {
                "error": f"{type(error).__name__}: {error}"[:600],
                "where": traceback.format_exc()[-3000:],
            }
        answer.write(json.dumps(found) + "\n")
        answer.flush()


if __name__ == "__main__":
    main()
