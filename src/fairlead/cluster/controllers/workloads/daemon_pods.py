"""Which nodes a DaemonSet wants a pod on, and the pod for one of them.

The pod names its node in a node affinity and is placed by the scheduler like any other; it tolerates what befalls
nodes in trouble, because that is when a daemon is needed most.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fairlead.cluster.controllers.workloads.pod_templates import pod_from_template
from fairlead.cluster.controllers.workloads.revisions import HASH_LABEL
from fairlead.core.model.kinds import DAEMON_SET
from fairlead.core.model.selectors import parse_node_selector, selector_from_map
from fairlead.core.model.taints import NO_EXECUTE, Taint, first_untolerated, parse_taints, parse_tolerations

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc

GENERATION_LABEL = "pod-template-generation"
GENERATION_ANNOTATION = "deprecated.daemonset.template.generation"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_ALWAYS = tuple(
    {"key": f"node.kubernetes.io/{what}", "operator": "Exists", "effect": effect}
    for what, effect in (
        ("not-ready", "NoExecute"),
        ("unreachable", "NoExecute"),
        ("disk-pressure", "NoSchedule"),
        ("memory-pressure", "NoSchedule"),
        ("pid-pressure", "NoSchedule"),
        ("unschedulable", "NoSchedule"),
    )
)
_ON_HOST_NETWORK = {
    "key": "node.kubernetes.io/network-unavailable", "operator": "Exists", "effect": "NoSchedule",
}  # fmt: skip


class Site(NamedTuple):
    """What of a node decides about daemons."""

    name: str
    labels: dict[str, str]
    taints: tuple[Taint, ...]


class DaemonDecision(NamedTuple):
    """Whether a pod shall be made for a node, and whether one that is there may stay."""

    run: bool
    stay: bool


def site_of(node: Doc) -> Site:
    taints = parse_taints((node.get("spec") or {}).get("taints"))
    return Site(node["metadata"]["name"], node["metadata"].get("labels") or {}, taints)


def verdict(owner: Doc, site: Site) -> DaemonDecision:
    spec = owner["spec"]["template"].get("spec") or {}
    if spec.get("nodeName", site.name) not in ("", site.name) or not _fits(spec, site):
        return DaemonDecision(run=False, stay=False)
    tolerations = parse_tolerations(daemon_tolerations(spec))
    if first_untolerated(site.taints, tolerations) is None:
        return DaemonDecision(run=True, stay=True)
    evicting = [taint for taint in site.taints if taint.effect == NO_EXECUTE]
    return DaemonDecision(run=False, stay=first_untolerated(evicting, tolerations) is None)


def _fits(spec: Doc, site: Site) -> bool:
    if not selector_from_map(spec.get("nodeSelector")).matches(site.labels):
        return False
    required = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(_REQUIRED)
    return required is None or parse_node_selector(required).matches(site.labels, site.name)


def daemon_tolerations(spec: Doc) -> list[Doc]:
    """The template's tolerations and those that every daemon has."""
    always = [*_ALWAYS, _ON_HOST_NETWORK] if spec.get("hostNetwork") else _ALWAYS
    own = spec.get("tolerations") or []
    replaced = [{key: one.get(key) or "" for key in ("key", "effect")} for one in always]
    kept = [one for one in own if {key: one.get(key) or "" for key in ("key", "effect")} not in replaced]
    return [*kept, *always]


def daemon_pod(owner: Doc, node: str, revision_hash: str) -> Doc:
    template = owner["spec"]["template"]
    pod = pod_from_template(DAEMON_SET, owner, template)
    generation = (owner["metadata"].get("annotations") or {}).get(GENERATION_ANNOTATION, "1")
    labels = {**(pod["metadata"].get("labels") or {}), HASH_LABEL: revision_hash, GENERATION_LABEL: generation}
    spec = {**pod["spec"], "affinity": _bound_for(node, pod["spec"].get("affinity") or {})}
    spec["tolerations"] = daemon_tolerations(pod["spec"])
    return {**pod, "metadata": {**pod["metadata"], "labels": labels}, "spec": spec}


def _bound_for(node: str, affinity: Doc) -> Doc:
    """The affinity with the node's name in place of whatever the template required; it has been checked already."""
    by_name = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    near = {**(affinity.get("nodeAffinity") or {}), _REQUIRED: {"nodeSelectorTerms": [by_name]}}
    return {**affinity, "nodeAffinity": near}


def node_of(pod: Doc) -> str:
    """The node that a daemon's pod is on or meant for."""
    spec = pod.get("spec") or {}
    if spec.get("nodeName"):
        return str(spec["nodeName"])
    required = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(_REQUIRED) or {}
    for term in required.get("nodeSelectorTerms") or ():
        for field in term.get("matchFields") or ():
            if field.get("key") == "metadata.name" and field.get("values"):
                return str(field["values"][0])
    return ""
