"""The kubectl suite with the pinned kubectl."""

from __future__ import annotations

import pytest

from tests.support.processes.kubectl_api_suite import KubectlApiSuite
from tests.support.real.control_plane import real_binary


@pytest.mark.kube
@pytest.mark.takes(seconds=50)
class TestPinnedKubectl(KubectlApiSuite):
    @pytest.fixture(scope="class")
    @classmethod
    def binary(cls) -> str:
        return real_binary("kubectl")
