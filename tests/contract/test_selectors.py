"""Selectors of device classes: what does not compile, does not fit in its types or may cost too much is refused."""

from __future__ import annotations

import pytest

from fairlead.core.model.kinds import DEVICE_CLASS
from fairlead.errors import Invalid
from tests.support.contract.api_under_test import ApiUnderTest

WRONG = {
    "device.foo == 1": "undefined field 'foo'",
    "device.driver == 1": "found no matching overload for '_==_' applied to '(string, int)'",
    "size(device.driver)": "must evaluate to bool or the unknown type, not int",
    "device.driver.nope()": "undeclared reference to 'nope' (in container '')",
    'device.attributes["d"].x && device.driver': "expected type 'bool' but found 'string'",
    '["a", device.attributes["d"].x].size() > 1': "expected type 'string' but found 'any'",
    'device.driver.matches("(")': "invalid matches argument",
    'type(device.attributes["d"].x) == int': "Forbidden: too complex, exceeds cost limit",
    '["t4"].indexOf(device.attributes["d"].x) == 0': "Forbidden: too complex, exceeds cost limit",
}


@pytest.mark.parametrize("expression", WRONG)
async def test_a_wrong_selector_is_refused_with_its_reason(world: ApiUnderTest, expression: str) -> None:
    name = world.name("class")
    doc = {"metadata": {"name": name}, "spec": {"selectors": [{"cel": {"expression": expression}}]}}
    with pytest.raises(Invalid) as refused:
        await world.create(DEVICE_CLASS, doc)
    assert WRONG[expression] in refused.value.message
    assert "spec.selectors[0].cel.expression: " in refused.value.message


async def test_a_selector_that_fits_is_taken(world: ApiUnderTest) -> None:
    expression = 'device.attributes["dra.example.com"].numa < 7 && device.capacity["d"].memory.isInteger()'
    doc = {"metadata": {"name": world.name("class")}, "spec": {"selectors": [{"cel": {"expression": expression}}]}}
    made = await world.create(DEVICE_CLASS, doc)
    assert made["spec"]["selectors"] == doc["spec"]["selectors"]
