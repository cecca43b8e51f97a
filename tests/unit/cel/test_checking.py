"""What the API server says of selectors before they run: errors of types with their places, and the estimated cost.

`data/selectors.jsonl` holds expressions and the answers of the compiler that kube-apiserver 1.36.4 uses for them: those
of recorded claims, and random ones.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fairlead.cel.checking import Checked, signatures
from fairlead.cel.cost import CostEstimate
from fairlead.cel.environment import DEVICES
from fairlead.cel.loops import written_out
from fairlead.cel.selectors import is_too_complex, selector_fault, selector_program_fault
from fairlead.cel.syntax import parse

ANSWERS = [json.loads(line) for line in (Path(__file__).parent / "data" / "selectors.jsonl").read_text().splitlines()]


def test_errors_and_costs_are_those_of_the_api_server() -> None:
    differences = []
    for answer in ANSWERS:
        expression = answer["expression"]
        fault = selector_fault(expression)
        found = (
            {"error": fault}
            if fault
            else {"cost": CostEstimate(Checked(written_out(parse(expression), bindings=True), DEVICES)).most}
        )
        if found | {"expression": expression} != answer:
            differences.append((answer, found))
    assert differences == []
    assert len([answer for answer in ANSWERS if "error" in answer]) > 100
    assert len([answer for answer in ANSWERS if "cost" in answer]) > 200


@pytest.mark.parametrize("expression", [
    '["t4"].indexOf(device.attributes["d"].x) == 0',
    'type(device.attributes["d"].x) == int',
    'format.uuid().validate(device.attributes["d"].x).hasValue() && device.attributes.all(a, device.attributes.all(b,'
    ' device.attributes.all(c, device.attributes.all(d, device.attributes.all(e, a != b && c != d && e != a)))))',
])  # fmt: skip
def test_what_may_take_too_long_is_too_complex(expression: str) -> None:
    assert not selector_fault(expression)
    assert is_too_complex(expression)


@pytest.mark.parametrize("regex", [
    "(?=a)", "(?!a)", "(?<=a)b", "(?<=a>b)b", r"(a)\\1", "a++", "a{2}+", "(?>a)", "(?#c)a", "(?P=n)", "(?x)a", r"a\\Z",
    r"\\u0041", "a{1001}",
])  # fmt: skip
def test_a_regular_expression_that_go_has_not_is_refused(regex: str) -> None:
    assert "invalid matches argument" in selector_fault(f'device.driver.matches("{regex}")')


@pytest.mark.parametrize("regex", [
    "(?<n>a)", r"\\d+\\z", "(?s:a)", "^(?P<x>a)$", "x{,5}", r"\\(?<a", "[(?<]", "a{1000}", "(?i)a", r"a\\++",
])  # fmt: skip
def test_a_regular_expression_of_go_is_accepted(regex: str) -> None:
    assert not selector_fault(f'device.driver.matches("{regex}")')


@pytest.mark.parametrize(("expression", "text"), [
    ("uint(-2) == 1u", "unsigned integer overflow"),
    ('int("x") == 1', "type conversion error from 'string' to 'int'"),
    ('double("x") > 1.0', "type conversion error from 'string' to 'double'"),
    ('bool("x")', "type conversion error from 'string' to 'bool'"),
    ("int(1e30) > 0", "integer overflow"),
    ("uint(1e30) > 0u", "unsigned integer overflow"),
    (r'string(b"\xff") == ""', "invalid UTF-8 in bytes, cannot convert to string"),
    ('device.driver.find("(?=a)") == ""', "error parsing regexp: invalid or unsupported Perl syntax: `(?=`"),
    ('device.driver.findAll("(a") == []', "error parsing regexp: missing closing ): `(a`"),
    ('device.driver.find("[") == ""', "error parsing regexp: missing closing ]: `[`"),
])  # fmt: skip
def test_a_constant_that_fails_is_found_before_the_expression_runs(expression: str, text: str) -> None:
    assert not selector_fault(expression)
    assert selector_program_fault(expression) == f"program instantiation failed: {text}"


@pytest.mark.parametrize(("expression", "text"), [
    ("1e400 > 0.0", "1:1: invalid double literal"),
    (r'b"\u00e9" == b""', "1:1: unable to unescape string"),
    ('has(device.attributes["d"])', "1:22: invalid argument to has() macro"),
])  # fmt: skip
def test_what_is_written_wrongly_is_named_in_the_words_of_the_original(expression: str, text: str) -> None:
    assert text in selector_fault(expression)


def test_an_attribute_fits_everywhere() -> None:
    for use in ("{0} == 1", '{0} == "a"', "{0}", "{0} < 7", "{0}.isGreaterThan(semver('1.2.3'))", "{0} in ['a']"):
        expression = use.format('device.attributes["d"].x')
        assert not selector_fault(expression), expression
        assert not is_too_complex(expression), expression


def test_every_overload_can_be_read() -> None:
    assert sum(map(len, signatures().values())) == 340
