"""Admission: the way of an object from a request to what is stored.

    create:  strategy ─▶ defaults ─▶ mutation ─▶ validation ─▶ rules that read other objects
    update:  defaults ─▶ mutation ─▶ strategy ─▶ validation of the object, then of the step from the old one ─▶ rules …

Documents arrive decoded (cluster/store/schema.py). Nothing here looks at a clock or writes anything; other objects
(priority classes, runtime classes) are read through the DocView. What a single kind needs besides defaults and rules is
in its KindHooks (hooks.py); pods go through pod_admission.py.

The strategy of an update comes after the defaults, because it counts `generation` by comparing with the old object,
which has its defaults.

Invariant: what comes out is a new document; what went in is unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from fairlead.cluster.admission import groups, strategy
from fairlead.cluster.admission.custom import default_custom
from fairlead.cluster.admission.custom_rules import check_custom
from fairlead.cluster.admission.devices import DEVICE_DEFAULTS, DEVICE_RULES, DEVICE_STEPS, check_claim_status
from fairlead.cluster.admission.hooks import NO_HOOKS, KindHooks, kind_hooks
from fairlead.cluster.admission.metadata import check_metadata, check_metadata_update
from fairlead.cluster.admission.plain_defaults import PLAIN_DEFAULTS
from fairlead.cluster.admission.plain_rules import PLAIN_RULES, PLAIN_STEPS
from fairlead.cluster.admission.pod_admission import PodAdmission, default_updated_pod
from fairlead.cluster.admission.pod_updates import check_pod_update
from fairlead.cluster.admission.pods import check_pod_spec
from fairlead.cluster.admission.problems import ValidationProblems
from fairlead.cluster.admission.workload_defaults import WORKLOAD_DEFAULTS
from fairlead.cluster.admission.workloads import WORKLOAD_RULES, WORKLOAD_STEPS
from fairlead.cluster.custom.definitions import check_definition, check_definition_step, default_definition
from fairlead.cluster.custom.rules import check_defined
from fairlead.cluster.custom.structural import default_defined
from fairlead.cluster.store.conversion import convert
from fairlead.cluster.store.schema import is_custom, struct_of
from fairlead.core.model import kinds as k

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc, DocView
    from fairlead.core.model.kinds import Kind

_DEFAULTS = {
    **PLAIN_DEFAULTS, **WORKLOAD_DEFAULTS, **DEVICE_DEFAULTS, k.CUSTOM_RESOURCE_DEFINITION: default_definition,
}  # fmt: skip
_RULES = {**PLAIN_RULES, **WORKLOAD_RULES, **DEVICE_RULES, k.CUSTOM_RESOURCE_DEFINITION: check_definition}
_STEPS: dict[Kind, Callable[[ValidationProblems, Doc, Doc], None]] = {
    **PLAIN_STEPS,
    **WORKLOAD_STEPS,
    **DEVICE_STEPS,
    k.CUSTOM_RESOURCE_DEFINITION: check_definition_step,
    k.POD: lambda problems, new, old: check_pod_update(problems, new["spec"], old["spec"]),
}


class Admission:
    """Defaults and rules for every kind; kinds without any pass as they are."""

    def __init__(self, view: DocView, hooks: Mapping[Kind, KindHooks] | None = None) -> None:
        """`hooks` are by default those of `kind_hooks`, with the settings that families have by default."""
        self._view = view
        self._hooks = kind_hooks() if hooks is None else hooks
        self._pods = PodAdmission(view, self._hooks.get(k.POD, NO_HOOKS))

    def create(self, spoken: Kind, doc: Doc) -> Doc:
        """The object as it will be stored; `doc` is in the stored version already, whichever was spoken. Raises
        Invalid or Forbidden."""
        kind = spoken.storage
        if kind is k.POD:
            return self._pods.create(doc)
        hooks = self._hooks.get(kind, NO_HOOKS)
        prepared = default(kind, strategy.prepare_create(kind, doc))
        if hooks.mutate is not None:
            prepared = hooks.mutate(self._view, prepared, None)
        _check_new(spoken, prepared, hooks)
        if hooks.admit is not None:
            hooks.admit(self._view, spoken, prepared, None)
        return prepared

    def update(self, spoken: Kind, new: Doc, old: Doc, subresource: str = "") -> Doc:
        """The new state as it will be stored. Raises Invalid or Forbidden."""
        kind = spoken.storage
        match subresource:
            case "status":
                return self._update_status(kind, new, old)
            case "binding":
                return new
        hooks = self._hooks.get(kind, NO_HOOKS)
        prepared = new if hooks.keep is None else hooks.keep(new, old)
        prepared = default_updated_pod(prepared) if kind is k.POD else default(kind, prepared)
        if hooks.mutate is not None:
            prepared = hooks.mutate(self._view, prepared, old)
        prepared = strategy.prepare_update(kind, prepared, old)
        _check_update(spoken, prepared, old, hooks)
        if hooks.admit is not None:
            hooks.admit(self._view, spoken, prepared, old)
        return prepared

    def delete(self, kind: Kind, name: str) -> None:
        """Whether an object may go. Raises what speaks against it."""
        release = self._hooks.get(kind, NO_HOOKS).release
        if release is not None:
            release(self._view, name)

    def warnings(self, kind: Kind, doc: Doc) -> list[str]:
        """Warnings for the sender of a document, though it is accepted."""
        warn = self._hooks.get(kind.storage, NO_HOOKS).warn
        return [] if warn is None else list(warn(doc))

    def _update_status(self, kind: Kind, new: Doc, old: Doc) -> Doc:
        prepared = strategy.prepare_status(kind, new, old)
        if is_custom(kind):
            prepared = default(kind, prepared)
        hooks = self._hooks.get(kind, NO_HOOKS)
        if hooks.admit_status is not None:
            hooks.admit_status(self._view, prepared, old)
        problems = ValidationProblems()
        if prepared["metadata"] != old["metadata"]:
            check_metadata(problems, kind, prepared["metadata"])
        if hooks.check_status is not None:
            hooks.check_status(problems, prepared)
        elif kind is k.RESOURCE_CLAIM:
            check_claim_status(problems, old, prepared)
        elif kind is k.NODE or is_custom(kind):
            _check_object(problems, kind, prepared, old, hooks)
        problems.raise_if_any(kind, prepared["metadata"]["name"])
        return prepared


def default(kind: Kind, doc: Doc) -> Doc:
    """The document with its kind's defaults."""
    defaulter = _DEFAULTS.get(kind)
    if defaulter is not None:
        return defaulter(doc)
    if kind.definition is not None:
        return default_defined(kind, doc)
    if is_custom(kind) and (struct := struct_of(kind)) is not None:
        return default_custom(struct, doc)
    return doc


def _check_new(spoken: Kind, doc: Doc, hooks: KindHooks) -> None:
    """Raises Invalid for a new document that breaks its kind's rules."""
    problems = ValidationProblems()
    _check_object(problems, spoken, doc if hooks.seen is None else hooks.seen(doc), None, hooks)
    problems.raise_if_any(spoken.storage, doc["metadata"]["name"])


def _check_update(spoken: Kind, new: Doc, old: Doc, hooks: KindHooks) -> None:
    problems, step_problems, kind = ValidationProblems(), ValidationProblems(), spoken.storage
    new = new if hooks.seen is None else hooks.seen(new)
    _check_object(problems, spoken, new, old, hooks)
    check_metadata_update(problems, new["metadata"], old["metadata"])
    step = _STEPS.get(kind)
    if step is not None:
        step(step_problems, new, old)
    # A DaemonSet's original looks at the step first; the order shows in the message.
    first, second = (step_problems, problems) if kind is k.DAEMON_SET else (problems, step_problems)
    first.found += second.found
    first.raise_if_any(kind, new["metadata"]["name"])


def _check_object(problems: ValidationProblems, spoken: Kind, doc: Doc, old: Doc | None, hooks: KindHooks) -> None:
    kind = spoken.storage
    check_metadata(problems, kind, doc["metadata"])
    if kind is k.POD:
        check_pod_spec(problems, "spec", doc["spec"])
        return
    if kind in groups.KINDS:
        before = None if old is None else convert(old, kind, spoken)
        groups.check_group_spec(problems, spoken, convert(doc, kind, spoken), before)
        return
    rule = _RULES.get(kind)
    if rule is not None:
        rule(problems, doc)
    elif kind.definition is not None:
        check_defined(problems, kind, doc, old)
    elif is_custom(kind):
        check_custom(problems, kind, doc, old, hooks.check)
