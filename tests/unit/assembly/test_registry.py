"""Plugin names to plugins."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from typing import Any

import pytest

from fairlead import node_filter, node_score
from fairlead.assembly.loading import load_config
from fairlead.assembly.registry import BUILT_IN, GROUP, METHOD_OF_POINT, PluginRegistry
from fairlead.config.problems import ConfigErrors
from fairlead.core.family import families
from fairlead.core.framework.plugin import Plugin
from fairlead.errors import ConfigError
from fairlead.kube.config.plugin_sets import IN_TREE

HEADER = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


class Picky(Plugin):
    """Filters and scores; takes args."""

    name = "Picky"

    def __init__(self, args: Any) -> None:
        self.threshold = args["threshold"]

    def filter(self, cycle: Any, nodes: Any) -> Any:
        return ()

    def score(self, cycle: Any, nodes: Any) -> Any:
        return nodes


class Simple(Plugin):
    """Needs no args and has no name of its own."""

    def score(self, cycle: Any, nodes: Any) -> Any:
        return nodes


class Older(Plugin):
    """Says for the cache what only a CachedPlugin may say."""

    reads = frozenset({"spec"})

    def score(self, cycle: Any, nodes: Any) -> Any:
        return nodes


@pytest.fixture(autouse=True)
def _user_module() -> Iterator[None]:
    module = types.ModuleType("users_plugins")
    module.Picky, module.Simple, module.ready, module.number = Picky, Simple, Simple(), 7  # type: ignore[attr-defined]
    module.Older = Older  # type: ignore[attr-defined]
    sys.modules["users_plugins"] = module
    yield
    del sys.modules["users_plugins"]


def registry() -> PluginRegistry:
    return PluginRegistry(installed={"Picky": EntryPoint("Picky", "users_plugins:Picky", GROUP)})


def test_the_plugins_of_all_families_are_built_in() -> None:
    assert list(BUILT_IN) == [name for family in families() for name in family.plugins]
    assert list(BUILT_IN)[: len(IN_TREE)] == list(IN_TREE)
    assert {"Reservation", "ElasticQuota", "FGDScore"} <= BUILT_IN.keys()


def test_no_two_families_name_a_plugin_alike() -> None:
    assert len(BUILT_IN) == sum(len(family.plugins) for family in families())


def test_a_built_in_plugin_says_its_points_without_being_imported() -> None:
    unimportable = PluginRegistry(
        built_in={name: entry._replace(factory="no.such.module:X") for name, entry in BUILT_IN.items()}, installed={}
    )
    assert unimportable.capabilities["NodeResourcesFit"] == IN_TREE["NodeResourcesFit"]


def test_an_installed_plugin_is_created_with_its_args() -> None:
    plugin = registry().create("Picky", {"threshold": 3})
    assert isinstance(plugin, Picky)
    assert plugin.threshold == 3


def test_a_plugin_takes_part_where_it_overrides_a_method() -> None:
    assert registry().points("Picky") == {"filter", "score"}
    assert registry().points("users_plugins:ready") == {"score"}


def test_a_plugin_without_args_and_name_is_created_and_named_after_its_entry() -> None:
    assert registry().create("users_plugins:Simple", {}).name == "users_plugins:Simple"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("NodeResourceFit", 'plugin "NodeResourceFit" does not exist (did you mean "NodeResourcesFit"?)'),
        (
            "no_such_module:X",
            "plugin \"no_such_module:X\": module no_such_module cannot be imported: No module named 'no_such_module'"
            " (is the directory on the Python path?)",
        ),
        (
            "users_plugins:Pick",
            'plugin "users_plugins:Pick": module users_plugins has no Pick (did you mean "Picky"?)',
        ),
        (
            "users_plugins:Picky",
            "initializing plugin \"users_plugins:Picky\": KeyError: 'threshold'",
        ),
        (
            "users_plugins:Older",
            'initializing plugin "users_plugins:Older": reads belongs to CachedPlugin'
            " (derive Older from fairlead.CachedPlugin)",
        ),
    ],
)
def test_what_cannot_be_created_is_refused_with_a_reason(name: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        registry().create(name, {})
    assert str(caught.value) == words


def test_an_installed_plugin_may_not_take_a_built_in_name() -> None:
    with pytest.raises(ConfigError, match="a plugin named NodeName already exists"):
        PluginRegistry(installed={"NodeName": EntryPoint("NodeName", "users_plugins:Picky", GROUP)})


def test_a_configuration_may_name_a_users_plugin_by_module() -> None:
    text = HEADER + 'profiles: [{plugins: {multiPoint: {enabled: [{name: "users_plugins:Picky", weight: 4}]}}}]'
    points = load_config(text, capabilities=registry().capabilities).profiles[0].points
    assert points["score"][-1] == ("users_plugins:Picky", 4)
    assert points["filter"][-1] == ("users_plugins:Picky", 0)


def test_a_module_that_cannot_be_imported_is_reported_with_the_line_that_names_it() -> None:
    text = HEADER + 'profiles:\n- plugins:\n    score:\n      enabled:\n      - name: "nowhere:X"\n'
    with pytest.raises(ConfigErrors) as caught:
        load_config(text, file="f.yaml", capabilities=registry().capabilities)
    assert str(caught.value).splitlines()[0] == (
        "f.yaml:7: profiles[0].plugins.score.enabled[0].name: "
        "plugin \"nowhere:X\": module nowhere cannot be imported: No module named 'nowhere'"
        " (is the directory on the Python path?)"
    )


def test_every_method_of_a_point_exists() -> None:
    assert all(hasattr(Plugin, method) for method in METHOD_OF_POINT.values())


def test_a_function_has_the_name_of_its_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    module = sys.modules["users_plugins"]
    monkeypatch.setattr(module, "prefer", node_score()(lambda pod, node: 1), raising=False)
    monkeypatch.setattr(module, "avoid", node_filter(reason="node(s) avoided")(lambda pod, node: False), raising=False)
    installed = {
        "PreferLabel": EntryPoint("PreferLabel", "users_plugins:prefer", GROUP),
        "AvoidAll": EntryPoint("AvoidAll", "users_plugins:avoid", GROUP),
    }
    names = PluginRegistry(installed=installed)
    assert [names.create(name, {}).name for name in installed] == ["PreferLabel", "AvoidAll"]
    assert [names.create(f"users_plugins:{name}", {}).name for name in ("prefer", "avoid")] == ["prefer", "avoid"]
