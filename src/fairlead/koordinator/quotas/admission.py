"""ElasticQuotas as Koordinator's webhooks admit them: what is filled in, what is refused, which may go.

    create   the parent is the root unless named, the tree is the parent's, the weight is max
    check    min <= max; the parent exists and is one; children have its keys and together no more than its min
    delete   built-in quotas stay, and so does a quota that has children or pods

Quotas are known by name alone, whatever their namespace. Words are those of the webhook velasticquota.koordinator.sh.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fairlead.cluster.admission.webhook_denial import Denied
from fairlead.cluster.store.quantities import QUANTITY_ERROR, NotAQuantity, canonical, nanos
from fairlead.core.model import kinds as k
from fairlead.errors import Invalid
from fairlead.koordinator.kinds import KOORD_ELASTIC_QUOTA
from fairlead.koordinator.records.quotas import BUILT_IN, NAME_LABEL, NAMESPACES_ANNOTATION, PREFIX, ROOT, SYSTEM

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc, DocView

PARENT, IS_PARENT, TREE = PREFIX + "parent", PREFIX + "is-parent", PREFIX + "tree-id"
WEIGHT, STRICT_KEYS = PREFIX + "shared-weight", PREFIX + "max-strict-check-resource-keys"
_COMPARED = (PARENT, IS_PARENT, TREE)


def labels_of(doc: Doc) -> Mapping[str, str]:
    return doc["metadata"].get("labels") or {}


def notes_of(doc: Doc) -> Mapping[str, str]:
    return doc["metadata"].get("annotations") or {}


def all_quotas(view: DocView) -> dict[str, Doc]:
    return {quota["metadata"]["name"]: quota for quota in view.list(KOORD_ELASTIC_QUOTA)}


def is_parent(quota: Doc) -> bool:
    return labels_of(quota).get(IS_PARENT) == "true"


def namespaces_of(quota: Doc) -> list[str]:
    """The namespaces that an annotation gives to the quota; one that is no list gives none."""
    try:
        found = json.loads(notes_of(quota).get(NAMESPACES_ANNOTATION) or "[]")
    except ValueError:
        return []
    return [str(one) for one in found] if isinstance(found, list) else []


def _parent(quota: Doc) -> str:
    return labels_of(quota).get(PARENT) or ("" if quota["metadata"]["name"] == ROOT else ROOT)


def _denied(why: str, webhook: str = "velasticquota.koordinator.sh") -> Denied:
    return Denied(webhook, why)


# ---- made different ----


def mutate_quota(view: DocView, doc: Doc) -> Doc:
    """A new quota with parent, tree and weight. Raises Denied if the parent that it names is not there."""
    name = doc["metadata"]["name"]
    if name == ROOT:
        return doc
    labels, notes = dict(labels_of(doc)), dict(notes_of(doc))
    labels[PARENT] = labels.get(PARENT) or ROOT
    if not labels.get(TREE) and labels[PARENT] != ROOT:
        parent = all_quotas(view).get(labels[PARENT])
        if parent is None:
            raise _denied(f"fill quota {name} failed, parent not exist", "melasticquota.koordinator.sh")
        if labels_of(parent).get(TREE):
            labels[TREE] = labels_of(parent)[TREE]
    most = _amounts(doc, "max")
    if not notes.get(WEIGHT):
        notes[WEIGHT] = _written(most)
    else:
        given = _weight(name, notes[WEIGHT])
        if set(given) != set(most):
            notes[WEIGHT] = _written({key: given.get(key, amount) for key, amount in most.items()})
    return {**doc, "metadata": {**doc["metadata"], "labels": labels, "annotations": notes}}


def _weight(name: str, text: str) -> Mapping[str, Any]:
    try:
        found = json.loads(text)
        return {key: canonical(value) for key, value in found.items()}
    except (ValueError, AttributeError) as error:
        why = f"fillDefaultQuotaInfo unmarshal sharedWeight failed:{error}"
        raise _denied(why, "melasticquota.koordinator.sh") from None


def _written(amounts: Mapping[str, Any]) -> str:
    spelt = {name: canonical(amounts[name]) for name in sorted(amounts)}
    return json.dumps(spelt, separators=(",", ":"))


def _amounts(quota: Doc, part: str) -> Mapping[str, Any]:
    """The quantities of `min` or `max`. Raises Invalid if a value is not a quantity."""
    found: Mapping[str, Any] = (quota.get("spec") or {}).get(part) or {}
    for name, value in found.items():
        try:
            nanos(value)
        except NotAQuantity:
            field = f"spec.{part}.{name}"
            problem = f"Invalid value: {json.dumps(value)}: {QUANTITY_ERROR}"
            raise Invalid(
                f'ElasticQuota.scheduling.sigs.k8s.io "{quota["metadata"]["name"]}" is invalid: {field}: {problem}',
                details={"causes": [{"reason": "FieldValueInvalid", "message": problem, "field": field}]},
            ) from None
    return found


# ---- refused ----


@dataclass(frozen=True, slots=True)
class _Tree:
    """The quotas that there are, without the one that is judged."""

    quotas: Mapping[str, Doc]

    def children(self, name: str) -> list[Doc]:
        return [quota for _, quota in sorted(self.quotas.items()) if _parent(quota) == name]


def admit_quota(view: DocView, new: Doc, old: Doc | None) -> None:
    """Raises Denied if a quota may not be made or changed like that."""
    name, quotas = new["metadata"]["name"], all_quotas(view)
    if old is None and name in quotas:
        raise _denied(f"AddQuota quota already exist:{name}")
    if old is not None:
        if _compared(old) == _compared(new):
            return
        if name in (SYSTEM, ROOT):
            raise _denied(f"invalid quota {name}")
    tree = _Tree({key: quota for key, quota in quotas.items() if key != name})
    _check_namespaces(tree, new, old)
    _check_itself(new)
    if name == ROOT:
        return
    if old is not None:
        _check_role(view, tree, new, old)
    _check_tree_id(tree, new, old)
    if _parent(new) == ROOT and not is_parent(new):
        return
    _check_parent(tree, new)
    _check_keys(tree, new)
    _check_minima(tree, new)


def _compared(quota: Doc) -> tuple[Any, ...]:
    labels = labels_of(quota)
    spec = {part: {name: canonical(value) for name, value in _amounts(quota, part).items()} for part in ("min", "max")}
    return [labels.get(key, "") for key in _COMPARED], notes_of(quota).get(NAMESPACES_ANNOTATION, ""), spec


def _check_namespaces(tree: _Tree, new: Doc, old: Doc | None) -> None:
    name, wanted = new["metadata"]["name"], namespaces_of(new)
    for other, quota in sorted(tree.quotas.items()) if wanted else ():
        for namespace in namespaces_of(quota):
            if namespace not in wanted:
                continue
            if old is None:
                what = f"AddQuota quota {name}'s annotation namespace {namespace} is already bound to quota {other}"
            else:
                what = f"UpdadteQuota, quota {name} update namespaces, but namespace {namespace} is already bound to "
                what += f"quota {other}"
            raise _denied(what)


def _negative(amounts: Mapping[str, Any]) -> str:
    return " ".join(sorted(name for name, value in amounts.items() if nanos(value) < 0))


def _check_itself(quota: Doc) -> None:
    name, most, least = quota["metadata"]["name"], _amounts(quota, "max"), _amounts(quota, "min")
    for part, amounts in (("Max", most), ("Min", least)):
        if negative := _negative(amounts):
            raise _denied(f"{name} quota.Spec.{part}'s value < 0, in dimensions :[{negative}]")
    weight = _read_json(quota, WEIGHT)
    if isinstance(weight, dict) and (negative := _negative(weight)):
        raise _denied(f"{name} quota.Annotation[{WEIGHT}]'s value < 0, in dimension :[{negative}]")
    for key, value in sorted(least.items()):
        if key not in most:
            raise _denied(f"resourceKey {key} of quota {name} is included in min, which is not included in max")
        if nanos(value) > nanos(most[key]):
            shown = f"min {canonical(value)} > max {canonical(most[key])}"
            raise _denied(f"resourceKey {key} of quota {name} {shown}")
    _check_use(quota, most)


def _check_use(quota: Doc, most: Mapping[str, Any]) -> None:
    """An annotation lists resources whose max may not fall below what is used."""
    name, used = quota["metadata"]["name"], (quota.get("status") or {}).get("used") or {}
    for key in _read_json(quota, STRICT_KEYS) or ():
        if key not in used:
            continue
        if key not in most:
            what = "is included in used, which is not included in max but should check max >= used"
            raise _denied(f"resourceKey {key} of quota {name} {what}")
        if nanos(most[key]) < nanos(used[key]):
            shown = f"max {canonical(most[key])} < used {canonical(used[key])}"
            raise _denied(f"resourceKey {key} of quota {name} {shown}")


def _read_json(quota: Doc, key: str) -> Any:
    text = notes_of(quota).get(key)
    if not text:
        return None
    try:
        return json.loads(text)
    except ValueError as error:
        raise _denied(f"{quota['metadata']['name']} quota.Annotation[{key}]'s value is invalid: {error}") from None


def _check_role(view: DocView, tree: _Tree, new: Doc, old: Doc) -> None:
    """Whether a quota may become a parent, or stop being one."""
    name = new["metadata"]["name"]
    if is_parent(old) == is_parent(new):
        return
    if not is_parent(new) and tree.children(name):
        raise _denied(f"quota has children, isParent is forbidden to modify as false, quotaName:{name}")
    if is_parent(new):
        homes = {name, *namespaces_of(old)}
        if pods_of(view, name) or any(True for home in homes for _ in view.list(k.POD, home)):
            raise _denied(f"quota has bound pods, isParent is forbidden to modify as true, quotaName: {name}")


def _check_tree_id(tree: _Tree, new: Doc, old: Doc | None) -> None:
    name, own = new["metadata"]["name"], labels_of(new).get(TREE, "")
    if old is not None and labels_of(old).get(TREE, "") != own:
        raise _denied(f"{name} tree id changed [{labels_of(old).get(TREE, '')}] vs [{own}]")
    parent = tree.quotas.get(_parent(new))
    related = [("parent", parent)] if parent is not None and _parent(new) != ROOT else []
    for role, other in [*related, *(("child", child) for child in tree.children(name))]:
        theirs = labels_of(other).get(TREE, "")
        if theirs != own:
            who = f"{role} {other['metadata']['name']}"
            raise _denied(f"{name} tree id is different from {who}, [{own}] vs [{theirs}]")


def _check_parent(tree: _Tree, new: Doc) -> None:
    name, parent = new["metadata"]["name"], _parent(new)
    if parent == ROOT:
        return
    if parent not in tree.quotas:
        raise _denied(f"{name} has parentName {parent} but not find parentInfo in quotaInfoMap")
    if not is_parent(tree.quotas[parent]):
        raise _denied(f"{name} has parentName {parent} but the parentQuotaInfo's IsParent is false")


def _check_keys(tree: _Tree, new: Doc) -> None:
    name, parent = new["metadata"]["name"], _parent(new)
    prefix = "failed to check sub and parent group quotaKey, err: checkSubAndParentGroupQuotaKey failed: "
    pairs = [(tree.quotas[parent], new)] if parent != ROOT else []
    pairs += [(new, child) for child in tree.children(name)]
    for above, below in pairs:
        upper, lower = above["metadata"]["name"], below["metadata"]["name"]
        if set(_amounts(above, "max")) != set(_amounts(below, "max")):
            # The original names the two the other way round when it looks upwards.
            first, second = (upper, lower) if below is new else (lower, upper)
            raise _denied(f"{prefix}{first}'s max keys are not the same with {second}'s")
        if not set(_amounts(below, "min")) <= set(_amounts(above, "min")):
            raise _denied(f"{prefix}{lower}'s min keys are not all included in {upper}'s")


def _check_minima(tree: _Tree, new: Doc) -> None:
    labels = labels_of(new)
    if labels.get(PREFIX + "allow-force-update") == "true" or labels.get(PREFIX + "is-root") == "true":
        return
    name, parent = new["metadata"]["name"], _parent(new)
    if parent != ROOT and not _covers(tree.quotas[parent], [*tree.children(parent), new]):
        raise _denied(f"checkMinQuotaSum all brothers' MinQuota > parent MinQuota, parent: {parent}")
    if not _covers(new, tree.children(name)):
        raise _denied(f"checkMinQuotaSum all children's MinQuota > current MinQuota, current: {name}")


def _covers(parent: Doc, children: Iterable[Doc]) -> bool:
    total: dict[str, int] = {}
    for child in children:
        for key, value in _amounts(child, "min").items():
            total[key] = total.get(key, 0) + nanos(value)
    least = _amounts(parent, "min")
    return all(amount <= nanos(least.get(key, "0")) for key, amount in total.items())


# ---- going ----


def pods_of(view: DocView, name: str) -> list[str]:
    """The pods that name a quota."""
    return [pod["metadata"]["name"] for pod in view.list(k.POD) if labels_of(pod).get(NAME_LABEL) == name]


def admit_deletion(view: DocView, name: str) -> None:
    if name in BUILT_IN:
        raise _denied(f"can not delete quotaGroup :{name}")
    children = _Tree(all_quotas(view)).children(name)
    if children:
        raise _denied(f"delete quota failed, quota {name} has {len(children)} child quotas")
    pods = pods_of(view, name)
    if pods:
        shown = ", ".join([*pods[:2], *(["..."] if len(pods) > 2 else [])])
        raise _denied(f"delete quota failed, quota {name} has {len(pods)} child pods: {shown}")
