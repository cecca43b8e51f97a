"""Queues of Volcano: whether each is open, and that some are there at all.

                   OpenQueue                    CloseQueue              otherwise
    Open, ""    ──▶ Open           Closed if it has no groups, else Closing   Open
    Closing     ──▶ Open           the same                                   Closed once it has no groups
    Closed      ──▶ Open           Closed                                     Closed
    Unknown     ──▶ Open           the same                                   Unknown

Commands of the kind `Command` drive it. A queue under a closed parent is closed and marked; the mark opens it again
with the parent, and only the mark: a queue that was closed by hand stays closed. `root` is never closed.

The status gets the state alone. Its counters of groups are in the definition, and the original fills none of them: how
many groups a queue has is shown by metrics and by commands.

Invariant: a Command is deleted before it is obeyed, so that it is obeyed once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from fairlead.cluster.controllers.workqueue import Reconciler
from fairlead.cluster.controllers.writes import create, delete, namespaced_name, patch, patch_status
from fairlead.core.model.flow import Change, Doc, DocView, Reply, Watch, Write
from fairlead.errors import FairleadError
from fairlead.volcano.kinds import VC_COMMAND, VC_POD_GROUP, VC_QUEUE

ROOT = "root"
DEFAULT = "default"
CLOSED_BY_PARENT = "volcano.sh/closed-by-parent"
OPEN, CLOSING, CLOSED, UNKNOWN = "Open", "Closing", "Closed", "Unknown"
_OPEN_QUEUE, _CLOSE_QUEUE = "OpenQueue", "CloseQueue"
_TRIES = 15


class QueueIsHeldClosed(FairleadError):
    """A queue cannot be opened while its parent is closed."""


def next_state(state: str, action: str, *, groups: int) -> str:
    """The table above."""
    drained = CLOSED if not groups else CLOSING
    if action == _OPEN_QUEUE:
        return OPEN
    if action == _CLOSE_QUEUE:
        return CLOSED if state == CLOSED else drained
    if state in ("", OPEN):
        return OPEN
    if state == CLOSING:
        return drained
    return state if state == CLOSED else UNKNOWN


class VolcanoQueues(Reconciler[str]):
    """The key is a queue's name, or `command:<namespace>/<name>`."""

    name = "volcano-queue-controller"
    component = "vc-controller-manager"
    watches: Sequence[Watch] = (Watch(VC_QUEUE), Watch(VC_POD_GROUP), Watch(VC_COMMAND))

    def __init__(self, view: DocView, *, announce: bool = True) -> None:
        super().__init__(view, announce=announce)
        self._groups: dict[str, str] = {}  # uid -> queue
        self._counts: Counter[str] = Counter()  # queue -> groups
        self._children: dict[str, set[str]] = {}
        self._parent: dict[str, str] = {}
        self._written_spec: dict[str, tuple[Doc, Doc]] = {}  # queue -> spec and annotations
        self._requested: dict[str, str] = {}  # queue -> the action that a Command requested
        self._commands: dict[str, tuple[str, str]] = {}  # Commands being deleted -> queue and action

    def observe(self, change: Change) -> None:
        doc, gone = change.doc, change.gone
        if change.kind is VC_POD_GROUP:
            self._observe_group(doc, gone=gone)
        elif change.kind is VC_QUEUE:
            self._observe_queue(doc, gone=gone)
        elif not gone and (doc.get("target") or {}).get("kind") == VC_QUEUE.kind:
            namespace, name = namespaced_name(doc)
            self.queue.add(f"command:{namespace}/{name}")

    def _observe_group(self, group: Doc, *, gone: bool) -> None:
        uid = group["metadata"]["uid"]
        old = self._groups.pop(uid, None)
        new = None if gone else (group.get("spec") or {}).get("queue") or DEFAULT
        if new is not None:
            self._groups[uid] = new
        if old == new:
            return
        for place, by in ((old, -1), (new, 1)):
            if place is not None:
                self._counts[place] += by
                self.queue.add(place)

    def _observe_queue(self, queue: Doc, *, gone: bool) -> None:
        name = queue["metadata"]["name"]
        self._children.get(self._parent.pop(name, ""), set()).discard(name)
        if gone:
            self._requested.pop(name, None)
            self._written_spec.pop(name, None)
        else:
            self._parent[name] = (queue.get("spec") or {}).get("parent") or ROOT
            self._children.setdefault(self._parent[name], set()).add(name)
            current = (queue.get("spec") or {}, queue["metadata"].get("annotations") or {})
            if self._written_spec.get(name) != current:  # a status that others write starts no visit
                self._written_spec[name] = current
                self.queue.add(name)
        for child in self._children.get(name, ()):
            self.queue.add(child)

    # Visits

    def visit(self, key: str, now: float) -> Iterable[Write]:
        if key.startswith("command:"):
            return self._take_command(key)
        queue = self.view.get(VC_QUEUE, "", key)
        if queue is None or queue["metadata"].get("deletionTimestamp"):
            return ()
        return self._balance(key, queue)

    def _take_command(self, key: str) -> Iterator[Write]:
        namespace, name = key.removeprefix("command:").split("/", 1)
        command = self.view.get(VC_COMMAND, namespace, name)
        if command is not None and not command["metadata"].get("deletionTimestamp"):
            self._commands[key] = ((command.get("target") or {}).get("name") or "", command.get("action") or "")
            yield delete(VC_COMMAND, command)

    def welcomed(self, key: str, reply: Reply, now: float) -> Iterable[Write]:
        if reply.write.kind is not VC_COMMAND or key not in self._commands:
            return ()
        name, action = self._commands.pop(key)
        if name == ROOT and action == _CLOSE_QUEUE:
            return ()
        self._requested[name] = action
        self.queue.add(name)
        return ()

    def _balance(self, name: str, queue: Doc) -> Iterator[Write]:
        spec, status = queue.get("spec") or {}, queue.get("status") or {}
        state, action, mark = self._decision(name, queue)
        wanted = next_state(state, action, groups=self._counts[name])
        current: list[Write] = []
        if wanted != status.get("state"):
            # The definition requires `allocated`, which is the scheduler's to fill.
            required: Doc = {} if "allocated" in status else {"allocated": {}}
            current.append(patch_status(VC_QUEUE, queue, required | {"state": wanted}))
        changes: Doc = {}
        if name != ROOT and not spec.get("parent"):
            changes["spec"] = {"parent": ROOT}
        if mark is not None and _mark(queue) != mark:
            changes["metadata"] = {"annotations": {CLOSED_BY_PARENT: mark}}
        marked = [patch(VC_QUEUE, queue, changes)] if changes else []
        # Admission refuses changes of a queue that is Closing: it is marked while it is open, before or after.
        yield from current + marked if action == _OPEN_QUEUE else marked + current
        if action == _CLOSE_QUEUE and wanted != state:
            yield from self.event(VC_QUEUE, queue, _CLOSE_QUEUE, "Close queue succeed")

    def _decision(self, name: str, queue: Doc) -> tuple[str, str, str | None]:
        """The state as it is, what is to be done with it, and the mark to leave."""
        state = (queue.get("status") or {}).get("state") or ""
        held = self._is_held_closed(name, queue)
        requested = self._requested.get(name, "")
        if requested == _OPEN_QUEUE and held:
            if self.queue.failures(name) + 1 < _TRIES:
                raise QueueIsHeldClosed(f"queue {name} cannot be opened while its parent is closed")
            requested = ""
        self._requested.pop(name, None)
        if requested == _OPEN_QUEUE:
            return state, requested, "false" if state != OPEN else None
        if requested:
            return state, requested, None
        if held and state in ("", OPEN):
            return state, _CLOSE_QUEUE, "true"
        if not held and _mark(queue) == "true" and state in (CLOSING, CLOSED):
            return state, _OPEN_QUEUE, "false"
        return state, "", None

    def _is_held_closed(self, name: str, queue: Doc) -> bool:
        parent = (queue.get("spec") or {}).get("parent") or ROOT
        above = self.view.get(VC_QUEUE, "", parent) if name != ROOT and parent != name else None
        return above is not None and (above.get("status") or {}).get("state") in (CLOSING, CLOSED)


def _mark(queue: Doc) -> str:
    text: str = (queue["metadata"].get("annotations") or {}).get(CLOSED_BY_PARENT, "")
    return text


def first_queue(name: str) -> Doc:
    """The root of all queues, or the queue for groups that name none, as the original makes them."""
    return {
        "apiVersion": VC_QUEUE.api_version,
        "kind": VC_QUEUE.kind,
        "metadata": {"name": name},
        "spec": {"weight": 1, "reclaimable": name != ROOT},
    }


def first_queue_writes(view: DocView) -> list[Write]:
    """A cluster in which nobody has used Volcano yet has no queues; the first Job brings them."""
    missing = [name for name in (ROOT, DEFAULT) if view.get(VC_QUEUE, "", name) is None]
    return [create(VC_QUEUE, first_queue(name)) for name in missing]


class FirstQueues(Reconciler[str]):
    """Sees to it that there is a root and a queue for groups that name none; both are made when they are missing."""

    name = "volcano-first-queues"
    watches: Sequence[Watch] = (Watch(VC_QUEUE),)

    def __init__(self, view: DocView, *, default: str = DEFAULT) -> None:
        super().__init__(view)
        self._wanted = (ROOT, default)
        for name in self._wanted:
            self.queue.add(name)

    def observe(self, change: Change) -> None:
        name = change.doc["metadata"]["name"]
        if change.gone and name in self._wanted:
            self.queue.add(name)

    def visit(self, key: str, now: float) -> Iterable[Write]:
        if self.view.get(VC_QUEUE, "", key) is None:
            yield create(VC_QUEUE, first_queue(key))
