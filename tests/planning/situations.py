"""A plan's inputs with overrides, for tests of the ledger and its terms."""

from plimsoll.facts.engines import engine_facts
from plimsoll.facts.gpus import gpu_named
from plimsoll.facts.model import ModelFacts
from plimsoll.facts.weights import weights_from_architecture
from plimsoll.planning.layouts.layout import Layout
from plimsoll.planning.memory.constants import fitted_constants
from plimsoll.planning.memory.situation import Situation
from plimsoll.planning.settings import EngineSettings
from tests.planning import architectures as known

GIB = 2**30


def model(arch=None, **weights):
    arch = arch or known.llama_8b()
    counted = weights_from_architecture(arch)
    return ModelFacts(
        source=f"hf://test/{arch.name}",
        revision=None,
        architecture=arch,
        weights=counted,
        origin="test",
        digest=f"digest-of-{arch.name}",
        **weights,
    )


def settings(**others):
    defaults = {
        "max_model_len": 8192,
        "max_num_seqs": 256,
        "max_num_batched_tokens": 8192,
        "utilization": 0.92,
    }
    return EngineSettings(**{**defaults, **others})


def inputs(arch=None, *, gpu="H100-SXM-80GB", version="0.20.0", layout=None, **flags):
    """Keyword arguments of build_ledger."""
    return {
        "model": model(arch),
        "gpu": gpu_named(gpu),
        "layout": layout or Layout(),
        "engine": engine_facts("vllm", version),
        "settings": settings(**flags),
    }


def situation(arch=None, **others):
    found = inputs(arch, **others)
    return Situation(**found, constants=fitted_constants(), device_bytes=found["gpu"].memory_bytes)
