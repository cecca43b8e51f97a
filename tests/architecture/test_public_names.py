"""The public API is the names of `__all__` in five modules: listed here, documented, typed, and no other.

The lists stand here a second time, so that a name comes or goes only with a change of this file; docs/api.md says what
has to happen before one may go.
"""

from __future__ import annotations

import inspect
import typing
from pathlib import Path
from typing import Any

import pytest

import fairlead
import fairlead.lab
import fairlead.testing
import fairlead.testing.agree
import fairlead.testing.strategies

PUBLIC: dict[Any, str] = {
    fairlead: """
        AfterPlacing ApiError CachedPlugin ConfigError Cycle Explanation FairleadError Hint Interest Invalid
        LiveScheduler NodeRow Nodes Placements Plugin Pod Reason Reject SKIP Scope Status Wait interests node_filter
        node_score schedule unresolvable unschedulable
    """,
    fairlead.lab: "LabResults experiment load run",
    fairlead.testing: """
        BudgetBuilder Builder ClaimBuilder CronJobBuilder DaemonSetBuilder DeploymentBuilder Harness JobBuilder
        NamespaceBuilder NodeBuilder PodBuilder PodGroupBuilder PodTimes PriorityClassBuilder QueueBuilder
        ReplicaSetBuilder ReplicatedBuilder StatefulSetBuilder StorageClassBuilder VolumeBuilder WorkloadBuilder claim
        cron_job daemon_set deployment disruption_budget job namespace node nodes pod pod_using podgroup priority_class
        queue replica_set stateful_set storage_class volume
    """,
    fairlead.testing.agree: "agree any_node any_pod",
    fairlead.testing.strategies: "labels nodes pods quantities selectors",
}
LAZY = (fairlead, fairlead.lab, fairlead.testing)
"""Those whose names are imported when first used, so that type checkers need a stub."""
NAMES = [(module, name) for module, names in PUBLIC.items() for name in names.split()]


def title(module: Any, name: str) -> str:
    return f"{module.__name__}.{name}"


def members(module: Any, name: str) -> list[tuple[str, Any]]:
    """A public name and, of a class of ours, its public methods and properties."""
    value = getattr(module, name)
    found = [(title(module, name), value)]
    if inspect.isclass(value):
        for each in value.__mro__:
            if each.__module__.startswith("fairlead"):
                own = ((key, one) for key, one in vars(each).items() if not key.startswith("_"))
                found += [(f"{title(module, name)}.{key}", one) for key, one in own]
    return [(key, one) for key, one in found if callable(one) or isinstance(one, property | classmethod)]


@pytest.mark.parametrize("module", PUBLIC, ids=lambda module: module.__name__)
def test_the_set_of_public_names_does_not_change_silently(module: Any) -> None:
    assert sorted(module.__all__) == sorted(PUBLIC[module].split())
    assert set(module.__all__) <= set(dir(module))


@pytest.mark.parametrize("module", LAZY, ids=lambda module: module.__name__)
def test_type_checkers_see_the_same_names(module: Any) -> None:
    stub = Path(str(module.__file__)).with_suffix(".pyi").read_text(encoding="utf-8")
    shown = {line.rpartition(" as ")[2] for line in stub.splitlines() if line.startswith("from ")}
    assert shown == set(module.__all__)


def test_the_reference_has_every_public_name() -> None:
    pages = (Path(__file__).parents[2] / "docs" / "reference").glob("*.md")
    shown = [line for page in pages for line in page.read_text(encoding="utf-8").splitlines() if line[:4] == "::: "]
    assert sorted(line.removeprefix("::: ") for line in shown) == sorted(title(*one) for one in NAMES)


@pytest.mark.parametrize(("module", "name"), NAMES, ids=[title(*one) for one in NAMES])
def test_a_public_name_says_what_it_is(module: Any, name: str) -> None:
    silent = [key for key, one in members(module, name) if not (inspect.getdoc(one) or "").strip()]
    assert not silent, f"without a docstring: {', '.join(silent)}"


@pytest.mark.parametrize(("module", "name"), NAMES, ids=[title(*one) for one in NAMES])
def test_a_public_name_is_typed(module: Any, name: str) -> None:
    untyped = []
    for key, one in members(module, name):
        function = one.fget if isinstance(one, property) else getattr(one, "__func__", one)
        if not inspect.isfunction(function):
            continue
        signature = inspect.signature(function)
        given = [each for each in signature.parameters.values() if each.name not in ("self", "cls")]
        blank = inspect.Parameter.empty
        if signature.return_annotation is blank or any(each.annotation is blank for each in given):
            untyped.append(key)
    assert not untyped


def test_every_public_builder_function_returns_a_public_class() -> None:
    for name in fairlead.testing.__all__:
        value = getattr(fairlead.testing, name)
        if inspect.isfunction(value):
            returned = typing.get_type_hints(value)["return"]
            classes = typing.get_args(returned) or (returned,)
            assert {each.__name__ for each in classes} <= set(fairlead.testing.__all__)
