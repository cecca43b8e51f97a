"""The kubectl suite with the pinned kubectl."""

from __future__ import annotations

import pytest

from tests.e2e.kubectl_api_suite import KubectlApiSuite
from tests.kube.control_plane import real_binary


@pytest.mark.kube
class TestPinnedKubectl(KubectlApiSuite):
    @pytest.fixture(scope="class")
    @classmethod
    def binary(cls) -> str:
        return real_binary("kubectl")
