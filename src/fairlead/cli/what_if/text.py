"""Answers as text for people. Every line says something that the JSON form says too.

The lines of changes are what somebody does afterwards: a command as it is to be typed, or what to change in the file
that is then applied. A test reads them and does it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

Answer = Mapping[str, Any]
_NAMED = 8
_PREEMPTION = (" no new claims to deallocate,", " preemption:")
"""Where the part of kube-scheduler's sentence begins that says why nobody was evicted."""


def shortened(message: str, verbose: bool = False) -> str:
    """kube-scheduler's sentence without its second half, which is about preemption; whole if one asks for it."""
    if verbose:
        return message
    ends = [at for words in _PREEMPTION if (at := message.find(words)) > 0]
    return message[: min(ends)] if ends else message


def show_simulation(console: Console, answer: Answer, *, verbose: bool = False) -> None:
    pods, placed = answer["pods"], answer["placed"]
    running = sum(bool(pod.get("running")) for pod in pods)
    if answer.get("exists"):
        console.print(f"{_listed(answer['exists'])}: there already, {running} of {len(pods)} pods run")
    console.print(f"{_verdict(answer)}: {placed} of {len(pods)} pods would have a node (state of {answer['at']})")
    nodes = Counter(pod["node"] for pod in pods if "node" in pod)
    for pod in [pod for pod in pods if "node" in pod][:_NAMED]:
        there = " (runs there)" if pod.get("running") else ""
        console.print(f"  {pod['namespace']}/{pod['name']} → {pod['node']}{there}")
    if placed > _NAMED:
        console.print(f"  and {placed - _NAMED} more; {len(nodes)} nodes in all")
    for message, count in Counter(pod["message"] for pod in pods if "message" in pod).most_common(_NAMED):
        console.print(f"  {count} would wait: {shortened(message, verbose)}")
    _show_victims(console, answer, verbose)
    for queue in answer.get("queues", ()):
        console.print(f"queue {queue['name']} holds {_amounts(queue['before'])}; then {_amounts(queue['after'])}")
    for quota in answer.get("quotas", ()):
        console.print(f"quota {quota['name']} uses {_used(quota['before'])}; then {_used(quota['after'])}")
    if answer.get("delayed"):
        console.print(f"would no longer start now: {_listed(answer['delayed'])}")
    show_changes(console, answer)


def _verdict(answer: Answer) -> str:
    return {"Runs": "runs now", "RunsAfterEvictions": "runs, after evictions"}.get(answer["verdict"], "would wait")


def _listed(names: Iterable[str]) -> str:
    named = list(names)
    more = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
    return ", ".join(named[:_NAMED]) + more


def _plural(count: int, what: str) -> str:
    return f"{count} {what}{'s'[: count != 1]}"


def _show_victims(console: Console, answer: Answer, verbose: bool) -> None:
    victims = answer.get("victims", ())
    if victims:
        console.print(f"{_plural(len(victims), 'pod')} would be evicted:")
    for one in victims[:_NAMED]:
        following = one.get("next", {})
        message = shortened(following.get("message", ""), verbose)
        then = f"would go to {following['node']}" if "node" in following else message
        words = f"  {one['namespace']}/{one['name']} on {one['node']}: {one['rule']}; {one['lostSeconds']:g} s of work"
        console.print(f"{words} lost; {then}")
    if len(victims) > _NAMED:
        console.print(f"  and {len(victims) - _NAMED} more")
    spared = answer.get("spared", ())
    for one in spared[:_NAMED]:
        console.print(f"  spared: {one['name']}: {one['rule']}")
    if len(spared) > _NAMED:
        console.print(f"  spared: {len(spared) - _NAMED} more")


def _used(quota: Answer) -> str:
    used, most = quota.get("used") or {}, quota.get("max") or {}
    return ", ".join(f"{amount} of {most[name]} {name}" for name, amount in used.items()) or "nothing"


def _amounts(queue: Answer) -> str:
    held = {name: sums for name, sums in (queue.get("sums") or {}).items() if sums.get("allocated") not in (None, "0")}
    return ", ".join(f"{name} {sums['allocated']} of {sums['limit']}" for name, sums in held.items()) or "nothing"


def show_changes(console: Console, answer: Answer) -> None:
    """What would help, the cheapest first; or how many changes were tried if none helps."""
    changes = answer.get("changes", ())
    if changes:
        about = f" {_listed(answer['exists'])}" if answer.get("exists") else ""
        console.print(f"what would help{about}, each tried:")
    elif answer.get("tried"):
        console.print(f"what would help: {_plural(answer['tried'], 'change')} tried, none helped")
    for change in changes:
        console.print(f"  {change['says']}")
        for step in change.get("steps", ()):
            console.print(f"    {step_line(step)}")


def step_line(step: Answer) -> str:
    """One step of a change as it is printed."""
    if "command" in step:
        return str(step["command"])
    named = ", ".join(step["targets"])
    if "patch" not in step:
        return f"in the file, leave out {named}"
    if not step["patch"]:
        return f"from the file, again: {named}"
    return f"in the file, {named}: {json.dumps(step['patch'], separators=(',', ':'))}"


def show_fit(console: Console, answer: Answer, *, verbose: bool = False) -> None:
    for one in answer.get("items", (answer,)):
        more = "at least " if one["more"] else ""
        console.print(f"{one['file']}: {more}{one['fits']} more fit (state of {one['at']})")
        if "ideal" in one and not one["more"]:
            scattered = f"{one['fragmentation']:.0%} of it cannot be used"
            which = "all nodes" if not one.get("closed") else f"the nodes that it may use (not {one['closed']} others)"
            console.print(f"  the free room of {which} together would hold {one['ideal']}: {scattered}")
        if "message" in one:
            console.print(f"  the next would wait: {shortened(one['message'], verbose)}")


def show_need(console: Console, answer: Answer, *, verbose: bool = False) -> None:
    if answer["runs"]:
        console.print("no node: it runs now")
    elif not answer["shapes"]:
        console.print("more nodes of the shapes that are there would not help")
    for one in answer["shapes"]:
        differs = "".join(f", {key}={value}" for key, value in one.get("differs", {}).items())
        console.print(f"{_plural(one['nodes'], 'node')} like {one['like']} ({one['offers']}{differs})")


def show_drain(console: Console, answer: Answer, *, verbose: bool = False) -> None:
    for name in answer["unknown"]:
        console.print(f"{name}: there is no such node")
    if len(answer["nodes"]) > 1:
        console.print("each of these nodes alone, while the others stay:")
    for one in answer["nodes"]:
        victims = one.get("victims", ())
        costs = f"; {_plural(len(victims), 'pod')} elsewhere would be evicted for them" if victims else ""
        words = "can go" if one["canGo"] else "cannot go"
        console.print(f"{one['name']}: {words}, {_plural(len(one['pods']), 'pod')} of its own{costs}")
        _show_moves(console, one["pods"], verbose)
        _show_moves(console, victims, verbose)


def _show_moves(console: Console, pods: Iterable[Answer], verbose: bool) -> None:
    """Where pods would go, and those that would go nowhere by reason, first: they are what decides."""
    waiting: dict[str, list[str]] = {}
    moving: list[str] = []
    for pod in pods:
        name = f"{pod['namespace']}/{pod['name']}" + (f" on {pod['from']}" if "from" in pod else "")
        if "node" in pod:
            moving.append(f"  {name}: would go to {pod['node']}")
        else:
            waiting.setdefault(pod["message"], []).append(name)
    for message, names in waiting.items():
        console.print(f"  {_listed(names)}: {shortened(message, verbose)}")
    for text in moving[:_NAMED]:
        console.print(text)
    if len(moving) > _NAMED:
        console.print(f"  and {len(moving) - _NAMED} more")


def show_rows(console: Console, answer: dict[str, Any]) -> None:
    """The rows of one kind, a line for each, or for each resource of a quota."""
    for name in answer.get("unknown", ()):
        console.print(f"{name}: there is no such node")
    if not answer["items"]:
        console.print(f"there are no {answer['of']}")
    for one in answer["items"]:
        for line in _ROW_LINES[answer["of"]](one):
            console.print(line)


def _workload_lines(row: dict[str, Any]) -> Iterator[str]:
    queue = f", queue {row['queue']}" if row.get("queue") else ""
    phase = f", {row['phase']}" if row.get("phase") else ""
    together = f", {row['needed']} must start together" if row["needed"] > 1 else ""
    name, placed = f"{row['of']} {row['namespace']}/{row['name']}", f"{row['placed']} of {row['pods']} placed"
    yield f"{name}: {placed}{together}{queue}{phase}"


def _quota_lines(row: dict[str, Any]) -> Iterator[str]:
    where = f"{row['namespace']}/" if row.get("namespace") else ""
    parent = f", under {row['parent']}" if row.get("parent") else ""
    yield f"{row['of']} {where}{row['name']}{parent}"
    for resource, lines in row["amounts"].items():
        yield f"  {resource}: " + ", ".join(f"{name} {amount}" for name, amount in lines.items())


def _device_lines(row: dict[str, Any]) -> Iterator[str]:
    free = ", ".join(f"{amount} {name}" for name, amount in row.get("free", {}).items())
    held = f"held by {', '.join(row['heldBy'])}" if row["heldBy"] else "not held"
    yield f"{row['node']} {row['of']} {row['name']}: {held}" + (f"; free: {free}" if free else "")


_ROW_LINES: Mapping[str, Callable[[dict[str, Any]], Iterator[str]]] = {
    "workloads": _workload_lines,
    "quotas": _quota_lines,
    "devices": _device_lines,
}
