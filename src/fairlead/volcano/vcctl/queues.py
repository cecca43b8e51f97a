"""`vcctl queue`: create, delete, get, list, operate."""

from __future__ import annotations

from collections import Counter

from fairlead.core.model.flow import Doc, PatchType, Verb, Write
from fairlead.volcano.kinds import VC_POD_GROUP, VC_QUEUE
from fairlead.volcano.vcctl.work import VcFault, VcWork

_PHASES = ("Inqueue", "Pending", "Running", "Unknown", "Completed")
_ACTIONS = {"open": "OpenQueue", "close": "CloseQueue"}
_COMMANDS_IN = "default"


async def create(work: VcWork) -> None:
    values = work.values
    queue = {
        "apiVersion": VC_QUEUE.api_version,
        "kind": VC_QUEUE.kind,
        "metadata": {"name": work.name},
        "spec": {"weight": values["weight"]},
        "status": {"state": values["state"]},
    }
    await work.create(VC_QUEUE, queue)


async def delete(work: VcWork) -> None:
    if not work.name:
        raise VcFault("queue name must be specified")
    await work.remove(VC_QUEUE, "", work.name)


async def get(work: VcWork) -> None:
    if not work.name:
        raise VcFault("name is mandatory to get the particular queue details")
    await _print(work, [await work.api.get(VC_QUEUE, "", work.name)])


async def list_queues(work: VcWork) -> None:
    queues = await work.listed(VC_QUEUE, "")
    if not queues:
        work.out("No resources found")
        return
    await _print(work, queues)


async def _print(work: VcWork, queues: list[Doc]) -> None:
    """With the PodGroups of each queue counted here: no status has them."""
    groups = Counter(
        ((group.get("spec") or {}).get("queue") or "default", (group.get("status") or {}).get("phase") or "")
        for group in await work.listed(VC_POD_GROUP, "")
    )
    work.out("Name".ljust(25) + "".join(title.ljust(8) for title in ("Weight", "State", "Parent", *_PHASES)))
    for queue in queues:
        name, spec = queue["metadata"]["name"], queue.get("spec") or {}
        state = (queue.get("status") or {}).get("state") or ""
        cells = (spec.get("weight") or 0, state, spec.get("parent") or "", *(groups[name, phase] for phase in _PHASES))
        work.out(name.ljust(25) + "".join(str(cell).ljust(8) for cell in cells))


async def operate(work: VcWork) -> None:
    values, action = work.values, work.values["action"]
    if not work.name:
        raise VcFault("queue name must be specified")
    if not action:
        raise VcFault("action can not be null")
    if action == "update":
        if not values["weight"]:
            raise VcFault(f"when update queue {work.name}, weight must be specified, the value must be greater than 0")
        body = {"spec": {"weight": values["weight"]}}
        await work.api.perform(Write(Verb.PATCH, VC_QUEUE, "", work.name, body=body, patch_type=PatchType.MERGE))
    elif action in _ACTIONS:
        queue = await work.api.get(VC_QUEUE, "", work.name)
        await work.command(VC_QUEUE, queue, _ACTIONS[action], _COMMANDS_IN)
    else:
        raise VcFault(f"action {action} invalid, valid actions are open, close and update")
