"""Quantities under any text: exact, never rounded down, written so that they can be read back."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from fairlead.core.model.quantity import MAX_INT64, QuantityError, format_quantity, parse_quantity, to_units

SUFFIXES = {
    "n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000), "": Fraction(1), "k": Fraction(10**3),
    "M": Fraction(10**6), "G": Fraction(10**9), "Ki": Fraction(2**10), "Mi": Fraction(2**20), "Gi": Fraction(2**30),
    "e2": Fraction(100), "E-4": Fraction(1, 10**4), "e+5": Fraction(10**5),
}  # fmt: skip

numbers = st.builds(
    lambda sign, whole, fraction: sign + whole + ("." + fraction if fraction is not None else ""),
    st.sampled_from(["", "+", "-"]),
    st.from_regex(r"[0-9]{1,9}", fullmatch=True),
    st.none() | st.from_regex(r"[0-9]{0,12}", fullmatch=True),
)
texts = st.tuples(numbers, st.sampled_from(sorted(SUFFIXES)))


def exact(number: str, suffix: str) -> Fraction:
    whole, _, fraction = number.lstrip("+-").partition(".")
    value = Fraction(int(whole + fraction), 10 ** len(fraction)) * SUFFIXES[suffix]
    return -value if number.startswith("-") else value


def away_from_zero(value: Fraction) -> int:
    return -(-value // 1) if value >= 0 else value // 1


@given(texts)
def test_a_text_means_its_number_rounded_away_from_zero_to_nanos(text: tuple[str, str]) -> None:
    amount = parse_quantity("".join(text))
    assert amount.nanos == away_from_zero(exact(*text) * 10**9)
    if abs(exact(*text)) < MAX_INT64 // 1000:
        nanos = Fraction(amount.nanos, 10**9)
        assert amount.value() == away_from_zero(nanos)
        assert amount.milli() == away_from_zero(nanos * 1000)


@given(texts)
def test_what_is_written_reads_back_the_same(text: tuple[str, str]) -> None:
    amount = parse_quantity("".join(text))
    assert parse_quantity(str(amount)) == amount
    sum_with_zero = amount + parse_quantity("0")
    assert parse_quantity(str(sum_with_zero)) == amount


@given(st.lists(texts, min_size=1, max_size=8))
def test_sums_are_exact_in_any_order(all_texts: list[tuple[str, str]]) -> None:
    amounts = [parse_quantity("".join(text)) for text in all_texts]
    forwards, backwards = parse_quantity("0"), parse_quantity("0")
    for amount in amounts:
        forwards += amount
    for amount in reversed(amounts):
        backwards += amount
    assert forwards == backwards
    assert forwards.nanos == sum(amount.nanos for amount in amounts)
    assert (forwards - amounts[0]).nanos == forwards.nanos - amounts[0].nanos


@given(st.integers(0, 2**50), st.sampled_from(["cpu", "memory", "nvidia.com/gpu", "ephemeral-storage"]))
def test_base_units_written_and_read_are_the_same_base_units(units: int, resource: str) -> None:
    assert to_units(resource, parse_quantity(format_quantity(units, resource))) == units


@given(st.text(max_size=12))
def test_any_text_is_a_quantity_or_an_error_and_nothing_else(text: str) -> None:
    try:
        amount = parse_quantity(text)
    except QuantityError:
        return
    assert parse_quantity(str(amount)) == amount
