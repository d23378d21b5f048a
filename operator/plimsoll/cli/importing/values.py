"""Words of a command line as values of the API: whole numbers, quantities, JSON; nothing is ever rounded in silence."""

from __future__ import annotations

import json
import re
from decimal import ROUND_DOWN, ROUND_UP, Decimal, InvalidOperation
from typing import Any

from plimsoll.api.plainjson import parsed
from plimsoll.api.quantity import format_quantity
from plimsoll.facts.gpus import GIB

_SIZE = re.compile(r"(\d+(?:\.\d+)?)([kKmMgGtT]?)")
_UNITS = {
    unit: (1000 if unit.islower() else 1024) ** power
    for power, pair in enumerate(("kK", "mM", "gG", "tT"), 1)
    for unit in pair
}


class BadValueError(ValueError):
    """A value that the engine would refuse too, or that the API has no place for; the text says what is right."""


def integer(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise BadValueError(f"{text!r} is not a whole number") from None


def size(text: str) -> int:
    """An integer as the engine reads sizes: 1k is 1,000 and 1K is 1,024; fractions only with small letters."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise BadValueError(f"{text!r} is not a size; write a whole number, or one with k, K, m, M, g or G")
    number, unit = Decimal(match[1]), match[2]
    if "." in match[1] and (not unit or unit.isupper()):
        raise BadValueError(
            f"{text!r} is a fraction; write it with a small letter, as 25.6k, or as a whole number"
        )
    return int(number * _UNITS.get(unit, 1))


def decimal(text: str) -> Decimal:
    try:
        number = Decimal(text)
    except InvalidOperation:
        raise BadValueError(f"{text!r} is not a number") from None
    if not number.is_finite():
        raise BadValueError(f"{text!r} is not a number")
    return number


def percent(text: str) -> tuple[int, bool]:
    """A share between 0 and 1 as a whole percentage, and whether something was cut off for it."""
    share = decimal(text)
    if not 0 < share <= 1:
        raise BadValueError(f"{text} is not a share; write a number above 0 and at most 1")
    exact = share * 100
    whole = int(exact.to_integral_value(rounding=ROUND_DOWN))
    if whole < 1:
        raise BadValueError(f"{text} is below 1 percent, the least that a deployment can say")
    return whole, exact != whole


def permille(text: str) -> tuple[int, bool]:
    """A share from 0 on and below 1 in whole thousandths, and whether that is not exact."""
    share = decimal(text)
    if not 0 <= share < 1:
        raise BadValueError(f"{text} is not such a share; write a number from 0 on and below 1")
    exact = share * 1000
    whole = min(999, int(exact.to_integral_value(rounding=ROUND_UP)))
    return whole, exact != whole


def gibibytes(text: str) -> str | None:
    """A number of GiB as a quantity; None for 0, which means: not used."""
    count = decimal(text)
    if count < 0:
        raise BadValueError(f"{text} is below 0")
    return format_quantity(int(count * GIB)) if count else None


def parsed_json(text: str) -> Any:
    try:
        return parsed(text)
    except ValueError:
        raise BadValueError(f"{text[:80]!r} is not JSON") from None


def json_object(text: str) -> dict[str, Any]:
    value = parsed_json(text)
    if not isinstance(value, dict):
        raise BadValueError(f"{text!r} is not a JSON object")
    return value


def compact(value: Any) -> str:
    """JSON as one printable word."""
    return json.dumps(value, separators=(",", ":"))


def truth(text: str) -> bool:
    word = text.strip().lower()
    if word in ("true", "1", "yes", "on"):
        return True
    if word in ("false", "0", "no", "off"):
        return False
    raise BadValueError(f"{text!r} is neither true nor false")


def digits(number: Decimal) -> str:
    """A decimal string of the API: no exponent, no needless zeros."""
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
