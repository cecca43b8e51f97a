"""Accounts, configurations and workloads of the tests that compare roles with the audit log of a real API server."""

from __future__ import annotations

import asyncio
import ssl
import urllib.error
import urllib.request
from typing import Any

from fairlead.cli.roles.documents import extra_rules
from fairlead.core.model import kinds as k
from fairlead.core.model.kinds import Kind
from tests.support.claims import claim, device_class, devices, gpus
from tests.support.claims import pod as claiming_pod
from tests.support.real.audited import Lab, Right, granted_rights, used_rights
from tests.support.real.contenders import node_document, pod_document

OURS, VOLCANO = "fairlead", "volcano"
"""Accounts of a second scheduler beside kube-scheduler and of one in Volcano's place."""
CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {resourceName: fairlead, resourceNamespace: default, leaseDuration: 120s, renewDeadline: 100s}
clientConnection: {qps: 5000, burst: 5000}
podMaxBackoffSeconds: 1
profiles: [{schedulerName: fairlead}]
"""
VOLCANO_CONF = """\
actions: "enqueue, allocate, backfill, preempt"
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: false
  - name: conformance
- plugins:
  - name: predicates
    arguments:
      predicate.DynamicResourceAllocationEnable: true
  - name: capacity
  - name: nodeorder
"""
CHECKED_WITHIN = {("resource.k8s.io", "resourceclaims/binding", "patch")}
"""Rights that the server itself looks for while it serves another request, so that the log does not name them."""
POLICY = Kind("admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicy", "validatingadmissionpolicies", False)
POLICY_BINDING = Kind(
    "admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings", False
)


def ours(document: dict[str, Any], *, scheduler: str = OURS, **spec: Any) -> dict[str, Any]:
    """A pod's document, changed so that the pod is the scheduler's under test and ends at once when it is deleted."""
    document["spec"] |= {"schedulerName": scheduler, "terminationGracePeriodSeconds": 0, **spec}
    return document


def has_node(doc: dict[str, Any]) -> bool:
    """Whether a pod is bound."""
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


def extra_rights(extra: str) -> set[Right]:
    """The rights that `fairlead roles` adds for an extra."""
    return granted_rights([{"rules": extra_rules(extra)}])
