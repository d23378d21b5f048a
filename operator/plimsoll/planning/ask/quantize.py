"""What `quantization.method` does to a checkpoint: nothing, quantize it while loading, or fail.

Methods for a quantized checkpoint need one of their own kind; methods that quantize while loading need one that is not quantized.
Either mistake would end a start only after minutes of loading, so both are found here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from plimsoll.api.v1alpha1.spec import LLMDeploymentSpec
from plimsoll.facts.architecture import Quantization
from plimsoll.facts.dtypes import Dtype
from plimsoll.facts.engine_versions import release
from plimsoll.facts.engines import EngineFacts
from plimsoll.facts.model import Certainty, ModelFacts
from plimsoll.facts.weights import weights_from_architecture
from plimsoll.planning.plan import Finding, Severity

FIELD: Final = "quantization.method"

ONLINE: Final = {
    # The engine takes it for the next one where the checkpoint is not quantized; no scales for a cache come with it.
    "fp8": Quantization(method="fp8_per_tensor", weights=Dtype.FP8, activations=Dtype.FP8),
    "fp8_per_tensor": Quantization(method="fp8_per_tensor", weights=Dtype.FP8, activations=Dtype.FP8),
    "fp8_per_channel": Quantization(method="fp8_per_channel", weights=Dtype.FP8, activations=Dtype.FP8),
    "fp8_per_block": Quantization(
        method="fp8_per_block", weights=Dtype.FP8, activations=Dtype.FP8, block=(128, 128)
    ),
    "mxfp8": Quantization(method="mxfp8", weights=Dtype.FP8, activations=Dtype.FP8),
    "int8_per_channel_weight_only": Quantization(method="int8_per_channel_weight_only", weights=Dtype.INT8),
    "experts_int8": Quantization(method="experts_int8", weights=Dtype.INT8, experts_only=True),
    "bitsandbytes": Quantization(method="bitsandbytes", weights=Dtype.INT4),
    "nvfp4_per_token": Quantization(
        method="nvfp4_per_token", weights=Dtype.NVFP4, activations=Dtype.NVFP4, group_size=16
    ),
}
"""By method: the format in which a 16-bit checkpoint is in memory after it was quantized while loading."""

DEPRECATED: Final = frozenset({"fbgemm_fp8"})
"""Methods of checkpoints that the engine reads only where its user allows it by a flag. Other deprecated methods cannot be planned."""
CONSENT: Final = "--allow-deprecated-quantization"
CONSENT_FROM: Final = release("0.20.2")
"""The oldest release that is known to ask for the flag."""

_KINS: Final = (
    {"awq", "awq_marlin", "auto_awq", "cpu_awq", "moe_wna16"},
    {"gptq", "gptq_marlin", "auto_gptq", "moe_wna16"},
    {"mxfp4", "gpt_oss_mxfp4"},
    {"modelopt", "modelopt_fp4", "modelopt_mixed", "modelopt_mxfp8"},
    {"inc", "auto-round", "auto_round"},
    {"fp8", "deepseek_v4_fp8"},
    {"bitsandbytes"},
)
"""Groups of methods that read the same checkpoints."""


def as_served(
    model: ModelFacts, method: str | None, engine: EngineFacts
) -> tuple[ModelFacts, tuple[Finding, ...]]:
    """The model as it will be in memory, and a finding where the method is wrong for it."""
    if method is None:
        return model, ()
    own = model.architecture.quantization
    if method not in engine.quantizations:
        known = ", ".join(engine.quantizations)
        message = (
            f"{FIELD} is {method!r}, which {engine.name} {engine.version} does not know; it knows {known}"
        )
        return model, (_error("UnknownQuantization", message, method, "leave it out, or one of these"),)
    if own is not None:
        if method == own.method or any(method in kin and own.method in kin for kin in _KINS):
            return model, ()
        message = (
            f"{FIELD} is {method!r}, but the checkpoint is quantized with {own.method!r}; leave the field out, or name "
            f"a checkpoint of that kind"
        )
        return model, (_error("QuantizationMismatch", message, method, f"leave it out, or {own.method}"),)
    online = ONLINE.get(method)
    if online is None:
        message = (
            f"{FIELD} is {method!r}, which reads a checkpoint that is quantized so already; {model.source} holds "
            f"{model.architecture.dtype.value} weights. Name a quantized checkpoint, or quantize while loading with "
            f"fp8_per_tensor"
        )
        return model, (_error("QuantizationNeedsCheckpoint", message, method, "a quantized checkpoint"),)
    architecture = replace(model.architecture, quantization=online)
    weights = replace(
        weights_from_architecture(architecture),
        # What is fetched is the checkpoint as it is.
        stored=model.weights.on_storage,
        certainty=Certainty.CALIBRATED,
    )
    return replace(model, architecture=architecture, weights=weights, digest=f"{model.digest}-{method}"), ()


def check_deprecated(spec: LLMDeploymentSpec, model: ModelFacts, engine: EngineFacts) -> Iterator[Finding]:
    """A finding where the engine reads the checkpoint only with its user's consent, and the consent is missing."""
    own = model.architecture.quantization
    asks = engine.release is None or engine.release >= CONSENT_FROM
    if own is None or own.method not in DEPRECATED or not asks:
        return
    matches = (engine.flags.find(word.partition("=")[0]) for word in spec.engine.extra_args)
    if any(match is not None and match.flag.name == CONSENT and not match.negated for match in matches):
        return
    yield Finding(
        severity=Severity.ERROR,
        reason="QuantizationDeprecated",
        message=f"{model.source} is quantized with {own.method!r}, which {engine.name} {engine.version} is about to give up "
        f"and refuses to read without {CONSENT}",
        field="model.source",
        value=model.source,
        remedy=f"{CONSENT} among engine.extraArgs, or a checkpoint of another kind",
    )


def _error(reason: str, message: str, value: str, remedy: str) -> Finding:
    return Finding(
        severity=Severity.ERROR, reason=reason, message=message, field=FIELD, value=value, remedy=remedy
    )
