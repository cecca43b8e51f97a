"""A pytest plug-in: the fixture `cluster`, a Kubernetes cluster of your own in milliseconds.

    @pytest.mark.cluster(nodes=3)
    def test_my_operator(cluster):
        cluster.apply({"apiVersion": "apps/v1", "kind": "Deployment", ...})
        cluster.run(10)                      # ten seconds of virtual time
        assert len(cluster.bindings()) == 3

The marker's arguments are those of fairlead.testing.harness.Harness. Pytest imports this module in every project where
fairlead is installed, so everything heavy is imported when the fixture is first requested, not before.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from fairlead.testing.harness import Harness


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "cluster(nodes=..., seed=..., ...): what the `cluster` fixture is made of")


@pytest.fixture
def cluster(request: pytest.FixtureRequest) -> Iterator[Harness]:
    """A cluster on virtual time; `cluster.serve()` opens it to kubectl and gives a kubeconfig."""
    from fairlead.testing.harness import Harness

    marker = request.node.get_closest_marker("cluster")
    with Harness(**(marker.kwargs if marker is not None else {})) as harness:
        yield harness
