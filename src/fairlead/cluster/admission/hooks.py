"""What admission does for single kinds besides their defaults and rules: one KindHooks for each.

    rewrite       create of a pod: before the defaults
    keep          update: fields that an update which does not name them takes over from the old object
    mutate        after the defaults, before validation; `old` is None for a create
    seen          the document as its rules are to see it
    check         rules of a custom resource that its schema does not state; problems are reported with the schema's
    admit         after validation: rules that read other objects; raises what speaks against the object
    admit_status  before the rules of a status; raises what speaks against it
    check_status  the rules of a status
    release       before a delete; raises what speaks against it
    warn          warnings for the sender of a document, though it is accepted

Hooks return new documents and leave their arguments as they are. New pods are admitted by pod_admission.py, which
calls their `rewrite` and `admit`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from fairlead.cluster.admission import builtin, groups
from fairlead.cluster.admission.limits import check_claim_limits
from fairlead.cluster.admission.plain_rules import check_namespace_status
from fairlead.cluster.admission.service_addresses import keep_addresses, with_addresses
from fairlead.cluster.admission.workload_defaults import mark_daemon_set, own_job
from fairlead.cluster.admission.workloads import check_workload_status
from fairlead.core.family import brought
from fairlead.core.model import kinds as k

if TYPE_CHECKING:
    from fairlead.cluster.admission.problems import ValidationProblems
    from fairlead.core.model.flow import Doc, DocView
    from fairlead.core.model.kinds import Kind

Mutate = Callable[["DocView", "Doc", "Doc | None"], "Doc"]
Admit = Callable[["DocView", "Kind", "Doc", "Doc | None"], None]
"""Gets the kind as it was spoken, whose version may be another than the stored one."""
_REFUSING = frozenset({"check", "admit", "admit_status", "check_status", "release"})


@dataclass(frozen=True, slots=True)
class KindHooks:
    """A hook that is None does nothing."""

    rewrite: Callable[[DocView, Doc], Doc] | None = None
    keep: Callable[[Doc, Doc], Doc] | None = None
    mutate: Mutate | None = None
    seen: Callable[[Doc], Doc] | None = None
    check: Callable[[ValidationProblems, Doc, Doc | None], None] | None = None
    admit: Admit | None = None
    admit_status: Callable[[DocView, Doc, Doc], None] | None = None
    check_status: Callable[[ValidationProblems, Doc], None] | None = None
    release: Callable[[DocView, str], None] | None = None
    warn: Callable[[Doc], Iterable[str]] | None = None


def kind_hooks(settings: Sequence[object] = ()) -> Mapping[Kind, KindHooks]:
    """A new table of the built-in hooks and of those that families make from their settings.

    A family's function may keep what it knows of objects between calls, so that each server has a table of its own."""
    table = dict(_BUILT_IN)
    for make in brought("hooks"):
        for kind, hooks in make(settings).items():
            table[kind] = _joined(kind, table[kind], hooks) if kind in table else hooks
    return table


def _joined(kind: Kind, first: KindHooks, second: KindHooks) -> KindHooks:
    """The hooks that two sources bring for one kind. Those that may refuse run in turn. Those that make documents would
    depend on their order, so that only one source may bring them."""
    joined: dict[str, Any] = {}
    for hook in fields(KindHooks):
        given = [one for one in (getattr(first, hook.name), getattr(second, hook.name)) if one is not None]
        if len(given) == 2:
            if hook.name not in _REFUSING:
                raise ValueError(f"two families bring the hook {hook.name} for {kind.resource}")
            given = [_in_turn(*given)]
        joined[hook.name] = given[0] if given else None
    return KindHooks(**joined)


def _in_turn(first: Callable[..., None], second: Callable[..., None]) -> Callable[..., None]:
    def both(*args: object) -> None:
        first(*args)
        second(*args)

    return both


def when_created(mutate: Callable[[DocView, Doc], Doc]) -> Mutate:
    """A `mutate` that leaves updates as they are."""
    return lambda view, new, old: mutate(view, new) if old is None else new


def _admit_claim(view: DocView, spoken: Kind, new: Doc, old: Doc | None) -> None:
    if old is None:
        check_claim_limits(view, new)


def _mutate_group(view: DocView, new: Doc, old: Doc | None) -> Doc:
    prepared = groups.without_what_is_off(new)
    return groups.with_priority(view, prepared) if old is None else prepared


def _admit_group(view: DocView, spoken: Kind, new: Doc, old: Doc | None) -> None:
    if old is None and spoken is k.POD_GROUP:
        groups.check_reference(view, new)


def _check_group_status(problems: ValidationProblems, doc: Doc) -> None:
    groups.check_conditions(problems, (doc.get("status") or {}).get("conditions") or ())


_COUNTS = KindHooks(check_status=check_workload_status)

_BUILT_IN: Mapping[Kind, KindHooks] = {
    k.DEPLOYMENT: _COUNTS,
    k.REPLICA_SET: _COUNTS,
    k.REPLICATION_CONTROLLER: _COUNTS,
    k.NAMESPACE: KindHooks(check_status=check_namespace_status),
    k.JOB: KindHooks(mutate=when_created(lambda view, new: own_job(new))),
    k.DAEMON_SET: KindHooks(mutate=lambda view, new, old: mark_daemon_set(new, old)),
    k.SERVICE: KindHooks(keep=keep_addresses, mutate=lambda view, new, old: with_addresses(new, view)),
    k.PERSISTENT_VOLUME_CLAIM: KindHooks(mutate=when_created(builtin.with_default_class), admit=_admit_claim),
    k.POD_GROUP_BETA: KindHooks(
        mutate=_mutate_group,
        admit=_admit_group,
        check_status=_check_group_status,
        warn=groups.warnings_of_what_is_off,
    ),
    k.WORKLOAD_BETA: KindHooks(
        mutate=lambda view, new, old: groups.without_what_is_off(new), warn=groups.warnings_of_what_is_off
    ),
}
NO_HOOKS = KindHooks()
