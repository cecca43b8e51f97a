"""Choosing controllers by name."""

from __future__ import annotations

import pytest

from fairlead.assembly.loading import presets
from fairlead.assembly.schedulers import SchedulerAssembly
from fairlead.cluster.controllers.controller_group import ControllerGroup
from fairlead.cluster.housekeeping import ALL_CONTROLLERS, choose_controllers, housekeepers, needed_beside
from fairlead.core.family import families
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
    with pytest.raises(ConfigError, match="cannot be combined with other names"):
        choose_controllers("none,job-controller")


def test_no_names_no_controller() -> None:
    assert housekeepers(Documents(), names=()) == []


def test_controllers_of_families_come_after_the_built_in_ones_in_the_order_of_their_records() -> None:
    of_families = [name for family in families() for name, one in family.controllers.items() if not one.with_plugins]
    assert list(ALL_CONTROLLERS[-len(of_families) :]) == of_families


def test_what_plugins_need_runs_beside_a_scheduler_that_has_them_and_cannot_be_chosen() -> None:
    plain = SchedulerAssembly().scheduler()
    koordinator = SchedulerAssembly(SchedulerAssembly().load(presets()["koordinator"], file="koordinator")).scheduler()
    beside = needed_beside([plain, koordinator])
    assert needed_beside([plain]) == ()
    assert {"koordinator-node-agents", "koordinator-descheduler"} < set(beside)
    assert set(beside).isdisjoint(ALL_CONTROLLERS)
    (manager,) = housekeepers(Documents(), names=(), beside=beside)
    assert isinstance(manager, ControllerGroup)
    assert [type(member).__name__ for member in manager.members][-1] == "Descheduler"
