"""The table of what fairlead reads and writes on a cluster: one Grant per verb and resource.

What is read comes from the watches of the controllers themselves. What is written stands here, or in the tables of
families (`Family.grants`), beside what does not work without it; a test against a real API server compares the rows
with the audit log, so a row too many fails it as a row too few does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from fairlead.core.family import families, resolve
from fairlead.core.state.object_index import MODES

if TYPE_CHECKING:
    from fairlead.core.model.flow import Watch
    from fairlead.core.model.kinds import Kind


class Grant(NamedTuple):
    """One verb on one resource. `group` is empty for the core group; `resource` may name a subresource
    (`pods/binding`). `otherwise` says what does not work without it."""

    group: str
    resource: str
    verb: str
    otherwise: str = ""

    @property
    def shown(self) -> str:
        """`create pods/binding`, `patch resourceclaims/status.resource.k8s.io`."""
        return f"{self.verb} {self.resource}" + (f".{self.group}" if self.group else "")

    @property
    def right(self) -> Grant:
        """The grant without its explanation: rights compare by this."""
        return self._replace(otherwise="")


def table(rows: Mapping[str, str]) -> tuple[Grant, ...]:
    """The grants that a mapping stands for. Keys are `GROUP RESOURCE VERBS`, `-` for the core group; values are what
    does not work without."""
    found = []
    for key, otherwise in rows.items():
        group, resource, verbs = key.split(maxsplit=2)
        found += [Grant("" if group == "-" else group, resource, verb, otherwise) for verb in verbs.split()]
    return tuple(found)


PLACING = table({
    "- pods/binding create": "no pod can be bound",
    "- pods/status patch": "pods do not say why they wait, and nobody is nominated to a node",
    "- pods delete": "nobody can be preempted",
    "events.k8s.io events create patch": "there are no events about decisions",
    "- persistentvolumes patch": "pods with volumes that wait for their first consumer cannot be bound",
    "- persistentvolumeclaims patch": "pods with volumes that wait for their first consumer cannot be bound",
    "resource.k8s.io resourceclaims patch": "pods with resource claims cannot be bound",
    "resource.k8s.io resourceclaims/status patch": "pods with resource claims cannot be bound",
    "resource.k8s.io resourceclaims/binding patch": "servers since 1.36 let nobody else allocate devices to claims",
})  # fmt: skip
"""What every scheduler writes."""

KUBE = table({
    "resource.k8s.io resourceclaims create delete": "extended resources that devices stand for cannot be had",
    "scheduling.k8s.io podgroups/status patch": "groups do not say why they wait",
})  # fmt: skip
"""What only kube profiles write."""

LEASE = table({"coordination.k8s.io leases get create update": "this process never leads"})
"""In the namespace of the lease."""
PORT = table({
    "authentication.k8s.io tokenreviews create": "nobody can authenticate at the port",
    "authorization.k8s.io subjectaccessreviews create": "nobody is let in at the port",
})  # fmt: skip
EVICTIONS = table({"- configmaps get create patch": "evictions are forgotten at a restart"})
REPLACING = table({"- pods create": "pods without a controller that a kubelet refused are not made again"})

PLUGINS = "plugins"
"""Among the tasks of a family: what a scheduler with plugins of the family writes besides."""


def of_task(family: str, task: str) -> tuple[Grant, ...]:
    """What a task of a family writes. Its plugins and its controllers need not be in its table."""
    (record,) = (one for one in families() if one.name == family)
    rows: Mapping[str, tuple[Grant, ...]] = resolve(record.grants) if record.grants else {}
    return rows.get(task, ()) if task == PLUGINS or task in record.controllers else rows[task]


def of_controller(name: str) -> tuple[Grant, ...]:
    """What a controller of a family writes."""
    (family,) = (family.name for family in families() if name in family.controllers)
    return of_task(family, name)


_EFFECTS = {
    "": "this process waits until it may",
    MODES: "profiles with a scheduling mode of their own wait until it may",
}
"""What follows when a kind may not be read, by the part of the process that reads it."""


def of_watches(watches: Iterable[Watch]) -> list[Grant]:
    """The right to list and to watch what controllers follow."""
    found = []
    for watch in watches:
        effect = _EFFECTS[watch.part] if not watch.optional else "it counts as empty"
        found += [_of_kind(watch.kind, verb, effect) for verb in ("list", "watch")]
    return found


def of_kinds(kinds: Iterable[Kind], verbs: Sequence[str]) -> list[Grant]:
    return [_of_kind(kind, verb) for kind in kinds for verb in verbs]


def _of_kind(kind: Kind, verb: str, otherwise: str = "") -> Grant:
    return Grant(kind.group, kind.plural, verb, otherwise)


def distinct(grants: Iterable[Grant]) -> tuple[Grant, ...]:
    """Each right once, sorted; of two explanations the first counts."""
    found: dict[Grant, Grant] = {}
    for grant in grants:
        found.setdefault(grant.right, grant)
    return tuple(sorted(found.values()))
