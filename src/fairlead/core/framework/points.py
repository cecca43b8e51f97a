"""How the answers of several plugins at one extension point are combined: one short function per point.

The rules are kube-scheduler's, to the letter: which answer ends the asking, which one is kept while others are asked,
whose name is recorded. Filter and Score are combined in core/framework/evaluate.py, because they answer in columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from fairlead.core.framework.calls import asked
from fairlead.core.framework.plugin import Rescued, Wait
from fairlead.core.model.reasons import Code, Status, failed, unresolvable, unschedulable
from fairlead.core.model.records import record

if TYPE_CHECKING:
    from fairlead.core.framework.cycle import Cycle
    from fairlead.core.framework.plugin import Plugin
    from fairlead.core.model.pod import Pod
    from fairlead.core.state.cluster import Cluster

ASKED_TO_WAIT = "one or more plugins asked to wait and no plugin rejected pod"
MAX_WAIT = 15 * 60.0
"""No Permit plugin keeps a pod waiting longer than a quarter of an hour."""

Prepared = Status | frozenset[str] | None
"""What a plugin answers at PreFilter: see `Plugin.prepare`."""


@record(frozen=True, slots=True)
class Preparation:
    """The result of PreFilter: a status that ends the search, or the names of the only nodes in question (None: all)
    and the plugins that narrowed them."""

    status: Status | None = None
    names: frozenset[str] | None = None
    narrowed_by: tuple[str, ...] = ()
    rejectors: frozenset[str] = frozenset()


ALL_NODES = Preparation()
_SKIP = Code.SKIP
"""Asked for too often to be looked up on the Enum."""


def merge_prepared(
    plugins: Sequence[Plugin],
    answer: Callable[[Plugin], Prepared],
    skipped: set[str],
) -> Preparation:
    """PreFilter. Unresolvable ends it; Unschedulable is kept (the last one wins) while the others are asked; node sets
    are intersected, and an empty intersection is a refusal by all plugins that gave one. `skipped` collects the plugins
    that step aside."""
    refusal: Status | None = None
    names: frozenset[str] | None = None
    narrowed_by: list[str] = []
    for plugin in plugins:
        said = answer(plugin)
        if said is None:
            continue
        if isinstance(said, frozenset):
            narrowed_by.append(plugin.name)
            names = said if names is None else names & said
            if not names:
                return _nothing_left(narrowed_by)
            continue
        code = said.code
        if code is _SKIP:
            skipped.add(plugin.name)
        elif code is Code.UNRESOLVABLE:
            return Preparation(status=said.by(plugin.name), rejectors=frozenset({plugin.name}))
        elif code is Code.UNSCHEDULABLE:
            refusal = said.by(plugin.name)
        elif not said.ok:
            return Preparation(status=failed(f'running PreFilter plugin "{plugin.name}": {said.message}'))
    if refusal is not None:
        return Preparation(status=refusal, rejectors=frozenset({refusal.plugin}))
    return ALL_NODES if names is None else Preparation(names=names, narrowed_by=tuple(narrowed_by))


def unless_skipped(plugin: Plugin, said: Prepared, skipped: set[str]) -> Prepared:
    """A plugin's answer at PreFilter or PreScore. One that steps aside (Skip) is entered in `skipped` and answers
    nothing."""
    if isinstance(said, Status) and said.code is _SKIP:
        skipped.add(plugin.name)
        return None
    return said


def prescore_error(plugin: Plugin, said: Prepared, skipped: set[str]) -> str | None:
    """PreScore. Any answer but success and Skip is an error, in these words; `skipped` collects the plugins that step
    aside."""
    if not isinstance(said, Status) or said.ok:
        return None
    if said.code is _SKIP:
        skipped.add(plugin.name)
        return None
    return f'running PreScore plugin "{plugin.name}": {said.message}'


def _nothing_left(narrowed_by: list[str]) -> Preparation:
    if len(narrowed_by) == 1:
        text = f"node(s) didn't satisfy plugin {narrowed_by[0]}"
    else:
        text = f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(narrowed_by))}] simultaneously"
    return Preparation(status=unresolvable(text), rejectors=frozenset(narrowed_by))


def merge_rescues(answers: Iterable[tuple[str, Rescued]]) -> Rescued:
    """PostFilter. The first success or final refusal is the answer, an error ends it, the reasons of other refusals add
    up; the last nomination named counts."""
    reasons: list[str] = []
    first = ""
    nominated: str | None = None
    for name, said in answers:
        code = said.status.code
        if code in (Code.SUCCESS, Code.UNRESOLVABLE):
            return Rescued(said.status.by(name), said.nominated, said.victims, said.alternatives)
        if not code.rejected:
            return Rescued(Status(Code.ERROR, said.status.reasons, name))
        reasons += said.status.reasons
        first = first or name
        nominated = said.nominated if said.nominated is not None else nominated
    return Rescued(Status(Code.UNSCHEDULABLE, tuple(reasons), first), nominated)


def merge_reserved(cycle: Cycle, row: int) -> Status | None:
    """Reserve. The first failure ends it: a refusal keeps its code and its plugin, anything else is an error."""
    for plugin in cycle.profile.at("reserve"):
        if plugin.idle_if_skipped and plugin.name in cycle.no_filter:
            continue
        said: Status | None = asked(plugin, "reserve", cycle, row)
        if said is None or said.ok:
            continue
        if said.code.rejected:
            return said.by(plugin.name)
        return failed(f'running Reserve plugin "{plugin.name}": {said.message}')
    return None


@record(frozen=True, slots=True)
class Permission:
    """The result of Permit: a refusal or an error, or the plugins that the pod waits for with their time limits."""

    status: Status | None = None
    waits: tuple[tuple[str, float], ...] = ()
    message: str = ""
    """Why it waits, in the words of the last plugin that asked for it."""


PERMITTED = Permission()


def merge_permits(cycle: Cycle, row: int) -> Permission:
    """Permit. The first refusal ends it; waits are collected, none longer than MAX_WAIT."""
    waits: list[tuple[str, float]] = []
    message = ""
    for plugin in cycle.profile.at("permit"):
        said: Status | Wait | None = asked(plugin, "permit", cycle, row)
        if said is None:
            continue
        if isinstance(said, Wait):
            waits.append((plugin.name, min(said.timeout, MAX_WAIT)))
            message = f"{said.reason}, {ASKED_TO_WAIT}" if said.reason else ASKED_TO_WAIT
        elif said.code.rejected:
            return Permission(status=said.by(plugin.name))
        elif not said.ok:
            return Permission(status=failed(f'running Permit plugin "{plugin.name}": {said.message}'))
    return Permission(waits=tuple(waits), message=message) if waits else PERMITTED


def merge_admission(plugins: Sequence[Plugin], pod: Pod, cluster: Cluster) -> Status | None:
    """PreEnqueue. The first plugin that does not admit the pod gates it; one that raises does not admit it."""
    for plugin in plugins:
        try:
            said = plugin.admit(pod, cluster)
        except Exception as error:
            said = failed(f"{type(error).__name__}: {error}")
        if said is not None and not said.ok:
            return said.by(plugin.name)
    return None


def waited_too_long(plugin: str, seconds: str) -> Status:
    return unschedulable(f"rejected due to timeout after waiting {seconds} at plugin {plugin}").by(plugin)
