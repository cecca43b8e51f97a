"""Amounts as the original parses, rounds, adds and writes them."""

from __future__ import annotations

import pytest

from fairlead.core.model.quantity import (
    FORMAT_ERROR,
    MAX_INT64,
    MOST_COUNTED,
    NUMBER_ERROR,
    SUFFIX_ERROR,
    Quantity,
    QuantityError,
    counted,
    format_quantity,
    is_extended,
    is_scalar,
    nanos_to_units,
    parse_quantity,
    read_quantity,
    to_units,
)

# (text, in ones, in thousandths, as written back)
VECTORS = [
    ("100m", 1, 100, "100m"),
    ("0.1", 1, 100, "100m"),
    ("0.5m", 1, 1, "500u"),
    ("0.1m", 1, 1, "100u"),
    ("1u", 1, 1, "1u"),
    ("1n", 1, 1, "1n"),
    ("0.1n", 1, 1, "1n"),
    ("1.5", 2, 1500, "1500m"),
    ("1.5m", 1, 2, "1500u"),
    ("3.0001", 4, 3001, "3000100u"),
    ("0.0010001", 1, 2, "1000100n"),
    ("1.0000000001", 2, 1001, "1000000001n"),
    ("1e3", 1000, 1000000, "1e3"),
    ("1E3", 1000, 1000000, "1E3"),
    ("1e+3", 1000, 1000000, "1e+3"),
    ("1k", 1000, 1000000, "1k"),
    ("1.5e3", 1500, 1500000, "1500"),
    ("100e-1", 10, 10000, "10"),
    ("1Ki", 1024, 1024000, "1Ki"),
    ("0.1Ki", 103, 102400, "102400m"),
    ("1.1Ki", 1127, 1126400, "1126400m"),
    ("0.5Ki", 512, 512000, "512"),
    ("1.5Gi", 1610612736, 1610612736000, "1536Mi"),
    ("0.3Gi", 322122548, 322122547200, "322122547200m"),
    (".5Gi", 536870912, 536870912000, "512Mi"),
    ("-1.5", -2, -1500, "-1500m"),
    ("8Ei", MAX_INT64, MAX_INT64, "9223372036854775807"),
    ("9Ei", MAX_INT64, MAX_INT64, "9223372036854775807"),
    ("16Ei", MAX_INT64, MAX_INT64, "9223372036854775807"),
]


@pytest.mark.parametrize(("text", "value", "milli", "canonical"), VECTORS)
def test_a_text_has_the_value_and_the_form_of_the_original(text: str, value: int, milli: int, canonical: str) -> None:
    amount = parse_quantity(text)
    assert (amount.value(), amount.milli(), str(amount)) == (value, milli, canonical)


@pytest.mark.parametrize(
    ("text", "value", "milli"), [("1.", 1, 1000), (".5", 1, 500), ("+1", 1, 1000), ("00012", 12, 12000)]
)
def test_odd_spellings_are_numbers(text: str, value: int, milli: int) -> None:
    assert (parse_quantity(text).value(), parse_quantity(text).milli()) == (value, milli)


@pytest.mark.parametrize("text", [".", "-", "+", "Ki", "0", "000", "0Mi", "E5"])
def test_a_text_without_digits_that_count_is_zero(text: str) -> None:
    assert parse_quantity(text).value() == 0
    assert not parse_quantity(text)


@pytest.mark.parametrize("text", ["1K", "1mi", "1ki", "1ii", "1e", "i", "1-3", "1e99999999999999999999"])
def test_an_unknown_suffix_is_refused_as_such(text: str) -> None:
    with pytest.raises(QuantityError) as caught:
        parse_quantity(text)
    assert str(caught.value) == SUFFIX_ERROR


@pytest.mark.parametrize("text", ["", "1 ", " 1", "abc", "0x10", "1.2.3", "1Zi", "1e3m", "1\n", "\u0661"])
def test_what_is_no_quantity_is_refused_as_such(text: str) -> None:
    with pytest.raises(QuantityError) as caught:
        parse_quantity(text)
    assert str(caught.value) == FORMAT_ERROR


def test_an_absurd_exponent_is_refused_at_once() -> None:
    with pytest.raises(QuantityError, match=NUMBER_ERROR):
        parse_quantity("1e2147483648")
    assert parse_quantity("1e-2147483648").value() == 1, "more than nothing is never rounded to nothing"


@pytest.mark.parametrize("text", ["Pi", "+Ei", ".Pi", "e-12"])
def test_an_extreme_unit_of_nothing_is_no_number(text: str) -> None:
    with pytest.raises(QuantityError, match=NUMBER_ERROR):
        parse_quantity(text)


def test_amounts_beyond_int64_are_clamped() -> None:
    assert parse_quantity("1E").value() == 10**18
    assert parse_quantity("1E").milli() == MAX_INT64
    assert parse_quantity("12E").value() == MAX_INT64
    assert parse_quantity("-12E").value() == -(2**63)
    assert str(parse_quantity("12E")) == "12E"


def test_sums_are_exact_and_rounded_only_when_asked() -> None:
    total = parse_quantity("100m") + parse_quantity("0.5m")
    assert (total.value(), total.milli(), str(total)) == (1, 101, "100500u")
    assert parse_quantity("1") - parse_quantity("0.9") == parse_quantity("100m")


def test_zero_takes_the_form_of_what_is_added() -> None:
    assert str(Quantity(0) + parse_quantity("1Gi")) == "1Gi"
    assert str(parse_quantity("1Gi") + parse_quantity("1G")) == "2073741824"


def test_amounts_compare_by_value_and_not_by_spelling() -> None:
    assert parse_quantity("1024Mi") == parse_quantity("1Gi")
    assert hash(parse_quantity("1000m")) == hash(parse_quantity("1"))
    assert parse_quantity("1G") < parse_quantity("1Gi")
    assert parse_quantity("1Gi") >= parse_quantity("1G")
    assert parse_quantity("1") != "1"


def test_numbers_in_documents_are_quantities_too() -> None:
    assert parse_quantity(2).milli() == 2000
    assert parse_quantity(0.1).milli() == 100
    assert read_quantity(" 1Gi ") == parse_quantity("1Gi")
    assert read_quantity(None).value() == 0
    for nonsense in (True, float("nan")):
        with pytest.raises(QuantityError):
            parse_quantity(nonsense)
    with pytest.raises(QuantityError):
        read_quantity(["1"])


def test_what_a_table_counts_with_can_be_added_up_a_thousand_times() -> None:
    assert counted({"cpu": MAX_INT64, "memory": 5}) == {"cpu": MOST_COUNTED, "memory": 5}
    assert nanos_to_units("memory", 10**40) == MOST_COUNTED
    assert 1000 * MOST_COUNTED < MAX_INT64


def test_base_units_are_milli_for_cpu_and_ones_for_the_rest() -> None:
    assert to_units("cpu", parse_quantity("1.5")) == 1500
    assert to_units("memory", parse_quantity("1.5")) == 2
    assert to_units("nvidia.com/gpu", parse_quantity("3")) == 3


@pytest.mark.parametrize(
    ("units", "resource", "text"),
    [
        (1500, "cpu", "1500m"),
        (2000, "cpu", "2"),
        (2**31, "memory", "2Gi"),
        (1000, "memory", "1k"),
        (3, "nvidia.com/gpu", "3"),
        (2**21, "hugepages-2Mi", "2Mi"),
        (110, "pods", "110"),
        (0, "memory", "0"),
    ],
)
def test_base_units_are_written_as_users_write_them(units: int, resource: str, text: str) -> None:
    assert format_quantity(units, resource) == text


@pytest.mark.parametrize(
    ("name", "extended", "scalar"),
    [
        ("nvidia.com/gpu", True, True),
        ("cpu", False, False),
        ("pods", False, False),
        ("foo", False, False),
        ("hugepages-2Mi", False, True),
        ("attachable-volumes-csi-x", False, True),
        ("example.kubernetes.io/x", False, True),
        ("kubernetes.io/batch-cpu", False, True),
        ("requests.nvidia.com/gpu", False, False),
        ("a/b/c", False, False),
        ("UPPER.com/x", False, False),
        ("x.io/" + "n" * 63, True, True),
        ("x.io/" + "n" * 64, False, False),
    ],
)
def test_which_resources_are_counted(name: str, extended: bool, scalar: bool) -> None:
    assert (is_extended(name), is_scalar(name)) == (extended, scalar)
