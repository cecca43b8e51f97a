"""What an ElasticQuota does to new pods that belong to it: its limits on what they request, and the nodes of its tree.

A quota with the annotation quota.scheduling.koordinator.sh/admission refuses pods that would make its pods request more
than the annotation says, whether they run or wait; an annotation that lists nothing stands for the quota's max. The
original checks all quotas once its manager's gate EnableQuotaAdmission is on, those without the annotation against
their max. What is requested is counted anew for every pod: the annotation child-request, which the original adds to, is
up to a second old.

Pods of a quota in a tree that an ElasticQuotaProfile makes are bound to the nodes that the profile selects, by required
node affinity. The original does so with its manager's gate MultiQuotaTree.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from fairlead.cluster.admission.quota import exceeded
from fairlead.cluster.admission.webhook_denial import Denied
from fairlead.cluster.store.quantities import NotAQuantity, canonical
from fairlead.core.model import kinds as k
from fairlead.core.model.quantity import read_quantity
from fairlead.core.model.quota import has_ended, pod_amounts
from fairlead.koordinator.kinds import KOORD_ELASTIC_QUOTA, KOORD_QUOTA_PROFILE
from fairlead.koordinator.quotas.admission import TREE, all_quotas, labels_of, namespaces_of, notes_of
from fairlead.koordinator.records.bands import BATCH_CPU, BATCH_MEMORY, MID_CPU, MID_MEMORY
from fairlead.koordinator.records.quotas import BUILT_IN, NAME_LABEL, PREFIX

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc, DocView
    from fairlead.core.model.quantity import Quantity

LIMITS = PREFIX + "admission"
_COUNTED = frozenset({
    "cpu", "memory", "ephemeral-storage", "requests.cpu", "requests.memory", "requests.ephemeral-storage",
    BATCH_CPU, BATCH_MEMORY, MID_CPU, MID_MEMORY,
    "koordinator.sh/gpu", "nvidia.com/gpu", "koordinator.sh/gpu.shared", "koordinator.sh/gpu-memory-ratio",
})  # fmt: skip
"""A quota whose max names none of these is not looked at."""


def check_limits(view: DocView, quota: Doc, pod: Doc) -> None:
    """Raises Denied if a new pod would make the pods of its quota request more than they may."""
    if LIMITS not in notes_of(quota) or quota["metadata"]["name"] in BUILT_IN:
        return
    most = (quota.get("spec") or {}).get("max") or {}
    if not _COUNTED & most.keys():
        return
    amounts = pod_amounts(pod["spec"], "requests")
    asked = {name: amount for name, amount in amounts.items() if amount and name in most}
    limits, used = _limits(quota, most), _requested(view, quota) if asked else {}
    over = [name for name in sorted(asked) if name in limits and used.get(name, 0) + asked[name] > limits[name].nanos]
    if over:
        whose = f"{quota['metadata'].get('namespace') or ''}/{quota['metadata']['name']}"
        raise _denied(exceeded(whose, over, asked, used, limits))


def _denied(why: str) -> Denied:
    return Denied("vpod.koordinator.sh", why)


def _limits(quota: Doc, most: Mapping[str, str]) -> dict[str, Quantity]:
    text = notes_of(quota)[LIMITS]
    try:
        given = (json.loads(text) if text else None) or most
        return {name: read_quantity(canonical(value)) for name, value in given.items()}
    except (ValueError, AttributeError, NotAQuantity) as error:
        raise _denied(str(error)) from None


def _requested(view: DocView, quota: Doc) -> dict[str, int]:
    """What all pods of a quota request that have not ended."""
    name, total = quota["metadata"]["name"], dict[str, int]()
    homes = {*namespaces_of(quota)}
    homes = {home for home in homes if view.get(KOORD_ELASTIC_QUOTA, home, home) is None}
    if quota["metadata"].get("namespace") == name:
        homes.add(name)
    for pod in view.list(k.POD):
        named = labels_of(pod).get(NAME_LABEL)
        belongs = named == name if named else pod["metadata"].get("namespace") in homes
        if belongs and not has_ended(pod):
            for resource, amount in pod_amounts(pod["spec"], "requests").items():
                total[resource] = total.get(resource, 0) + amount
    return total


# ---- trees ----


def with_nodes_of_tree(view: DocView, pod: Doc) -> Doc:
    """A new pod that may run only on the nodes of its quota's tree, if a profile says which these are. A selector that
    says nothing selects all nodes and adds nothing; the original then writes a term that no node matches."""
    profiles = list(view.list(KOORD_QUOTA_PROFILE))
    if not profiles:
        return pod
    tree = _tree_of(view, pod)
    selected = next((one for one in profiles if tree and labels_of(one).get(TREE) == tree), None)
    required = _requirements((selected or {}).get("spec") or {})
    if not required:
        return pod
    spec = pod.get("spec") or {}
    affinity = spec.get("affinity") or {}
    of_nodes = affinity.get("nodeAffinity") or {}
    of_place = of_nodes.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    given: list[Doc] = of_place.get("nodeSelectorTerms") or [{}]
    terms = [{**term, "matchExpressions": [*(term.get("matchExpressions") or ()), *required]} for term in given]
    of_nodes = {**of_nodes, "requiredDuringSchedulingIgnoredDuringExecution": {**of_place, "nodeSelectorTerms": terms}}
    return {**pod, "spec": {**spec, "affinity": {**affinity, "nodeAffinity": of_nodes}}}


def _tree_of(view: DocView, pod: Doc) -> str:
    """The tree of the quota that a pod names, or that is called like its namespace, or that lists its namespace."""
    home = pod["metadata"].get("namespace") or ""
    known = all_quotas(view)
    quota = known.get(labels_of(pod).get(NAME_LABEL) or home)
    if quota is None:
        quota = next((one for _, one in sorted(known.items()) if home in namespaces_of(one)), None)
    return "" if quota is None else labels_of(quota).get(TREE, "")


def _requirements(profile: Doc) -> list[Doc]:
    selector = profile.get("nodeSelector") or {}
    labels = (selector.get("matchLabels") or {}).items()
    return [
        *({"key": key, "operator": "In", "values": [value]} for key, value in sorted(labels)),
        *(dict(expression) for expression in selector.get("matchExpressions") or ()),
    ]
