"""What Volcano's admission webhooks refuse of PodGroups, JobFlows, CronJobs and HyperNodes, in their words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from fairlead.cluster.admission.names import qualified_name
from fairlead.cluster.admission.problems import worded
from fairlead.cluster.admission.webhook_denial import Denied
from fairlead.cluster.controllers.workloads.cron_schedule import ScheduleError, parse_schedule
from fairlead.core.model import kinds as k
from fairlead.volcano.jobs.admission import TWO_TIERS

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc, DocView

_ZONE_PART = re.compile(r"^[A-Za-z.\-_0-9+]{1,14}$")
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
    queue = view.get(k.VC_QUEUE, "", name)
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
    }  # fmt: skip
    for targets in graph.values():
        for target in targets:
            if target not in graph:
                why = f"jobflow Flow is not DAG: vertex is not defined: {target}"
                raise Denied("validatejob.volcano.sh", why)
    if any(_comes_back(name, graph, ()) for name in graph):
        raise Denied("validatejob.volcano.sh", "jobflow Flow is not DAG")


def _comes_back(name: str, graph: dict[str, list[str]], way: tuple[str, ...]) -> bool:
    return name in way or any(_comes_back(target, graph, (*way, name)) for target in graph[name])


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
        if part in (".", "..") or part.startswith("-") or not _ZONE_PART.match(part):
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
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):
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
        if pattern and (why := _pattern_fault(pattern)):
            where = f"[].spec.members.selector.regexMatch.pattern: Invalid value: {worded(pattern)}"
            found.append(f"{where}: member regexMatch pattern is invalid: {why}")
    if found:
        listed = found[0] if len(found) == 1 else f"[{', '.join(found)}]"
        raise Denied("validatehypernodes.volcano.sh", listed)


def _pattern_fault(pattern: str) -> str:
    """What is wrong with a regular expression, as far as it can be said in Go's words."""
    try:
        re.compile(pattern)
    except re.error as error:
        return f"error parsing regexp: {_GO_FAULTS.get(error.msg, error.msg)}: `{_blamed(pattern, error)}`"
    return ""


_GO_FAULTS = {
    "unterminated character set": "missing closing ]",
    "missing ), unterminated subpattern": "missing closing )",
    "unbalanced parenthesis": "unexpected )",
    "nothing to repeat": "missing argument to repetition operator",
    "multiple repeat": "invalid nested repetition operator",
}


def _blamed(pattern: str, error: re.error) -> str:
    at = error.pos or 0
    if error.msg == "unterminated character set":
        return pattern[at:]
    if error.msg in ("nothing to repeat", "multiple repeat"):
        return pattern[at : at + 1]
    return pattern
