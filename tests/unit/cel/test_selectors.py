"""Selectors of devices: values, errors in cel-go's words, and what cannot be compiled."""

from __future__ import annotations

import pytest

from fairlead.cel.selectors import compile_selector
from fairlead.core.model.devices import Device, SelectorFailed, SelectorInvalid, SelectorSteps, compile_slice

DRIVER = "gpu.example.com"


def device(**more: object) -> Device:
    document = {
        "name": "gpu-0",
        "attributes": {
            "model": {"string": "h100"}, "slot": {"int": 3}, "ecc": {"bool": True},
            "driverVersion": {"version": "1.10.0+b7"}, "example.com/rack": {"string": "r1"},
        },
        "capacity": {"memory": {"value": "80Gi"}, "cores": {"value": "132"}},
        **more,
    }  # fmt: skip
    spec = {
        "driver": DRIVER, "pool": {"name": "n0", "generation": 1, "resourceSliceCount": 1}, "nodeName": "n0",
        "devices": [document],
    }  # fmt: skip
    return compile_slice({"metadata": {"name": "n0-gpu"}, "spec": spec}).devices[0]


def attribute(name: str) -> str:
    return f'device.attributes["{DRIVER}"].{name}'


@pytest.mark.parametrize(
    "expression",
    [
        'device.driver == "gpu.example.com"',
        f'{attribute("model")} == "h100" && {attribute("ecc")}',
        f"{attribute('slot')} % 2 == 1 ? {attribute('ecc')} : false",
        'device.attributes["example.com"].rack.startsWith("r")',
        f'{attribute("driverVersion")}.isGreaterThan(semver("1.9.0"))',
        f'{attribute("driverVersion")} == semver("1.10.0")',
        f'{attribute("driverVersion")}.isLessThan(semver("v2", true))',
        f'device.capacity["{DRIVER}"].memory.compareTo(quantity("81920Mi")) == 0',
        f'device.capacity["{DRIVER}"].cores.add(quantity("1")).asInteger() == 133',
        f'sign(device.capacity["{DRIVER}"].memory.sub(quantity("100Gi"))) < 0',
        'size(device.attributes["nowhere.example.com"]) == 0',
        '!("nowhere.example.com" in device.attributes)',
        "has(device.attributes.nowhere)",
        f"!has({attribute('missing')})",
        f"{attribute('?missing')}.orValue(7) == 7",
        f'device.attributes["{DRIVER}"][?"slot"].optMap(v, v + 1).value() == 4',
        f'device.attributes["{DRIVER}"].exists(k, v, k == "slot" && v == 3)',
        f'device.attributes["{DRIVER}"].transformList(k, v, k).size() == 4',
        f'cel.bind(a, device.attributes["{DRIVER}"], a.slot in [1, 3])',
        f"{attribute('slot')} < 3.5 && {attribute('slot')} == 3.0",
        f'{attribute("model")}.matches("^h[0-9]+$") && {attribute("model")}.find("[0-9]+") == "100"',
        "sets.intersects([1, 2], [2, 3]) && [3, 1, 2].sort() == [1, 2, 3] && lists.range(3).sum() == 3",
        '"a,b".split(",").join("-") == "a-b" && "%d of %s".format([1, "x"]) == "1 of x"',
        'ip("10.1.2.3").family() == 4 && cidr("10.0.0.0/8").containsIP("10.1.2.3")',
        'url("https://a.example:81/x").getPort() == "81" && duration("90m") > duration("1h")',
        f"{attribute('missing')} == 1 || {attribute('ecc')}",
        'r"\\d" == "\\\\d" && 0x10 == 16 && 1u != 2u && b"a" == bytes("a")',
    ],
)
def test_an_expression_that_holds(expression: str) -> None:
    assert compile_selector(expression)(device(), SelectorSteps(10**6)) is True


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (f"{attribute('missing')} == 1", "no such key: missing"),
        (f"{attribute('model')} > 5", "no such overload"),
        (f"!{attribute('model')}", "no such overload"),
        (f"{attribute('slot')}.size() == 1", "no such overload: size"),
        (f"1 / ({attribute('slot')} - 3) == 1", "division by zero"),
        (f"1 % ({attribute('slot')} - 3) == 1", "modulus by zero"),
        (f"[1][{attribute('slot')}] == 1", "index out of bounds: 3"),
        (f"int({attribute('model')}) == 1", "type conversion error from 'string' to 'int'"),
        (f"{attribute('slot')} + 9223372036854775807 > 0", "integer overflow"),
        (f"{attribute('model')}.matches({attribute('model')} + '(')",
         "error parsing regexp: missing closing ): `h100(`"),
        (f"{attribute('model')}.matches({attribute('model')} + '(?=x)')",
         "error parsing regexp: invalid or unsupported Perl syntax: `(?=`"),
        (attribute("slot"), "CEL result of type int could not be converted to bool:"
         " unsupported type conversion from 'int' to bool"),
        ("lists.range(1000000).all(i, lists.range(3).all(j, true))",
         "operation cancelled: actual cost limit exceeded"),
    ],
)  # fmt: skip
def test_an_error_is_reported_in_the_words_of_the_original(expression: str, text: str) -> None:
    with pytest.raises(SelectorFailed) as failed:
        compile_selector(expression)(device(), SelectorSteps(10**6))
    assert str(failed.value) == text


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("device.driver ==", "Syntax error: mismatched input '<EOF>'"),
        ("devise.driver == 'x'", "undeclared reference to 'devise'"),
        ("device.driver.frobnicate()", "undeclared reference to 'frobnicate'"),
        ("'text'", "must evaluate to bool or the unknown type, not string"),
        ("size('x')", "must evaluate to bool or the unknown type, not int"),
        ("if == 1", "reserved identifier: if"),
        ("'" + "x" * 10_300 + "' == ''", "Too long"),
        ("(" * 300 + "true" + ")" * 300, "nested too deeply"),
    ],
)
def test_what_cannot_be_compiled_is_refused(expression: str, text: str) -> None:
    with pytest.raises(SelectorInvalid) as invalid:
        compile_selector(expression)
    assert text in str(invalid.value)


def test_versions_compare_without_build_metadata() -> None:
    newer = device(attributes={"driverVersion": {"version": "2.0.0-rc.1"}})
    assert compile_selector(f'{attribute("driverVersion")}.isLessThan(semver("2.0.0"))')(newer, SelectorSteps(10**6))
    assert compile_selector(f'{attribute("driverVersion")}.isGreaterThan(semver("2.0.0-rc.0"))')(
        newer, SelectorSteps(10**6)
    )
    assert compile_selector(f'{attribute("driverVersion")} == semver("2.0.0-rc.1+other")')(newer, SelectorSteps(10**6))
