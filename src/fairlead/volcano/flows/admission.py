"""What Volcano's admission webhooks refuse of PodGroups, JobFlows, CronJobs and HyperNodes, in their words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from fairlead.cel.patterns import pattern_fault
from fairlead.cluster.admission.names import qualified_name
from fairlead.cluster.admission.problems import worded
from fairlead.cluster.admission.webhook_denial import Denied
from fairlead.cluster.controllers.workloads.cron_schedule import ScheduleError, is_zone_part, parse_schedule, zone_of
from fairlead.volcano.jobs.admission import TWO_TIERS
from fairlead.volcano.kinds import VC_QUEUE

if TYPE_CHECKING:
    from fairlead.cluster.admission.problems import ValidationProblems
    from fairlead.core.model.flow import Doc, DocView

_LONGEST_CRON_NAME, _LONGEST_JOB_NAME = 52, 63


# ---- PodGroups ----


def admit_queue_of_group(view: DocView, group: Doc) -> None:
    """Raises Denied if a PodGroup's queue is not there or not open, or if the group itself may not be made."""
    spec = group.get("spec") or {}
    found = [text for text in (_queue_complaint(view, spec.get("queue") or ""), _tier_complaints(spec)) if text]
    if found:
        raise Denied("validatepodgroup.volcano.sh", "; ".join(found))


def admit_group(group: Doc) -> None:
    """Raises Denied if a PodGroup may not be made, whatever its queue."""
    if found := _tier_complaints(group.get("spec") or {}):
        raise Denied("validatepodgroup.volcano.sh", found)


def _queue_complaint(view: DocView, name: str) -> str:
    if not name:
        return ""
    queue = view.get(VC_QUEUE, "", name)
    if queue is None:
        return f'unable to find queue: queue.scheduling.volcano.sh "{name}" not found'
    state = (queue.get("status") or {}).get("state") or ""
    if state == "Open":
        return ""
    return f"can only submit PodGroup to queue with state `Open`, queue `{name}` status is `{state}`."


def _tier_complaints(spec: Doc) -> str:
    found = []
    if _names_two_tiers(spec.get("networkTopology")):
        found.append(f"{TWO_TIERS}.")
    for policy in spec.get("subGroupPolicy") or ():
        if _names_two_tiers(policy.get("networkTopology")):
            found.append(f"in subGroupPolicy '{policy.get('name') or ''}': {TWO_TIERS}.")
            break
    return " ".join(found)


def _names_two_tiers(topology: Doc | None) -> bool:
    topology = topology or {}
    return topology.get("highestTierAllowed") is not None and bool(topology.get("highestTierName"))


# ---- JobFlows ----


def admit_flow(flow: Doc) -> None:
    """Raises Denied if the flows wait for something that is not there, or for each other."""
    graph = {
        one["name"]: (one.get("dependsOn") or {}).get("targets") or []
        for one in (flow.get("spec") or {}).get("flows") or ()
    }
    for targets in graph.values():
        for target in targets:
            if target not in graph:
                why = f"jobflow Flow is not DAG: vertex is not defined: {target}"
                raise Denied("validatejob.volcano.sh", why)
    if _has_cycle(graph):
        raise Denied("validatejob.volcano.sh", "jobflow Flow is not DAG")


def _has_cycle(graph: Mapping[str, Sequence[str]]) -> bool:
    """Whether some flows wait for each other: those that wait for none that is left are taken away, one by one. Every
    edge is looked at once, where following all ways would double with each layer of flows."""
    left = {name: len(targets) for name, targets in graph.items()}
    waiting: dict[str, list[str]] = {name: [] for name in graph}
    for name, targets in graph.items():
        for target in targets:
            waiting[target].append(name)
    free = [name for name, count in left.items() if not count]
    taken = 0
    while free:
        taken += 1
        for name in waiting[free.pop()]:
            left[name] -= 1
            if not left[name]:
                free.append(name)
    return taken < len(graph)


# ---- CronJobs ----


def admit_cron_job(cron: Doc) -> None:
    """Raises Denied if a CronJob has no usable schedule, zone or name."""
    spec = cron.get("spec") or {}
    found = [
        "".join(_schedule_complaints(spec.get("schedule") or "", spec.get("timeZone"))).strip(),
        _cron_name_complaint(cron["metadata"]["name"]),
    ]
    if any(found):
        raise Denied("validatecronjob.volcano.sh", "; ".join(filter(None, found)))


def _schedule_complaints(schedule: str, zone: str | None) -> Iterator[str]:
    if not schedule:
        yield " schedule is required, but got empty"
    elif "TZ" in schedule:
        yield " schedule should not contain TZ or CRON_TZ, TZ should only be set in the timeZone field"
    elif not _is_schedule(schedule):
        yield "schedule is not a valid cron expression"
    if zone is None:
        return
    if not zone:
        yield " timeZone must be nil or non-empty string, got empty string"
        return
    for part in zone.split("/"):
        if not is_zone_part(part):
            yield " unknown timeZone"
    if zone.lower() == "local":
        yield " timeZone can't be Local, and must be defined in https://www.iana.org/time-zones"
    elif not _is_zone(zone):
        yield " invalid timeZone"


def _is_schedule(text: str) -> bool:
    try:
        parse_schedule(text)
    except ScheduleError:
        return False
    return True


def _is_zone(name: str) -> bool:
    try:
        zone_of(name)
    except ScheduleError:
        return False
    return True


def _cron_name_complaint(name: str) -> str:
    if len(name) > _LONGEST_CRON_NAME:
        room = f"no more than {_LONGEST_CRON_NAME} characters to accommodate job name suffix"
        return f"cronJob name must be {room} (max {_LONGEST_JOB_NAME} total)"
    found = qualified_name(name)
    return f"invalid cronJob name {worded(name)}: {'; '.join(found)}" if found else ""


# ---- HyperNodes ----


def admit_hyper_node(node: Doc) -> None:
    """Raises Denied if a HyperNode has no members, or one that is chosen by a pattern that is none."""
    members = (node.get("spec") or {}).get("members") or []
    found = [] if members else ["[].spec.members: Invalid value: null: member must have at least one member"]
    for member in members:
        pattern = ((member.get("selector") or {}).get("regexMatch") or {}).get("pattern")
        if pattern and (why := pattern_fault(pattern)):
            where = f"[].spec.members.selector.regexMatch.pattern: Invalid value: {worded(pattern)}"
            found.append(f"{where}: member regexMatch pattern is invalid: {why}")
    if found:
        listed = found[0] if len(found) == 1 else f"[{', '.join(found)}]"
        raise Denied("validatehypernodes.volcano.sh", listed)


def check_selectors(problems: ValidationProblems, node: Doc, old: Doc | None) -> None:
    """The one CEL rule among Volcano's definitions: a member of a HyperNode is chosen in one way."""
    if old is not None and node.get("spec") == old.get("spec"):
        return
    for index, member in enumerate((node.get("spec") or {}).get("members") or ()):
        ways = [way for way in ("exactMatch", "regexMatch", "labelMatch") if way in (member.get("selector") or {})]
        if len(ways) > 1:
            text = "Invalid value: Only one of ExactMatch, RegexMatch, or LabelMatch can be specified"
            problems.add("FieldValueInvalid", f"spec.members[{index}].selector", text)
