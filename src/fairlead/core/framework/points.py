"""How the answers of several plugins at one extension point are combined: one short function per point.

The rules are kube-scheduler's, to the letter: which answer ends the calls, which one is kept while others are called,
whose name is recorded. Filter and Score are combined in core/framework/evaluate.py, because they answer in columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from fairlead.core.framework.calls import call_plugin
from fairlead.core.framework.plugin import PostFilterResult, Wait
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

PreFilterAnswer = Status | frozenset[str] | None
"""What a plugin answers at PreFilter: see `Plugin.pre_filter`."""


@record(frozen=True, slots=True)
class PreFilterResult:
    """The result of PreFilter: a status that ends the search, or the names of the only nodes in question (None: all)
    and the plugins that narrowed them."""

    status: Status | None = None
    names: frozenset[str] | None = None
    narrowed_by: tuple[str, ...] = ()
    rejectors: frozenset[str] = frozenset()


ALL_NODES = PreFilterResult()
_SKIP = Code.SKIP
"""A constant of the module: before Python 3.12 an attribute of an Enum is ten times slower."""


def merge_pre_filter(
    plugins: Sequence[Plugin],
    answer: Callable[[Plugin], PreFilterAnswer],
    skipped: set[str],
) -> PreFilterResult:
    """PreFilter. Unresolvable ends it; Unschedulable is kept (the last one wins) while the others are called; node sets
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
            return PreFilterResult(status=said.by(plugin.name), rejectors=frozenset({plugin.name}))
        elif code is Code.UNSCHEDULABLE:
            refusal = said.by(plugin.name)
        elif not said.ok:
            return PreFilterResult(status=failed(f'running PreFilter plugin "{plugin.name}": {said.message}'))
    if refusal is not None:
        return PreFilterResult(status=refusal, rejectors=frozenset({refusal.plugin}))
    return ALL_NODES if names is None else PreFilterResult(names=names, narrowed_by=tuple(narrowed_by))


def unless_skipped(plugin: Plugin, said: PreFilterAnswer, skipped: set[str]) -> PreFilterAnswer:
    """A plugin's answer at PreFilter or PreScore. One that steps aside (Skip) is entered in `skipped` and answers
    nothing."""
    if isinstance(said, Status) and said.code is _SKIP:
        skipped.add(plugin.name)
        return None
    return said


def prescore_error(plugin: Plugin, said: PreFilterAnswer, skipped: set[str]) -> str | None:
    """PreScore. Any answer but success and Skip is an error, in these words; `skipped` collects the plugins that step
    aside."""
    if not isinstance(said, Status) or said.ok:
        return None
    if said.code is _SKIP:
        skipped.add(plugin.name)
        return None
    return f'running PreScore plugin "{plugin.name}": {said.message}'


def _nothing_left(narrowed_by: list[str]) -> PreFilterResult:
    if len(narrowed_by) == 1:
        text = f"node(s) didn't satisfy plugin {narrowed_by[0]}"
    else:
        text = f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(narrowed_by))}] simultaneously"
    return PreFilterResult(status=unresolvable(text), rejectors=frozenset(narrowed_by))


def merge_post_filter(answers: Iterable[tuple[str, PostFilterResult]]) -> PostFilterResult:
    """PostFilter. The first success or final refusal is the answer, an error ends it, the reasons of other refusals add
    up; the last nomination named counts."""
    reasons: list[str] = []
    first = ""
    nominated: str | None = None
    for name, said in answers:
        code = said.status.code
        if code in (Code.SUCCESS, Code.UNRESOLVABLE):
            return PostFilterResult(said.status.by(name), said.nominated, said.victims, said.alternatives)
        if not code.rejected:
            return PostFilterResult(Status(Code.ERROR, said.status.reasons, name))
        reasons += said.status.reasons
        first = first or name
        nominated = said.nominated if said.nominated is not None else nominated
    return PostFilterResult(Status(Code.UNSCHEDULABLE, tuple(reasons), first), nominated)


def merge_reserve(cycle: Cycle, row: int) -> Status | None:
    """Reserve. The first failure ends it: a refusal keeps its code and its plugin, anything else is an error."""
    for plugin in cycle.profile.at("reserve"):
        if plugin.idle_if_skipped and plugin.name in cycle.no_filter:
            continue
        said: Status | None = call_plugin(plugin, "reserve", cycle, row)
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
    """Why it waits, in the words of the last plugin that requested it."""


PERMITTED = Permission()


def unreserve(cycle: Cycle, row: int) -> None:
    """Unreserve, in reverse order: every plugin is called, and what the first raised is raised after that. Otherwise
    one plugin's defect would have others hold for ever what they reserved."""
    raised: Exception | None = None
    for plugin in reversed(cycle.profile.at("reserve")):
        try:
            plugin.unreserve(cycle, row)
        except Exception as error:
            raised = raised or error
    if raised is not None:
        raise raised


def merge_permit(cycle: Cycle, row: int) -> Permission:
    """Permit. The first refusal ends it; waits are collected, none longer than MAX_WAIT."""
    waits: list[tuple[str, float]] = []
    message = ""
    for plugin in cycle.profile.at("permit"):
        said: Status | Wait | None = call_plugin(plugin, "permit", cycle, row)
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


def merge_pre_enqueue(plugins: Sequence[Plugin], pod: Pod, cluster: Cluster) -> Status | None:
    """PreEnqueue. The first plugin that does not admit the pod gates it; one that raises does not admit it."""
    for plugin in plugins:
        try:
            said = plugin.pre_enqueue(pod, cluster)
        except Exception as error:
            said = failed(f"{type(error).__name__}: {error}")
        if said is not None and not said.ok:
            return said.by(plugin.name)
    return None


def waited_too_long(plugin: str, seconds: str) -> Status:
    return unschedulable(f"rejected due to timeout after waiting {seconds} at plugin {plugin}").by(plugin)
