"""What all tests share: `async def` tests, and the real control plane for those marked `kube`."""

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.support.real.control_plane import ControlPlane

# No test asserts a time. Where CI is set, the same examples are tried in every run, as in Hypothesis' own profile for
# it; everywhere else fresh ones are.
settings.register_profile("fairlead", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("fairlead")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the modules that take longest first, so that the workers of `make test-kube`, which are dealt module by
    module, end at about the same time."""

    def seconds(item: pytest.Item) -> float:
        takes = item.get_closest_marker("takes")
        return float(takes.kwargs["seconds"]) if takes else 0.0

    items.sort(key=seconds, reverse=True)


@pytest.fixture(scope="session", autouse=True)
def _own_runtime_directory(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Commands find the schedulers of the user on this machine: those of other tests are none of theirs."""
    os.environ["XDG_RUNTIME_DIR"] = str(tmp_path_factory.mktemp("runtime"))


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    """The event loop of one test, for fixtures that need it before and after the test."""
    with asyncio.Runner() as runner:
        yield runner


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run an `async def` test, in the loop of its fixtures if it has one."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in inspect.signature(pyfuncitem.obj).parameters}
    runner = pyfuncitem.funcargs.get("runner")
    if isinstance(runner, asyncio.Runner):
        runner.run(pyfuncitem.obj(**arguments))
    else:
        asyncio.run(pyfuncitem.obj(**arguments))
    return True


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """etcd and kube-apiserver, started once and stopped whatever happens."""
    plane = ControlPlane(tmp_path_factory.mktemp("control-plane"))
    try:
        plane.start()
        yield plane
    finally:
        plane.stop()
