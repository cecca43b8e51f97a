"""Volcano Jobs: a PodGroup, pods task by task, and what is to be done when pods end, fail or get lost.

    change of a pod, PodGroup, Job or Command ─▶ JobRequest ─policies▶ action ─phase table▶ sync or kill ─▶ writes

Requests of a Job are handled one after the other, each against the Job as the writes of the one before left it. Many
requests that come to a plain sync are one sync. Pods are made only once the scheduler has let the PodGroup in. A sync
that creates or deletes pods counts them in a second pass, when the replies are known.

Invariant: the API has confirmed the status that says what a kill intends before the first pod is deleted, so a
controller that is restarted in the middle finishes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Self

from fairlead.cluster.controllers.workqueue import ControllerContext, Reconciler
from fairlead.cluster.controllers.writes import controller_of, create, delete, namespaced_name, patch
from fairlead.core.model.durations import format_duration
from fairlead.core.model.flow import Change, Doc, DocView, Reply, Verb, Watch, Write
from fairlead.core.model.kinds import PERSISTENT_VOLUME_CLAIM, POD, PRIORITY_CLASS
from fairlead.errors import AlreadyExists, NotFound
from fairlead.volcano.controller_settings import VolcanoSettings
from fairlead.volcano.jobs.job_commands import is_for_job, request_of
from fairlead.volcano.jobs.job_groups import JobGroups, find_group, pending_text
from fairlead.volcano.jobs.job_holding import HeldStatuses
from fairlead.volcano.jobs.job_plugins.catalogue import BUILT_IN
from fairlead.volcano.jobs.job_plugins.job_plugin import JobPlugin, PluginMeans
from fairlead.volcano.jobs.job_pod_builder import WantedPods, build_pod, waiting_tasks
from fairlead.volcano.jobs.job_pods import (
    UNKNOWN_EVENT,
    JobPods,
    JobRequest,
    PodsNotMade,
    dismissal,
    request_for,
)
from fairlead.volcano.jobs.job_requests import JobRequests, JobWork
from fairlead.volcano.jobs.job_restart import (
    COMMAND_NOTE,
    KILL_NOTE,
    commands_noted,
    first_requests,
    note_kill,
    pods_to_delete,
    unfinished_kill,
)
from fairlead.volcano.jobs.job_status import controlled_of, killed_status, synced_status
from fairlead.volcano.jobs.job_surroundings import JobSurroundings
from fairlead.volcano.jobs.job_volumes import ClaimIsMissing, with_claim_names
from fairlead.volcano.jobs.phases import (
    PENDING,
    SYNC_JOB,
    JobState,
    Move,
    MoveKind,
    PodCounts,
    has_no_try_left,
    is_last_try,
    move_for,
    phase_of,
    stays,
)
from fairlead.volcano.kinds import VC_COMMAND, VC_JOB, VC_POD_GROUP, VC_QUEUE
from fairlead.volcano.queues.controller import DEFAULT, first_queue_writes

if TYPE_CHECKING:
    from fairlead.volcano.jobs.job_policies import Chosen

Key = tuple[str, str]

COMPONENT = "vc-controller-manager"
_COMMAND_KEY = "command/"
_BURST = 500
"""Pods that one sync creates at most; the second pass that follows creates the next, and others have their turn."""


class VolcanoJobs(Reconciler[Key]):
    """Keys are Jobs, and Commands as (namespace, `command/` + name)."""

    name = "volcano-job-controller"
    only_owned_pods = True
    watches: Sequence[Watch] = (
        Watch(VC_JOB), Watch(POD), Watch(VC_POD_GROUP), Watch(VC_COMMAND), Watch(VC_QUEUE), Watch(PRIORITY_CLASS),
        Watch(PERSISTENT_VOLUME_CLAIM),
    )  # fmt: skip

    def __init__(
        self,
        view: DocView,
        *,
        announce: bool = True,
        means: PluginMeans | None = None,
        plugins: Mapping[str, type[JobPlugin]] = BUILT_IN,
        most_tries: int = VolcanoSettings().most_tries,
    ) -> None:
        super().__init__(view, announce=announce)
        means = means or PluginMeans()
        self._quirks = means.quirks
        self._beside = JobSurroundings(self.view, means, plugins)
        self._groups = JobGroups(self.view, self._quirks)
        self._pods = JobPods()
        self._seen: dict[Key, tuple[str, Doc, str]] = {}  # Job -> uid, spec and phase
        self._group_phases: dict[str, str] = {}  # uid of a PodGroup -> phase
        self._requests = JobRequests(self._quirks, most_tries)
        self._current: dict[Key, JobWork] = {}  # under way, in case its writes fail
        self._not_made = PodsNotMade()
        self._second_pass: set[Key] = set()
        self._next_steps: dict[Key, list[list[Write]]] = {}  # what a kill does once its writes before are known
        self._held = HeldStatuses()
        self._commands: dict[Key, Doc] = {}
        self._pending_emitted: dict[Key, str] = {}

    @classmethod
    def from_context(cls, context: ControllerContext) -> Self:
        settings = context.of(VolcanoSettings)
        means = PluginMeans(settings.make_keys, settings.quirks)
        plugins = {**settings.job_plugins, **BUILT_IN}
        most = settings.most_tries
        return cls(context.view, announce=context.announce, means=means, plugins=plugins, most_tries=most)

    # What changed

    def observe(self, change: Change) -> None:
        doc, gone = change.doc, change.gone
        if change.kind is POD:
            self._observe_pod(change)
        elif change.kind is VC_JOB:
            self._observe_job(doc, gone=gone)
        elif change.kind is VC_POD_GROUP:
            self._observe_group(doc, gone=gone)
        elif change.kind is PRIORITY_CLASS:
            self._groups.forget()
        elif change.kind is VC_COMMAND and not gone and is_for_job(doc):
            namespace, name = namespaced_name(doc)
            self.queue.add((namespace, _COMMAND_KEY + name))

    def _ask(self, key: Key, request: JobRequest) -> None:
        self._requests.add(key, request)
        self.queue.add(key)

    def _observe_job(self, job: Doc, *, gone: bool) -> None:
        key, uid = namespaced_name(job), job["metadata"]["uid"]
        known = self._seen.get(key)
        if gone:
            if known is not None and known[0] == uid:
                self._forget(key)
                self._groups.forget(uid)
                self._beside.forget(uid)
            return
        now = (uid, job["spec"], phase_of(job))
        self._seen[key] = now
        if known is None and not self._quirks.commands_deleted_first:
            for request in first_requests(job, self._pods, self._quirks):
                self._ask(key, request)
        if known is None or known != now:
            self._ask(key, JobRequest(job_uid=uid))

    def _forget(self, key: Key) -> None:
        for memory in (self._not_made.taken, self._current, self._pending_emitted, self._next_steps):
            memory.pop(key, None)
        del self._seen[key]
        self._held.forget(key)
        self._requests.forget(key)
        self._second_pass.discard(key)

    def _observe_pod(self, change: Change) -> None:
        old, new = self._pods.observe(change)
        pod = new or old
        if pod is None or pod.job not in self._seen:
            return
        spec = self._seen[pod.job][1]
        task: Doc = next((one for one in spec.get("tasks") or () if one.get("name") == pod.task), {})
        if old is not None and new is None and change.doc["metadata"].get("uid") != old.uid:
            return
        request = request_for(old, new, task, self._pods.tally(pod), self._quirks)
        if request is not None:
            self._ask(pod.job, request)

    def _observe_group(self, group: Doc, *, gone: bool) -> None:
        owner = controller_of(group)
        if owner is None or owner.get("apiVersion") != VC_JOB.api_version or owner.get("kind") != VC_JOB.kind:
            return
        uid, phase = group["metadata"]["uid"], (group.get("status") or {}).get("phase") or ""
        if gone:
            self._group_phases.pop(uid, None)
            return
        before = self._group_phases.get(uid)
        self._group_phases[uid] = phase
        key = (group["metadata"].get("namespace", ""), owner["name"])
        if key not in self._seen or before == phase or (before is None and phase in ("", PENDING)):
            return
        if before is None:  # let in before it was known here
            self._ask(key, JobRequest(job_uid=owner["uid"]))
            return
        event = UNKNOWN_EVENT if phase == "Unknown" else JobRequest().event
        version = 0 if self._quirks.group_events_without_version else None
        self._ask(key, JobRequest(event=event, job_uid=owner["uid"], version=version))

    # Visits

    def visit(self, key: Key, now: float) -> Iterable[Write]:
        if key[1].startswith(_COMMAND_KEY):
            return self._visit_command(key, now)
        job = self.view.get(VC_JOB, *key)
        if job is None or key not in self._seen:
            return ()
        if key in self._next_steps:
            self._wait_for_more(key)
            return self._next_step(key)
        work, put_off = self._requests.next_work(key, job, now)
        events = [write for chosen in put_off for write in self._emit_delay(job, chosen, now)]
        if why := self._not_made.reasons.pop(key, ""):
            events += self._emit_event(job, "FailedCreate", f"Error creating pods: {why}", warning=True)
        try:
            return events + (self._late_status(key, job, now) if work is None else self._carry_out(key, job, work, now))
        except Exception:
            if work is not None:
                self._requests.try_later(key, work, now)  # a plugin may raise, and the work must not be lost with it
            raise
        finally:
            self._wait_for_more(key)

    def _wait_for_more(self, key: Key) -> None:
        """See to it that what is left is visited, too."""
        for due in (self._requests.next_due(key), self._held.due(key)):
            if due is not None and due < 0:
                self.queue.add(key)
            elif due is not None:
                self.queue.add_at(key, due)

    def _carry_out(self, key: Key, job: Doc, work: JobWork, now: float) -> list[Write]:
        self._current[key] = work
        if job["metadata"].get("deletionTimestamp"):
            return []
        events: list[Write] = []
        if work.gave_up:
            events = self._emit_event(
                job, "ExecuteAction", f"Job failed on action {work.gave_up} for retry limit reached"
            )
        elif work.action != SYNC_JOB and work.requests[0].delay is None:
            events = self._emit_event(job, "ExecuteAction", f"Start to execute action {work.action} ")
        self._requests.carried_out(key, work)
        if leftover := unfinished_kill(job, self._pods.of(key).values()):
            self._requests.put_back(key, work, without={pod.uid for pod in leftover})
            self._sync_again(key)
            return [write for pod in leftover for write in dismissal(pod)]
        move = move_for(phase_of(job), work.action, self._quirks)
        operation = self._sync if move.operation is MoveKind.SYNC else self._kill
        return events + operation(key, job, move, work, now)

    def _emit_delay(self, job: Doc, chosen: Chosen, now: float) -> list[Write]:
        text = f"Execute action {chosen.action} after {format_duration(chosen.delay or 0.0)}"
        return self._emit_event(job, "ExecuteAction", text)

    # Commands

    def _visit_command(self, key: Key, now: float) -> Iterator[Write]:
        namespace, name = key[0], key[1].removeprefix(_COMMAND_KEY)
        command = self.view.get(VC_COMMAND, namespace, name)
        if command is None or command["metadata"].get("deletionTimestamp"):
            return
        job_key = (namespace, command["target"].get("name") or "")
        job = self.view.get(VC_JOB, *job_key)
        uid = command["metadata"]["uid"]
        if self._quirks.commands_deleted_first or job is None or uid in commands_noted(controlled_of(job)):
            self._commands[key] = command
            yield delete(VC_COMMAND, command)
        else:
            yield from self._emit_command(job, command, now)
            self._ask(job_key, request_of(command, noted=True))

    def _emit_command(self, job: Doc, command: Doc, now: float) -> list[Write]:
        action = command.get("action") or ""
        text = f"Start to execute command {action}, and clean it up to make sure executed not more than once."
        return self._emit_event(job, "CommandIssued", text)

    def welcomed(self, key: Key, reply: Reply, now: float) -> Iterable[Write]:
        if key in self._seen:
            self._beside.replied(self._seen[key][0], reply)
        if reply.write.kind is not VC_COMMAND or not self._quirks.commands_deleted_first:
            return
        command = self._commands.pop(key, None)
        if command is None:
            return
        job_key = (key[0], command["target"].get("name") or "")
        job = self.view.get(VC_JOB, *job_key)
        if job is not None:
            self._ask(job_key, request_of(command, noted=False))
            yield from self._emit_command(job, command, now)

    # Sync

    def _sync(self, key: Key, job: Doc, move: Move, work: JobWork, now: float) -> list[Write]:
        spec = job["spec"]
        if self.view.get(VC_QUEUE, "", spec.get("queue") or "") is None:
            self._requests.try_later(key, work, now)
            return first_queue_writes(self.view) if spec.get("queue") == DEFAULT else []
        volumes = with_claim_names(job)
        if volumes is not None:
            self._sync_again(key)
            return [patch(VC_JOB, job, {"spec": {"volumes": volumes}})]
        state, controlled = JobState.of(job), controlled_of(job)
        controlled.pop(KILL_NOTE, None)
        self._note_command(work, controlled)
        if not state.phase:
            state.phase, state.min_available = PENDING, int(spec.get("minAvailable") or 0)
        writes = self._beside.writes(job, state, controlled)
        try:
            writes += self._beside.claims(job, controlled) if state.phase == PENDING else []
        except ClaimIsMissing as error:
            self._requests.try_later(key, work, now)
            events = self._emit_event(job, "PVCError", f"Failed to create PVC, err: {error}", warning=True)
            return writes + events + self._status(job, state, controlled, now)
        is_complete = not any(write.verb is Verb.CREATE for write in writes)
        group = find_group(self.view, job)
        if group is None:
            writes.append(create(VC_POD_GROUP, self._groups.build(job)))
        elif changes := self._groups.changes(job, group):
            writes.append(patch(VC_POD_GROUP, group, {"spec": changes}))
        writes += self._emit_pending(key, job, group)
        if not is_complete:
            self._sync_again(key)  # what is being made is noted in the status when it is known to be there
            return writes
        if (
            has_no_try_left(spec, state)
            or group is None
            or ((group.get("status") or {}).get("phase") or PENDING) == PENDING
        ):
            move.rule(spec, state)
            return writes + self._status(job, state, controlled, now)
        if refusal := self._beside.refusal(job):
            self._requests.try_later(key, work, now)
            return [*writes, *self._emit_refusal(job, refusal, now), *self._status(job, state, controlled, now)]
        pods = self._pod_writes(key, job, state, group["metadata"]["name"])
        if pods:
            self._sync_again(key)
            if work.tries and not self._quirks.refused_pods_stop_status:
                state.counts = self._count(key, job)  # those that were made are counted, though others are refused
                return writes + pods + self._status(job, state, controlled, now)
            return writes + pods
        state.counts, state.min_available = self._count(key, job), int(spec.get("minAvailable") or 0)
        move.rule(spec, state)
        return writes + self._status(job, state, controlled, now)

    def _emit_pending(self, key: Key, job: Doc, group: Doc | None) -> list[Write]:
        """Why the scheduler does not let the pods start, whenever it says something new."""
        text = pending_text(job, group)
        if self._pending_emitted.get(key, "") == text:
            return []
        self._pending_emitted[key] = text
        return self._emit_event(job, "PodGroupPending", text, warning=True) if text else []

    def _emit_refusal(self, job: Doc, refusal: str, now: float) -> list[Write]:
        if self._quirks.refused_pods_stop_status:
            return []  # the original only logs it
        return self._emit_event(job, "PluginError", refusal, warning=True)

    def _note_command(self, work: JobWork, controlled: dict[str, str]) -> None:
        """Have the status say which Commands were carried out, and these deleted once it does."""
        for request in work.requests:
            if request.command is not None:
                namespace, name, uid = request.command
                there = {one["metadata"]["uid"] for one in self.view.list(VC_COMMAND, namespace)}
                known = [one for one in commands_noted(controlled) if one in there]
                controlled[COMMAND_NOTE] = ",".join([*known, uid])
                self.queue.add((namespace, _COMMAND_KEY + name))

    def _status(
        self, job: Doc, state: JobState, controlled: dict[str, str], now: float, *, late: bool = False
    ) -> list[Write]:
        write, key = synced_status(job, state, controlled, now, self._quirks), namespaced_name(job)
        if write is None:
            self._held.forget(key)
        elif not late and self._held.holds(key, job, state, controlled, now, busy=bool(self._under_way)):
            return []
        elif self._rests(job, state):
            self._seen[key] = (job["metadata"]["uid"], job["spec"], state.phase)
        return [] if write is None else [write]

    def _late_status(self, key: Key, job: Doc, now: float) -> list[Write]:
        """The status that a sync left for later, if its time has come. Nothing else is done: no sync was requested."""
        state = self._held.due_state(key, now, busy=bool(self._under_way))
        return [] if state is None else self._status(job, state, controlled_of(job), now, late=True)

    def _rests(self, job: Doc, state: JobState) -> bool:
        """Whether the sync that a new phase calls for would find nothing to do. That is so for a Job on its way to
        Running that has no plugins, unless the rule of the new phase moves it on: all else that a sync looks at gives
        of its changes by itself."""
        if phase_of(job) not in ("", PENDING) or job["spec"].get("plugins"):
            return False
        return stays(job["spec"], state, self._quirks)

    def _sync_again(self, key: Key) -> None:
        """Sync once more when the writes of this visit are known."""
        self._second_pass.add(key)
        self._requests.add(key, JobRequest(), first=True)

    def _pod_writes(self, key: Key, job: Doc, state: JobState, group: str) -> list[Write]:
        """Creations of missing pods, at most a burst, and deletions of those that are too many or out of sync."""
        known = self._pods.of(key)
        wanted = WantedPods(job)
        if key not in self._second_pass:
            self._not_made.taken.pop(key, None)
        self._second_pass.discard(key)
        there = known.keys() | self._not_made.taken.get(key, set())
        writes: list[Write] = []
        plugins = list(self._beside.plugins(job))
        for task, index in islice(wanted.missing(there, waiting_tasks(job, known.values())), _BURST):
            made = build_pod(job, task, index, group=group, state=state)
            for plugin in plugins:
                plugin.on_pod_create(made, job)
            writes.append(create(POD, made))
        too_many = (pod for pod in known.values() if pod.out_of_sync or pod.name not in wanted)
        return writes + [delete(POD, pod.doc) for pod in too_many if not pod.deleting]

    def _count(self, key: Key, job: Doc) -> PodCounts:
        counts, known = PodCounts(), self._pods.of(key)
        wanted = WantedPods(job)
        for pod in known.values():
            if pod.deleting or pod.name not in wanted:
                counts.terminating += 1
            else:
                counts.add(pod.task, pod.phase)
        return counts

    # Kill

    def _kill(self, key: Key, job: Doc, move: Move, work: JobWork, now: float) -> list[Write]:
        state, controlled = JobState.of(job), controlled_of(job)
        pods = list(self._pods.of(key).values())
        being_deleted = pods_to_delete(job, pods, move, work, state)
        if being_deleted is None:
            return []
        self._held.forget(key)
        targeted, counts = move.operation is MoveKind.KILL_TARGET, PodCounts()
        if not targeted and (being_deleted or self._quirks.version_rises_with_every_kill):
            state.version += 1
        names = {pod.name for pod in being_deleted}
        for pod in pods:
            if pod.name in names or (pod.deleting and not targeted):
                counts.terminating += 1
            elif not self._quirks.kill_forgets_finished_pods:
                counts.add(pod.task, pod.phase)
        state.counts = counts
        self._note_command(work, controlled)
        controlled.pop(KILL_NOTE, None)
        if being_deleted and not self._quirks.commands_deleted_first:
            note_kill(controlled, move, work, last_try=is_last_try(job["spec"], state))
        cleared: list[Write] = []
        if not targeted or self._quirks.target_kill_deletes_objects:
            cleared = self._beside.clear(job, controlled)
        move.rule(job["spec"], state)
        status = killed_status(job, state, controlled, now)
        after = [write for pod in being_deleted for write in dismissal(pod)]
        group = find_group(self.view, job)
        if group is not None and (not targeted or self._quirks.target_kill_deletes_group):
            after.append(delete(VC_POD_GROUP, group))
        if status is None:
            return [*cleared, *after]
        return self._in_steps(key, [cleared, *([[status], after] if being_deleted else [[status, *after]])])

    def _in_steps(self, key: Key, steps: list[list[Write]]) -> list[Write]:
        """The first of these, and each of the others once the one before is known. A status that no longer notes what
        plugins made is written when that is gone: who comes after a restart finds it by the note alone. A status that
        notes which pods go is written before they go."""
        self._next_steps[key] = [step for step in steps if step]
        return self._next_step(key)

    def _next_step(self, key: Key) -> list[Write]:
        step, *rest = self._next_steps.pop(key)
        if rest:
            self._next_steps[key] = rest
            self.queue.add(key)
        return step

    # What failed

    def forgives(self, key: Key, reply: Reply) -> bool:
        write, error = reply.write, reply.error
        if key in self._seen:
            self._beside.replied(self._seen[key][0], reply)
        if isinstance(error, NotFound):
            return write.verb is Verb.DELETE or write.kind in (POD, VC_JOB)
        if not isinstance(error, AlreadyExists):
            return False
        if write.kind is POD:
            self._not_made.taken.setdefault(key, set()).add(write.name)
            return self._quirks.foreign_pod_blocks
        return True

    def refused(self, key: Key, reply: Reply, now: float) -> None:
        work = self._current.get(key)
        self._next_steps.pop(key, None)
        if reply.write.kind is POD and reply.error is not None:
            self._not_made.reasons[key] = reply.error.message
        if work is not None:
            del self._current[key]
            self._requests.try_later(key, work, now)
            self._wait_for_more(key)

    def _emit_event(self, job: Doc, reason: str, message: str, *, warning: bool = False) -> list[Write]:
        return list(self.event(VC_JOB, job, reason, message, warning=warning, component=COMPONENT))
