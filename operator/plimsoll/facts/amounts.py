"""Quantities as clusters hold them: every form that the API server accepts, which is more than our own resource allows.

`api.quantity` reads what people write in the resource; nodes and pods of other owners also have exponents and nano-cores.
"""

from __future__ import annotations

import re
from decimal import ROUND_CEILING, Decimal
from functools import lru_cache

from plimsoll.api.quantity import SCALE

_FORM = re.compile(
    r"(?P<number>\+?(?:[0-9]{1,24}(?:\.[0-9]{0,24})?|\.[0-9]{1,24}))"
    r"(?:[eE](?P<exponent>[+-]?[0-9]{1,2})|(?P<unit>[numkMGTPE]|[KMGTPE]i)?)"
)
_UNITS = {**SCALE, "u": Decimal("0.000001"), "n": Decimal("0.000000001")}


_MOST = (1 << 63) - 1
"""The largest amount that is read: the API server caps at it, so that what was read can be written and read again."""


@lru_cache(maxsize=16384)
def whole(text: str | int) -> int:
    """Bytes or devices, rounded up."""
    return min(_MOST, int(_number(text).to_integral_value(rounding=ROUND_CEILING)))


@lru_cache(maxsize=4096)
def millicores(text: str | int) -> int:
    """Thousandths of a core, rounded up."""
    return min(_MOST, int((_number(text) * 1000).to_integral_value(rounding=ROUND_CEILING)))


def _number(text: str | int) -> Decimal:
    match = _FORM.fullmatch(str(text)[:64])
    if match is None:
        raise ValueError(
            f"{str(text)[:64]!r} is no quantity; right are numbers with a unit, as 24Gi, 500M, 4, 1500m or 1e3"
        )
    if match["exponent"]:
        return Decimal(match["number"]) * Decimal(10) ** int(match["exponent"])
    return Decimal(match["number"]) * _UNITS[match["unit"] or ""]
