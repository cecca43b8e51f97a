"""Choosing controllers by name."""

from __future__ import annotations

import pytest

from fairlead.assembly.housekeeping import ALL_CONTROLLERS, choose_controllers, housekeepers
from fairlead.errors import ConfigError
from tests.support.controllers import Documents


def test_names_choose_in_the_order_in_which_controllers_step() -> None:
    assert choose_controllers("job-controller, deployment-controller") == ("deployment-controller", "job-controller")
    assert choose_controllers("all") == ALL_CONTROLLERS
    assert choose_controllers("none") == ()


def test_a_minus_leaves_one_out() -> None:
    without = choose_controllers("-job-controller")
    assert set(ALL_CONTROLLERS) - set(without) == {"job-controller"}
    assert choose_controllers("all,-job-controller") == without


def test_a_wrong_name_is_an_error_with_a_suggestion() -> None:
    with pytest.raises(ConfigError, match=r'no controller "deploymnt" \(did you mean deployment-controller\?\)'):
        choose_controllers("deploymnt")
    with pytest.raises(ConfigError, match="one of: namespace-controller"):
        choose_controllers("xyz")


def test_nothing_goes_with_none() -> None:
    with pytest.raises(ConfigError, match="goes with nothing else"):
        choose_controllers("none,job-controller")


def test_no_names_no_controller() -> None:
    assert housekeepers(Documents(), names=()) == []
