"""The kubectl suite with the kubectl of this machine."""

from __future__ import annotations

import shutil

import pytest

from tests.support.processes.kubectl_api_suite import KubectlApiSuite


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="no kubectl is installed; `make test-kube` builds one")
class TestInstalledKubectl(KubectlApiSuite):
    @pytest.fixture(scope="class")
    @classmethod
    def binary(cls) -> str:
        return shutil.which("kubectl") or ""
