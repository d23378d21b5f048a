"""Kubernetes quantities and decimal strings as exact numbers, and back to text that people read.

Everything is integer or decimal arithmetic: a quantity that went through here compares and adds without rounding.
"""

import re
from decimal import ROUND_CEILING, Context, Decimal
from typing import Final

DECIMAL: Final = r"^[0-9]{1,9}(\.[0-9]{1,6})?$"
QUANTITY: Final = r"^[0-9]{1,18}(\.[0-9]{1,9})?(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?$"

SCALE: Final[dict[str, Decimal]] = {
    "": Decimal(1),
    "m": Decimal("0.001"),
    **{unit: Decimal(1000) ** power for power, unit in enumerate("kMGTPE", start=1)},
    **{f"{unit}i": Decimal(1024) ** power for power, unit in enumerate("KMGTPE", start=1)},
}
_EXACT: Final = Context(prec=64)  # eighteen digits, nine places and the largest unit take 47
_PARTS: Final = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,9})?)([a-zA-Z]*)")


def parse_quantity(text: str | int) -> Decimal:
    """The number that a quantity stands for: "1500m" is 1.5, "24Gi" is 25769803776."""
    match = _PARTS.fullmatch(str(text))
    if match is None or match[2] not in SCALE:
        raise ValueError(f"{text!r} is not a quantity; write a number and a unit, as 24Gi, 500M, 4 or 1500m")
    return _EXACT.multiply(Decimal(match[1]), SCALE[match[2]])


def parse_bytes(text: str | int) -> int:
    """A quantity of memory as whole bytes, rounded up."""
    return int(parse_quantity(text).to_integral_value(rounding=ROUND_CEILING))


def parse_millicores(text: str | int) -> int:
    """A quantity of CPU as thousandths of a core, rounded up."""
    return int(_EXACT.multiply(parse_quantity(text), Decimal(1000)).to_integral_value(rounding=ROUND_CEILING))


def parse_decimal(text: str) -> Decimal:
    """A decimal string of the API ("12.5") as an exact number."""
    if re.fullmatch(DECIMAL[1:-1], text) is None:
        raise ValueError(f"{text!r} is not a decimal number; write digits with at most one point, as 12.5")
    return Decimal(text)


def format_decimal(value: Decimal | int, places: int = 2) -> str:
    """An exact number as a decimal string of the API: rounded to places, without needless zeros."""
    text = f"{Decimal(value):.{places}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def format_quantity(count: int) -> str:
    """Whole bytes as the shortest exact quantity with a binary unit: 25769803776 is 24Gi, 1000 stays 1000."""
    for unit in ("Ei", "Pi", "Ti", "Gi", "Mi", "Ki"):
        size = int(SCALE[unit])
        if count and count % size == 0:
            return f"{count // size}{unit}"
    return str(count)


def format_gib(count: int, places: int = 1) -> str:
    """Bytes for people: GiB with a fixed number of places."""
    return f"{Decimal(count) / 2**30:.{places}f} GiB"


def check_decimal(value: object) -> str:
    """What people may write for a decimal string: text, or a whole number as it is; kept as text."""
    text = _text_of(value)
    if isinstance(text, str) and re.fullmatch(DECIMAL[1:-1], text) is not None:
        return text
    raise ValueError(
        "must be a number in plain digits that is not negative, without a unit; write a whole one as 20, and "
        'others in quotes, as "2.49"'
    )


def check_quantity(value: object) -> str:
    """What the API takes as a quantity: text in Kubernetes' form, or a whole number; kept as text."""
    text = _text_of(value)
    if isinstance(text, str) and re.fullmatch(QUANTITY[1:-1], text) is not None:
        return text
    raise ValueError("not a quantity; write a number and a unit, as 24Gi, 500M, 4 or 1500m")


def _text_of(value: object) -> object:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value
