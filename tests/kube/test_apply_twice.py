"""An apply that changes nothing changes nothing: every kind, client- and server-side, here and on a real API server.

A document of each kind is applied twice with kubectl. Of the second apply both servers must say the same: the words of
kubectl, whether there is a new resourceVersion, the generation, and which fields each manager owns.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from fairlead.assembly.cluster import ClusterAssembly
from fairlead.core.model.kinds import X_POD_GROUP, served_kinds
from fairlead.koordinator.kinds import SERVED as KOORDINATOR
from fairlead.runtime.virtual import VirtualClock, VirtualRuntime
from fairlead.testing.harness import START
from fairlead.testing.serving import Served
from tests.support.processes.kubectl_suite import Kubectl
from tests.support.processes.scheduler_process import GANG_GATES
from tests.support.real import every_kind
from tests.support.real.control_plane import ControlPlane, define_volcano_kinds, real_binary
from tests.support.real.gang_contenders import NEXT_GATES

pytestmark = [pytest.mark.kube, pytest.mark.takes(seconds=50)]
Doc = dict[str, Any]
KNOWN = {
    # The real server stores these once more, in other bytes, though no field is different afterwards.
    ("PersistentVolumeClaim", "version changed"), ("Job", "version changed"),
    # It shows `schedulingConstraints: null` in templates, which kubectl takes for a difference.
    ("Workload", "said"),
    # Volcano's webhook, whose rules ours has and this server has not, refuses a patch that drops a task's defaults.
    ("batch.volcano.sh/v1alpha1 Job", "said"),
}  # fmt: skip
"""Where the two servers differ, by kind (or version and kind) and by what is compared."""


@contextmanager
def real_server(directory: Path, groups: str) -> Iterator[Path]:
    """The kubeconfig of a real API server that has this version of PodGroups and Volcano's definitions."""
    directory.mkdir()
    gates, suffix = (GANG_GATES, "") if groups == "v1alpha2" else (NEXT_GATES, "-next")
    served = f"scheduling.k8s.io/{groups}=true"
    plane = ControlPlane(directory, gates=gates, runtime_config=served, suffix=suffix)
    try:
        plane.start()
        define_volcano_kinds(plane.kubeconfig)
        yield plane.kubeconfig
    finally:
        plane.stop()


@contextmanager
def our_server() -> Iterator[Path]:
    """The kubeconfig of a Store that nobody works on, as nobody does on the real one."""
    clock, assembly = VirtualClock(START), ClusterAssembly(names=(), seed=1)
    cluster = assembly.over(assembly.store(clock))
    served = Served(cluster, VirtualRuntime(cluster.store, [], clock=clock))
    try:
        yield served.kubeconfig
    finally:
        served.close()


def applied_twice(kubeconfig: Path, file: Path, *mode: str) -> dict[str, Doc]:
    """What there is to say of each document after the second apply, by kind and name."""
    kubectl = Kubectl(real_binary("kubectl"), kubeconfig, "")
    kubectl("apply", *mode, "-f", str(file))
    first = _objects(kubectl, file)
    _, output, _ = kubectl.result("apply", *mode, "-f", str(file))
    said = dict(line.rsplit(" ", 1) for line in output.splitlines())
    said = {thing.partition("/")[2]: word for thing, word in said.items()}
    second = _objects(kubectl, file)
    return {
        f"{after['apiVersion']} {after['kind']} {after['metadata']['name']}": {
            "said": said.get(after["metadata"]["name"], "refused"),
            "version changed": before["metadata"]["resourceVersion"] != after["metadata"]["resourceVersion"],
            "generation": after["metadata"].get("generation"),
            "owners": [
                {key: value for key, value in entry.items() if key != "time"}
                for entry in after["metadata"].get("managedFields") or ()
                if entry["operation"] == "Apply"
            ],
        }
        for before, after in zip(first, second, strict=True)
    }


def _objects(kubectl: Kubectl, file: Path) -> list[Doc]:
    found: list[Doc] = json.loads(kubectl("get", "-f", str(file), "-o", "json", "--show-managed-fields"))["items"]
    return found


@pytest.mark.parametrize("mode", [(), ("--server-side",)], ids=["client-side", "server-side"])
@pytest.mark.parametrize("groups", ["v1alpha2", "v1beta1"])
def test_a_second_apply_does_what_it_does_on_a_real_server(tmp_path: Path, groups: str, mode: tuple[str, ...]) -> None:
    every = every_kind.documents if groups == "v1alpha2" else every_kind.groups_alone
    file = tmp_path / "documents.json"
    docs = every("every", groups=groups)
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": docs}))
    with our_server() as kubeconfig:
        ours = applied_twice(kubeconfig, file, *mode)
    with real_server(tmp_path / "real", groups) as kubeconfig:
        real = applied_twice(kubeconfig, file, *mode)
    different = [
        (key, what, ours[key][what], value)
        for key, said in real.items()
        for what, value in said.items()
        if ours[key][what] != value and not {(key.split()[1], what), (key.rpartition(" ")[0], what)} & KNOWN
    ]
    assert not different


def test_the_documents_are_of_every_kind_that_is_served() -> None:
    """scheduler-plugins' PodGroups and Koordinator's kinds are left out: their definitions do not come with the real
    parts."""
    docs = [*every_kind.documents("a", groups="v1alpha2"), *every_kind.groups_alone("a", groups="v1beta1")]
    covered = {(doc["apiVersion"], doc["kind"]) for doc in docs}
    assert {kind for kind in served_kinds() if (kind.api_version, kind.kind) not in covered} == {
        X_POD_GROUP,
        *KOORDINATOR,
    }
