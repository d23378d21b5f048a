"""How many bits a number takes, and the names the rest of the package uses for the formats.

Checkpoints, flags and data sheets spell formats in many ways; parsers translate into these few. Formats with shared
scales (MXFP4: one byte for 32 values, NVFP4: one byte for 16) count their scales here, so that bytes are right by
construction and no caller adds them a second time.
"""

from __future__ import annotations

from enum import StrEnum


class Dtype(StrEnum):
    FLOAT32 = "float32"
    BFLOAT16 = "bfloat16"
    FLOAT16 = "float16"
    FP8 = "fp8"
    INT8 = "int8"
    INT4 = "int4"
    MXFP4 = "mxfp4"
    NVFP4 = "nvfp4"

    @property
    def bits(self) -> float:
        return _BITS[self]

    @property
    def bytes(self) -> float:
        return _BITS[self] / 8


_BITS = {
    Dtype.FLOAT32: 32.0,
    Dtype.BFLOAT16: 16.0,
    Dtype.FLOAT16: 16.0,
    Dtype.FP8: 8.0,
    Dtype.INT8: 8.0,
    Dtype.INT4: 4.0,
    Dtype.MXFP4: 4.25,
    Dtype.NVFP4: 4.5,
}
