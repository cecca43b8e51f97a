"""Roles grant what is used and nothing else: the API server's audit log, right by right, for every way of running."""

from __future__ import annotations

import asyncio
import ssl
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from fairlead.cli.roles.documents import bindings
from fairlead.client.client import KubeApi
from fairlead.client.credentials import load_kubeconfig
from fairlead.core.model import kinds as k
from fairlead.core.model.flow import Verb, Write
from fairlead.core.model.kinds import Kind
from fairlead.errors import Invalid
from tests.e2e.scheduler_process import GANG_GATES
from tests.kube.audited import Lab, fairlead, laboratory, refused, used_rights
from tests.kube.contenders import node_document, pod_document
from tests.kube.control_plane import ControlPlane, define_volcano_kinds, free_port
from tests.scenario.test_resource_claims import claim, device_class, devices, gpus
from tests.scenario.test_resource_claims import pod as claiming_pod

pytestmark = pytest.mark.kube

OURS, LESSER, READER = "fairlead", "lesser", "reader"
CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {resourceName: fairlead, resourceNamespace: default, leaseDuration: 120s, renewDeadline: 100s}
clientConnection: {qps: 5000, burst: 5000}
podMaxBackoffSeconds: 1
profiles: [{schedulerName: fairlead}]
"""
CHECKED_WITHIN = {("resource.k8s.io", "resourceclaims/binding", "patch")}
"""Rights that the server itself looks for while it serves another request, so that the log does not name them."""
POLICY = Kind("admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicy", "validatingadmissionpolicies", False)
POLICY_BINDING = Kind(
    "admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings", False
)


def ours(document: dict[str, Any], *, scheduler: str = OURS, **spec: Any) -> dict[str, Any]:
    """A pod of the scheduler that is looked at."""
    document["spec"] |= {"schedulerName": scheduler, "terminationGracePeriodSeconds": 0, **spec}
    return document


def has_node(doc: dict[str, Any]) -> bool:
    return bool(doc["spec"].get("nodeName"))


async def an_event_is_repeated(lab: Lab, account: str = OURS) -> None:
    """A pod that fits nowhere is refused again and again; a pod that goes is a reason for another attempt, and equal
    events become a series, which is patched."""
    await lab.make(k.POD, ours(pod_document("huge", cpu="99"), scheduler=account))
    tries = 0

    async def told_twice() -> bool:
        nonlocal tries
        tries += 1
        await lab.make(k.POD, ours(pod_document(f"short-{tries}", cpu="1m"), scheduler=account))
        await lab.until(k.POD, f"short-{tries}", has_node)
        await lab.delete(k.POD, f"short-{tries}")
        await asyncio.sleep(1)
        return ("events.k8s.io", "events", "patch") in used_rights(lab.plane, account)

    await lab.until_true(told_twice, "an event was repeated")
    await lab.delete(k.POD, "huge")


async def pods_are_placed_refused_and_preempted(lab: Lab) -> None:
    await lab.make(k.NODE, node_document("n0", cpu="4"))
    await lab.make(k.NODE, node_document("n1", cpu="4"))
    await lab.make(k.PRIORITY_CLASS, {"metadata": {"name": "high"}, "value": 1000})
    for number in range(2):
        await lab.make(k.POD, ours(pod_document(f"low-{number}", cpu="3")))
        await lab.until(k.POD, f"low-{number}", has_node)
    await lab.make_in_time(k.POD, ours(pod_document("urgent", cpu="3"), priorityClassName="high"))
    await lab.until(k.POD, "urgent", has_node)
    await an_event_is_repeated(lab)


async def volumes_are_chosen(lab: Lab, scheduler: str = OURS) -> None:
    for name, provisioner in (("local", "kubernetes.io/no-provisioner"), ("made", "example.com/maker")):
        body = {"metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer"}
        await lab.make(k.STORAGE_CLASS, body)
        spec = {
            "accessModes": ["ReadWriteOnce"], "storageClassName": name, "resources": {"requests": {"storage": "1Gi"}},
        }  # fmt: skip
        await lab.make(k.PERSISTENT_VOLUME_CLAIM, {"metadata": {"name": name}, "spec": spec})
        volume = {"name": "v", "persistentVolumeClaim": {"claimName": name}}
        await lab.make(k.POD, ours(pod_document(f"with-{name}", cpu="1m"), scheduler=scheduler, volumes=[volume]))
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "Exists"}]}
    disk = {
        "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "local",
        "local": {"path": "/disk"}, "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
    }  # fmt: skip
    await lab.make(k.PERSISTENT_VOLUME, {"metadata": {"name": "disk"}, "spec": disk})
    await lab.patch(k.PERSISTENT_VOLUME, "disk", {"status": {"phase": "Available"}}, subresource="status")
    await lab.until(k.PERSISTENT_VOLUME, "disk", lambda doc: doc["spec"].get("claimRef"))
    chosen = "volume.kubernetes.io/selected-node"
    await lab.until(k.PERSISTENT_VOLUME_CLAIM, "made", lambda doc: chosen in (doc["metadata"].get("annotations") or {}))


async def devices_are_given(lab: Lab, scheduler: str = OURS) -> None:
    await lab.make(k.DEVICE_CLASS, device_class(extendedResourceName="example.com/card"))
    await lab.make(k.RESOURCE_SLICE, gpus("n0", 4))
    await lab.make(k.RESOURCE_CLAIM, claim("one", devices()))
    await lab.make(k.POD, ours(claiming_pod("devices", shared="one"), scheduler=scheduler))
    await lab.until(k.POD, "devices", has_node)


async def devices_are_taken_back(lab: Lab) -> None:
    # A binding that the server refuses makes the scheduler delete the claim that it made for the pod.
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods/binding"], "operations": ["CREATE"]}
    spec = {
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": "object.metadata.name != 'cards'"}],
    }
    await lab.make(POLICY, {"metadata": {"name": "not-cards"}, "spec": spec})
    bound = {"policyName": "not-cards", "validationActions": ["Deny"]}
    await lab.make(POLICY_BINDING, {"metadata": {"name": "not-cards"}, "spec": bound})
    await asyncio.sleep(1)
    container = {"name": "c", "image": "x", "resources": {"limits": {"example.com/card": "1"}}}
    await lab.make(k.POD, ours({"metadata": {"name": "cards"}, "spec": {"containers": [container]}}))
    await lab.until_used(OURS, ("resource.k8s.io", "resourceclaims", "delete"))


async def only_binders_may_allocate(lab: Lab) -> None:
    """The right that the log does not name is one that a status with an allocation cannot be written without."""
    rules = [{"apiGroups": ["resource.k8s.io"], "resources": ["resourceclaims/status"], "verbs": ["patch"]}]
    role = {"apiVersion": k.CLUSTER_ROLE.api_version, "kind": "ClusterRole", "metadata": {"name": "lesser"}}
    await lab.make(k.CLUSTER_ROLE, {**role, "rules": rules})
    (bound,) = bindings([role], {"kind": "User", "name": LESSER, "apiGroup": k.CLUSTER_ROLE.group})
    await lab.make(k.CLUSTER_ROLE_BINDING, bound)
    api = KubeApi(load_kubeconfig(lab.plane.kubeconfig_of(LESSER)))
    try:
        body = {"status": {"reservedFor": []}}
        with pytest.raises(Invalid, match="resourceclaims/binding"):
            await api.perform(Write(Verb.PATCH, k.RESOURCE_CLAIM, "default", "one", body, subresource="status"))
    finally:
        await api.close()


async def a_gang_is_told(lab: Lab) -> None:
    policy = {"schedulingPolicy": {"gang": {"minCount": 2}}}
    await lab.make(k.POD_GROUP, {"metadata": {"name": "pair"}, "spec": policy})
    for number in range(2):
        await lab.make(k.POD, ours(pod_document(f"pair-{number}", cpu="1m"), schedulingGroup={"podGroupName": "pair"}))
    for number in range(2):
        await lab.until(k.POD, f"pair-{number}", has_node)


async def the_port_asks(lab: Lab, port: int, account: str = OURS) -> None:
    """Without a token nobody is let in; health is open."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE

    def get(path: str, token: str = "") -> int:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        request = urllib.request.Request(f"https://127.0.0.1:{port}{path}", headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=10, context=context) as response:
                return int(response.status)
        except urllib.error.HTTPError as error:
            return error.code

    tokens = ("", "wrong", f"{account}-token", lab.plane.token)
    answers = [await asyncio.to_thread(get, "/metrics", token) for token in tokens]
    assert [await asyncio.to_thread(get, "/livez"), *answers] == [200, 403, 401, 403, 200]


async def all_that_schedulers_do(lab: Lab, port: int) -> None:
    """Everything for which every scheduler has rights, whatever its profile."""
    await pods_are_placed_refused_and_preempted(lab)
    await volumes_are_chosen(lab)
    await devices_are_given(lab)
    await devices_are_taken_back(lab)
    await a_gang_is_told(lab)
    await the_port_asks(lab, port)


async def test_a_second_scheduler_uses_all_that_it_may_and_nothing_else(tmp_path: Path) -> None:
    plane = ControlPlane(
        tmp_path, gates=f"{GANG_GATES},DRAExtendedResource=true", runtime_config="scheduling.k8s.io/v1alpha2=true",
        accounts=(OURS, LESSER), audited=True,
    )  # fmt: skip
    config, port = tmp_path / "scheduler.yaml", free_port()
    config.write_text(CONFIG)
    async with laboratory(plane) as lab:
        await asyncio.to_thread(define_volcano_kinds, lab.plane.kubeconfig)
        await lab.define(k.X_POD_GROUP)
        granted = await lab.bind_roles("second", OURS, lease=("default", "fairlead"))
        flags = ("--bind-address", "0.0.0.0", "--secure-port", str(port), "--feature-gates", GANG_GATES)
        with fairlead(lab, OURS, "scheduler", "--config", str(config), *flags) as log:
            await all_that_schedulers_do(lab, port)
        assert refused(plane, OURS) == set()
        assert "this account may do all that is needed" in log.read_text()
        await only_binders_may_allocate(lab)
        assert used_rights(plane, OURS) | CHECKED_WITHIN == granted


async def test_a_reader_uses_all_that_it_may_and_writes_nothing(tmp_path: Path) -> None:
    """`snapshot save` and `record` read everything that the commands that only look read."""
    plane = ControlPlane(
        tmp_path, gates=GANG_GATES, runtime_config="scheduling.k8s.io/v1alpha2=true", accounts=(READER,), audited=True
    )
    async with laboratory(plane) as lab:
        await asyncio.to_thread(define_volcano_kinds, lab.plane.kubeconfig)
        await lab.define(k.X_POD_GROUP)
        granted = await lab.bind_roles("reader", READER, lease=("default", "fairlead"))
        assert {verb for _, _, verb in granted} == {"list", "watch"}
        with (
            fairlead(lab, READER, "snapshot", "save", str(tmp_path / "cluster.yaml")),
            fairlead(lab, READER, "record", str(tmp_path / "decisions")),
        ):
            await lab.until_used(READER, *(right for right in granted if right[2] == "list"))
            await asyncio.sleep(3)  # watches follow the lists, and the log has them when they end
        assert refused(plane, READER) == set()
        assert used_rights(plane, READER) == granted
