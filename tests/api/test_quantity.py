"""Quantities and decimals are exact."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.api.quantity import (
    check_quantity,
    format_decimal,
    format_gib,
    format_quantity,
    parse_bytes,
    parse_decimal,
    parse_millicores,
    parse_quantity,
)


@pytest.mark.parametrize(
    ("text", "number"),
    [("24Gi", 24 * 2**30), ("1.5Gi", 3 * 2**29), ("500M", 500_000_000), ("1k", 1000), (4, 4), ("4", 4), ("0", 0), ("1Ei", 2**60)],
)  # fmt: skip
def test_bytes(text: str | int, number: int) -> None:
    assert parse_bytes(text) == number


def test_fractions_of_a_byte_are_rounded_up() -> None:
    assert parse_bytes("100m") == 1
    assert parse_bytes("0.3Ki") == 308


@pytest.mark.parametrize(("text", "millicores"), [("1500m", 1500), ("2", 2000), ("0.25", 250), (8, 8000)])
def test_cores(text: str | int, millicores: int) -> None:
    assert parse_millicores(text) == millicores


@pytest.mark.parametrize(
    "text", ["", "Gi", "1 Gi", "-1", "1e3", "1GiB", "1,5Gi", "٣Gi", "1Gi\n", "9" * 40, ".5"]
)
def test_what_is_no_quantity_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="24Gi"):
        parse_quantity(text)
    with pytest.raises(ValueError, match="24Gi"):
        check_quantity(text)


@pytest.mark.parametrize("value", [True, -1, 1.5, None, []])
def test_other_kinds_of_values_are_no_quantity(value: object) -> None:
    with pytest.raises(ValueError, match="24Gi"):
        check_quantity(value)


@pytest.mark.parametrize(("text", "number"), [("12.5", "12.5"), ("0", "0"), ("3.000001", "3.000001")])
def test_decimals(text: str, number: str) -> None:
    assert parse_decimal(text) == Decimal(number)


@pytest.mark.parametrize("text", ["", ".5", "5.", "1e3", "-1", "1.2.3", "inf", "NaN", "1_000"])
def test_what_is_no_decimal_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"12\.5"):
        parse_decimal(text)


@pytest.mark.parametrize(
    ("value", "text"), [(Decimal("12.50"), "12.5"), (Decimal(3), "3"), (100, "100"), (Decimal("0.005"), "0")]
)
def test_decimals_are_written_without_needless_zeros(value: Decimal | int, text: str) -> None:
    assert format_decimal(value) == text


@given(st.integers(min_value=0, max_value=10**18 - 1))
def test_a_written_quantity_reads_back_as_the_same_number(count: int) -> None:
    assert parse_bytes(format_quantity(count)) == count
    assert check_quantity(format_quantity(count)) == format_quantity(count)


def test_the_largest_quantity_is_exact() -> None:
    assert parse_bytes("999999999999999999.999999999Ei") == -(-(10**27 - 1) * 2**60 // 10**9)


def test_gib_for_people() -> None:
    assert format_gib(85899345920) == "80.0 GiB"
