"""What `kubectl explain` says of the fields that scheduling reads: short, and in our own words.

All other fields show their types without a text. A description belongs to a type's field, so it shows wherever the
type is used: a Deployment's template explains its pods like a Pod does.
"""

from __future__ import annotations

from typing import Any

_CORE, _META = "io.k8s.api.core.v1.", "io.k8s.apimachinery.pkg.apis.meta.v1."
_POD_SPEC = {
    "": "What a pod runs and what it asks of the node it runs on.",
    "activeDeadlineSeconds": "After so many seconds on its node the pod is failed.",
    "affinity": "Where the pod should or must run, by labels of nodes and by the pods that are already there.",
    "containers": "The containers of the pod; their requests together are what the scheduler reserves.",
    "initContainers": "Containers that run one after the other before the others start. Their largest request counts,"
                      " unless they restart always: then they count like the others.",
    "nodeName": "The node the pod runs on. The scheduler sets it through a binding; who sets it when creating the pod"
                " bypasses the scheduler.",
    "nodeSelector": "Labels that a node must have, all of them, with these values.",
    "overhead": "What running the pod costs beyond its containers; comes from the RuntimeClass.",
    "preemptionPolicy": "Whether the pod may evict pods of lower priority: PreemptLowerPriority or Never.",
    "priority": "The value of the priority class. Higher goes first and may preempt lower.",
    "priorityClassName": "The name of the PriorityClass that gives the pod its priority.",
    "resourceClaims": "Claims for devices that must be allocated before the pod can start.",
    "resources": "Requests and limits of the pod as a whole, shared by its containers.",
    "runtimeClassName": "The RuntimeClass, which may add overhead, node labels and tolerations.",
    "schedulerName": "Which scheduler places the pod. default-scheduler unless said otherwise.",
    "schedulingGates": "While any is left, the scheduler does not look at the pod. They can be removed, not added.",
    "schedulingGroup": "The PodGroup with which the pod is scheduled.",
    "terminationGracePeriodSeconds": "How long the pod may take to end when it is deleted or preempted.",
    "tolerations": "Which taints of nodes do not keep the pod away.",
    "topologySpreadConstraints": "How evenly pods like this one are spread over zones, nodes or other domains.",
    "volumes": "Storage that containers can mount. Claims can tie the pod to the nodes that reach their volumes.",
}  # fmt: skip
DESCRIPTIONS: dict[str, dict[str, str]] = {
    _CORE + "Pod": {
        "": "The unit of scheduling: containers that run together on one node.",
        "spec": "What the pod wants.",
        "status": "What became of it: phase, conditions, node address.",
    },
    _CORE + "PodSpec": _POD_SPEC,
    _CORE + "Affinity": {
        "": "Attraction and repulsion between pods, and between pods and nodes.",
        "nodeAffinity": "By labels and fields of nodes.",
        "podAffinity": "Close to other pods: in the same domain of a topology key as pods that match.",
        "podAntiAffinity": "Away from other pods: in no domain of a topology key that has pods that match.",
    },
    _CORE + "NodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": "Nodes that do not match are out of the question. Later"
                                                          " changes of a node's labels do not evict the pod.",
        "preferredDuringSchedulingIgnoredDuringExecution": "Nodes that match get the weight added to their score.",
    },
    _CORE + "PodAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": "Every term must find a matching pod in the node's domain.",
        "preferredDuringSchedulingIgnoredDuringExecution": "Each matching pod in the domain adds the term's weight.",
    },
    _CORE + "PodAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": "No term may find a matching pod in the node's domain. It"
                                                          " counts in both directions.",
        "preferredDuringSchedulingIgnoredDuringExecution": "Each matching pod in the domain takes the weight away.",
    },
    _CORE + "PodAffinityTerm": {
        "labelSelector": "Which pods are meant.",
        "matchLabelKeys": "Label keys whose values the meant pods share with this one.",
        "mismatchLabelKeys": "Label keys whose values the meant pods do not share with this one.",
        "namespaces": "Where to look for them; with neither this nor namespaceSelector, in the pod's own namespace.",
        "namespaceSelector": "Namespaces to look in, by their labels; empty means all.",
        "topologyKey": "The node label whose values are the domains, kubernetes.io/hostname for instance.",
    },
    _CORE + "NodeSelector": {"nodeSelectorTerms": "One of these must match."},
    _CORE + "NodeSelectorTerm": {
        "matchExpressions": "Conditions on the node's labels; all must hold.",
        "matchFields": "Conditions on the node's fields; only metadata.name is known.",
    },
    _CORE + "NodeSelectorRequirement": {
        "key": "The label or field.",
        "operator": "In, NotIn, Exists, DoesNotExist, Gt or Lt.",
        "values": "What to compare with: none for Exists and DoesNotExist, one number for Gt and Lt.",
    },
    _CORE + "PreferredSchedulingTerm": {
        "preference": "What the node should be like.",
        "weight": "From 1 to 100: how much it counts among all preferences.",
    },
    _CORE + "WeightedPodAffinityTerm": {
        "podAffinityTerm": "The pods that attract or repel.",
        "weight": "From 1 to 100: how much it counts among all preferences.",
    },
    _CORE + "Toleration": {
        "": "A taint that the pod puts up with.",
        "key": "The taint's key; empty with Exists means every taint.",
        "operator": "Equal (the default), Exists, or Gt and Lt for values that are numbers.",
        "value": "The taint's value, for Equal.",
        "effect": "NoSchedule, PreferNoSchedule or NoExecute; empty means all of them.",
        "tolerationSeconds": "For NoExecute: how long the pod stays after the taint appeared. Unset means for ever.",
    },
    _CORE + "TopologySpreadConstraint": {
        "": "Bounds how unevenly matching pods are spread over the domains of a node label.",
        "labelSelector": "Which pods are counted.",
        "matchLabelKeys": "Label keys whose values the counted pods share with this one.",
        "maxSkew": "How many more matching pods a domain may have than the emptiest one.",
        "minDomains": "With fewer domains than this, the emptiest counts as having no pods.",
        "nodeAffinityPolicy": "Honor (the default): only nodes that the pod's node affinity admits count.",
        "nodeTaintsPolicy": "Honor: nodes with taints that the pod does not tolerate do not count. Ignore by default.",
        "topologyKey": "The node label whose values are the domains, topology.kubernetes.io/zone for instance.",
        "whenUnsatisfiable": "DoNotSchedule makes it a condition, ScheduleAnyway a preference.",
    },
    _CORE + "ResourceRequirements": {
        "": "What a container gets.",
        "claims": "Device claims of the pod that this container uses.",
        "limits": "The most it may use. Where no request is given, the limit is the request.",
        "requests": "What is set aside for it on the node. The scheduler counts requests, not what is used.",
    },
    _CORE + "PodSchedulingGate": {"name": "Who holds the pod back; each name once."},
    _CORE + "Container": {
        "image": "What it runs. A node that has the image already scores higher.",
        "ports": "Ports; two pods with the same hostPort cannot share a node.",
        "resources": "What it needs of the node.",
    },
    _CORE + "ContainerPort": {"hostPort": "The port taken on the node; the pod needs a node where it is free."},
    _CORE + "PodStatus": {
        "conditions": "PodScheduled says whether and why not; Ready whether it serves.",
        "nominatedNodeName": "The node on which room is being made for this pod by preemption.",
        "phase": "Pending, Running, Succeeded, Failed or Unknown.",
        "qosClass": "Guaranteed, Burstable or BestEffort, from requests and limits.",
    },
    _CORE + "Node": {"": "A machine: what it offers, what it refuses, how it is."},
    _CORE + "NodeSpec": {
        "taints": "Keep pods away that do not tolerate them.",
        "unschedulable": "Set by kubectl cordon: no new pods.",
        "podCIDR": "The addresses of the node's pods.",
        "providerID": "The machine's name in the cloud it comes from.",
    },
    _CORE + "NodeStatus": {
        "allocatable": "What pods can have of the node; the scheduler counts against this.",
        "capacity": "All that the machine has.",
        "conditions": "Ready and the pressures, as the kubelet reports them.",
        "images": "Images that are there already.",
    },
    _CORE + "Taint": {
        "key": "What the taint is called.",
        "value": "What a toleration may compare with.",
        "effect": "NoSchedule keeps new pods away, PreferNoSchedule tries to, NoExecute also evicts those there.",
        "timeAdded": "When it appeared; tolerationSeconds count from here.",
    },
    "io.k8s.api.scheduling.v1.PriorityClass": {
        "": "A name for a priority.",
        "globalDefault": "Whether pods without a class get this one.",
        "preemptionPolicy": "Whether pods of this class may preempt.",
        "value": "The priority. User classes stay below one billion.",
    },
    "io.k8s.api.policy.v1.PodDisruptionBudgetSpec": {
        "maxUnavailable": "How many of the pods may be gone at once; a number or a percentage.",
        "minAvailable": "How many must stay; a number or a percentage.",
        "selector": "Which pods it protects.",
        "unhealthyPodEvictionPolicy": "Whether pods that are not ready may always be evicted.",
    },
    _META + "ObjectMeta": {
        "annotations": "Notes that nothing selects by.",
        "labels": "What selectors look at.",
        "name": "Unique among objects of its kind in its namespace.",
        "namespace": "The room the object lives in.",
        "ownerReferences": "What it belongs to; it goes when they are gone.",
    },
}  # fmt: skip


def described(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of a type with the descriptions that we have for it."""
    texts = DESCRIPTIONS.get(name)
    if texts is None:
        return schema
    properties = {
        field: {**inner, "description": texts[field]} if field in texts else inner
        for field, inner in (schema.get("properties") or {}).items()
    }
    own = {"description": texts[""]} if "" in texts else {}
    return {**schema, **own, "properties": properties}
