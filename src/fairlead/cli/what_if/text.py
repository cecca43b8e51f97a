"""Answers as text for people. Every line says something that the JSON form says too."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

_NAMED = 8


def show_simulation(console: Console, answer: dict[str, Any]) -> None:
    pods, placed = answer["pods"], answer["placed"]
    console.print(f"{_verdict(answer)}: {placed} of {len(pods)} pods would have a node (state of {answer['at']})")
    nodes = Counter(pod["node"] for pod in pods if "node" in pod)
    for pod in [pod for pod in pods if "node" in pod][:_NAMED]:
        console.print(f"  {pod['namespace']}/{pod['name']} → {pod['node']}")
    if placed > _NAMED:
        console.print(f"  and {placed - _NAMED} more; {len(nodes)} nodes in all")
    for message, count in Counter(pod["message"] for pod in pods if "message" in pod).most_common(_NAMED):
        console.print(f"  {count} would wait: {message}", markup=False)
    _show_victims(console, answer)
    for queue in answer.get("queues", ()):
        console.print(f"queue {queue['name']} holds {_amounts(queue['before'])}; then {_amounts(queue['after'])}")
    for quota in answer.get("quotas", ()):
        before, after = _used(quota["before"]), _used(quota["after"])
        console.print(f"quota {quota['name']} uses {before}; then {after}", markup=False)
    if answer.get("delayed"):
        console.print(f"would no longer start now: {', '.join(answer['delayed'][:_NAMED])}", markup=False)
    show_changes(console, answer)


def _verdict(answer: dict[str, Any]) -> str:
    return {"Runs": "runs now", "RunsAfterEvictions": "runs, after evictions"}.get(answer["verdict"], "would wait")


def _show_victims(console: Console, answer: dict[str, Any]) -> None:
    victims = answer.get("victims", ())
    if victims:
        console.print(f"{len(victims)} pod{'s'[: len(victims) != 1]} would be evicted:")
    for one in victims[:_NAMED]:
        following = one.get("next", {})
        then = f"would go to {following['node']}" if "node" in following else following.get("message", "")
        words = f"  {one['namespace']}/{one['name']} on {one['node']}: {one['rule']}; {one['lostSeconds']:g} s of work"
        console.print(f"{words} lost; {then}", markup=False)
    for one in answer.get("spared", ())[:_NAMED]:
        console.print(f"  spared: {one['name']}: {one['rule']}", markup=False)


def _used(quota: dict[str, Any]) -> str:
    used, most = quota.get("used") or {}, quota.get("max") or {}
    return ", ".join(f"{amount} of {most[name]} {name}" for name, amount in used.items()) or "nothing"


def _amounts(queue: dict[str, Any]) -> str:
    held = {name: sums for name, sums in (queue.get("sums") or {}).items() if sums.get("allocated") not in (None, "0")}
    return ", ".join(f"{name} {sums['allocated']} of {sums['limit']}" for name, sums in held.items()) or "nothing"


def show_changes(console: Console, answer: dict[str, Any]) -> None:
    """What would help, the cheapest first."""
    changes = answer.get("changes", ())
    if changes:
        console.print("what would help, each tried:")
    for change in changes:
        console.print(f"  {change['says']}", markup=False, soft_wrap=True)
        if "command" in change:
            console.print(f"    {change['command']}", markup=False, soft_wrap=True)
        elif "patch" in change:
            patch = json.dumps(change["patch"], separators=(",", ":"))
            console.print(f"    in the file, {change['target']}: {patch}", markup=False, soft_wrap=True)


def show_fit(console: Console, answer: dict[str, Any]) -> None:
    for one in answer.get("items", (answer,)):
        more = "at least " if one["more"] else ""
        console.print(f"{one['file']}: {more}{one['fits']} more fit (state of {one['at']})", markup=False)
        if "ideal" in one and not one["more"]:
            scattered = f"{one['fragmentation']:.0%} of it cannot be used"
            console.print(f"  the free room of all nodes together would hold {one['ideal']}: {scattered}")
        if "message" in one:
            console.print(f"  the next would wait: {one['message']}", markup=False)


def show_need(console: Console, answer: dict[str, Any]) -> None:
    if answer["runs"]:
        console.print("no node: it runs now")
    elif not answer["shapes"]:
        console.print("more nodes of the shapes that are there would not help")
    for one in answer["shapes"]:
        console.print(
            f"{one['nodes']} node{'s'[: one['nodes'] != 1]} like {one['like']} ({one['offers']})", markup=False
        )


def show_drain(console: Console, answer: dict[str, Any]) -> None:
    for name in answer["unknown"]:
        console.print(f"{name}: there is no such node", markup=False)
    for one in answer["nodes"]:
        console.print(f"{one['name']}: {'can go' if one['canGo'] else 'cannot go'}, {len(one['pods'])} pods")
        for pod in one["pods"][:_NAMED]:
            where = f"would go to {pod['node']}" if "node" in pod else pod["message"]
            console.print(f"  {pod['namespace']}/{pod['name']}: {where}", markup=False)


def show_rows(console: Console, answer: dict[str, Any]) -> None:
    """The rows of one kind, a line for each, or for each resource of a quota."""
    for name in answer.get("unknown", ()):
        console.print(f"{name}: there is no such node", markup=False)
    if not answer["items"]:
        console.print(f"there are no {answer['of']}")
    for one in answer["items"]:
        for line in _ROW_LINES[answer["of"]](one):
            console.print(line, markup=False)


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
