"""The formats of numbers, by the names that the rest of the package uses, and how many bits a number takes in each.

Checkpoints, flags and data sheets spell formats in many ways; parsers translate them into these few. Where values share scales (MXFP4:
one byte for 32 values, NVFP4: one byte for 16), the scales are counted in the bits here, and no caller adds them.
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
