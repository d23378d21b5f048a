"""In which format a part of a model is stored, in which a device multiplies it, and how fast."""

from __future__ import annotations

from plimsoll.facts.architecture import Architecture, Part
from plimsoll.facts.dtypes import Dtype
from plimsoll.facts.gpus import Gpu
from plimsoll.facts.weights import bits_per_weight

WIDE_FORMATS = (Dtype.BFLOAT16, Dtype.FLOAT16, Dtype.FLOAT32)


def bytes_each(architecture: Architecture, part: Part) -> float:
    """Bytes of one stored weight of a part."""
    return bits_per_weight(architecture.quantization, part, architecture.dtype) / 8


def stored_format(architecture: Architecture, part: Part) -> Dtype:
    """The format in which most of a part's weights are stored."""
    quantization = architecture.quantization
    size = bits_per_weight(quantization, part, architecture.dtype)
    if quantization is None or size >= architecture.dtype.bits - 1:
        return architecture.dtype
    named = [
        d.dtype or architecture.dtype for d in quantization.deviations if d.part is part and d.share > 0.5
    ]
    return named[0] if named else quantization.weights


def compute_format(architecture: Architecture, part: Part, gpu: Gpu) -> Dtype:
    """The format in which a part is multiplied: the stored one where the device has it, else the model's own."""
    stored = stored_format(architecture, part)
    return stored if is_native(stored, gpu) else architecture.dtype


def is_native(stored: Dtype, gpu: Gpu) -> bool:
    """Whether a device multiplies a format as it is stored. Otherwise weights are unpacked to 16 bits first, as 4-bit integers are on all
    GPUs and FP4 is on those before Blackwell."""
    return stored is not Dtype.INT4 and (stored in gpu.flops or stored in WIDE_FORMATS)


def peak(gpu: Gpu, dtype: Dtype) -> float:
    """Dense operations a second in a format; one without a figure of its own runs at 16-bit speed."""
    if dtype in gpu.flops:
        return float(gpu.flops[dtype])
    wide = [gpu.flops[wider] for wider in WIDE_FORMATS if wider in gpu.flops]
    return float(max(wide)) if wide else float(max(gpu.flops.values()))


def peak_of(architecture: Architecture, part: Part, gpu: Gpu) -> float:
    """Operations a second in the format in which this part is multiplied on this GPU."""
    return peak(gpu, compute_format(architecture, part, gpu))
