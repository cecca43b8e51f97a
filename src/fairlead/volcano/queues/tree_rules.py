"""Where a Volcano queue stands among others: below its ancestors, beside its siblings, above its children.

Each rule returns what is wrong, in the words of Volcano's webhook, or nothing. A parent's guarantee and deserved hold
those of all its children together; what the parent does not name is none of it. A capability holds each child's by
itself, and where a queue has none the nearest ancestor's counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from fairlead.cluster.store.quantities import amount
from fairlead.core.model.documents import read_units
from fairlead.core.model.quantity import format_quantity
from fairlead.volcano.kinds import VC_QUEUE
from fairlead.volcano.records.amounts import UNLIMITED, Amounts

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc, DocView

_ROOT = "root"
_DEEPEST = 5


def children_of(view: DocView, name: str) -> list[Doc]:
    return [queue for queue in view.list(VC_QUEUE) if queue.get("spec", {}).get("parent") == name]


def admit_place(view: DocView, queue: Doc) -> str:
    """Whether a queue can hang where it wants to."""
    name, parent = queue["metadata"]["name"], _parent(queue)
    if parent in ("", _ROOT):
        return ""
    if parent == name:
        return f"queue {name} cannot use itself as parent"
    complaint = _depth_complaint(view, queue)
    if complaint:
        return complaint
    above = view.get(VC_QUEUE, "", parent)
    if above is None:
        return f"failed to get parent queue of queue {name}: {_missing(parent)}"
    pods = int(amount(str((above.get("status", {}).get("allocated") or {}).get("pods") or 0)))
    if pods and not children_of(view, parent):
        return f"queue {parent} cannot be the parent queue of queue {name} because it has allocated Pods: {pods}"
    return ""


def _depth_complaint(view: DocView, queue: Doc) -> str:
    name, parent, depth = queue["metadata"]["name"], _parent(queue), 1
    while parent not in ("", _ROOT):
        depth += 1
        if depth > _DEEPEST:
            return f"queue {name} exceeds the maximum allowed depth of {_DEEPEST}"
        above = view.get(VC_QUEUE, "", parent)
        if above is None:
            return f"failed to get parent queue {parent} of queue {name}: {_missing(parent)}"
        parent = _parent(above)
    return ""


def admit_children(view: DocView, queue: Doc) -> str:
    """Whether a queue fits into its parent, and its children into it."""
    name, parent = queue["metadata"]["name"], _parent(queue)
    if parent not in ("", _ROOT):
        above = view.get(VC_QUEUE, "", parent)
        if above is None:
            return f"parent queue {parent} not found: {_missing(parent)}"
        complaint = _above_ancestors(view, queue)
        if complaint:
            return complaint
        others = [sibling for sibling in children_of(view, parent) if sibling["metadata"]["name"] != name]
        complaint = _sum_complaint(above, [*others, queue], f"parent queue {parent}")
        if complaint:
            return complaint
    children = children_of(view, name)
    if not children:
        return ""
    return _below_descendants(view, queue, children) or _sum_complaint(queue, children, f"queue {name}")


# ---- capability ----


def _above_ancestors(view: DocView, queue: Doc) -> str:
    own = _capability(queue)
    for resource in own.names():
        most = next((limit for limit in _limits_above(view, queue, resource) if limit > 0), None)
        if most is not None and own.get(resource) > most:
            said, limit = _text(resource, own.get(resource)), _text(resource, most)
            name = queue["metadata"]["name"]
            return f"queue {name} capability[{resource}]={said} exceeds its ancestor's capability={limit}"
    return ""


def _limits_above(view: DocView, queue: Doc, resource: str) -> Iterator[float]:
    parent, seen = _parent(queue), {queue["metadata"]["name"]}
    while parent not in ("", _ROOT) and parent not in seen:
        seen.add(parent)
        above = view.get(VC_QUEUE, "", parent)
        if above is None:
            return
        yield _capability(above).get(resource)
        parent = _parent(above)


def _below_descendants(view: DocView, queue: Doc, children: Iterable[Doc]) -> str:
    own = _capability(queue)
    for resource in own.names():
        most = max((_largest_below(view, child, resource) for child in children), default=0.0)
        if own.get(resource) < most:
            said, limit = _text(resource, own.get(resource)), _text(resource, most)
            name = queue["metadata"]["name"]
            return f"queue {name} capability[{resource}]={said} is smaller than its descendants' max capability={limit}"
    return ""


def _largest_below(view: DocView, queue: Doc, resource: str, depth: int = 0) -> float:
    """A queue's own limit or, where it has none, the largest below it. Circles end where no tree can reach."""
    own = _capability(queue).get(resource)
    if own > 0 or depth > _DEEPEST:
        return own
    below = children_of(view, queue["metadata"]["name"])
    return max((_largest_below(view, child, resource, depth + 1) for child in below), default=0.0)


# ---- guarantee and deserved ----


def _sum_complaint(parent: Doc, children: Iterable[Doc], who: str) -> str:
    guarantee, deserved = Amounts(), Amounts()
    for child in children:
        for what, total, limit, own in (
            ("guarantee", guarantee, _guarantee(parent), _guarantee(child)),
            ("deserved", deserved, _deserved(parent), _deserved(child)),
        ):
            total.add(own)
            if limit.less_partly(total):
                sums = f"({_vector(total)}) exceeds parent's {what} limit ({_vector(limit)})"
                return f"{who} validation failed: sum of children's {what} {sums}"
    return ""


# ---- reading and wording ----


def _parent(queue: Doc) -> str:
    return str(queue.get("spec", {}).get("parent") or "")


def _capability(queue: Doc) -> Amounts:
    return Amounts.of(read_units(queue.get("spec", {}).get("capability"), "capability"))


def _deserved(queue: Doc) -> Amounts:
    return Amounts.of(read_units(queue.get("spec", {}).get("deserved"), "deserved"))


def _guarantee(queue: Doc) -> Amounts:
    return Amounts.of(read_units((queue.get("spec", {}).get("guarantee") or {}).get("resource"), "guarantee"))


def _missing(name: str) -> str:
    return f'queue.scheduling.volcano.sh "{name}" not found'


def _text(resource: str, value: float) -> str:
    return format_quantity(int(value), resource) if resource in ("cpu", "memory") else f"{value:.2f}"


def _vector(amounts: Amounts) -> str:
    listed = [("cpu", amounts.cpu), ("memory", amounts.memory), *sorted(amounts.scalars.items())]
    return ", ".join(f"{name} {'maxFloat' if value >= UNLIMITED else f'{value:.2f}'}" for name, value in listed)
