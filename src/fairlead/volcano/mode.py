"""RoundMode: Volcano's way to place pods, one round after the other, beside the attempts of kube profiles.

    Scheduler.step ─▶ step ─▶ RoundDriver of each profile ─▶ BindingDriver      the placements of one slice of its round
                     take_replies ◀── a write failed, so that the next round requests it again

Explanations of pods, groups and queues are made from the round that is under way or was closed last.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import replace
from typing import TYPE_CHECKING

from fairlead.core.engine.cycle.placement import Placed, ScoredRow
from fairlead.core.engine.explain.lacks import domain_lack
from fairlead.core.engine.modes import SchedulingMode
from fairlead.errors import NotFound, NotSent
from fairlead.volcano.explain.group import explain_job
from fairlead.volcano.explain.queue import explain_queue
from fairlead.volcano.explain.round_lacks import needed_tasks, queue_lacks
from fairlead.volcano.explain.waiting_pod import explained_by_round
from fairlead.volcano.kinds import VC_NUMATOPOLOGY
from fairlead.volcano.records.tasks import TaskStatus
from fairlead.volcano.rounds.driver import RoundDriver
from fairlead.volcano.rounds.settings import Rounds
from fairlead.volcano.rounds.tally import bound, watched
from fairlead.volcano.rounds.writes import orphaned_layouts

if TYPE_CHECKING:
    from fairlead.core.engine.cycle.binding import Binding
    from fairlead.core.engine.modes import LacksOf, SchedulerParts
    from fairlead.core.framework.profile import Profile
    from fairlead.core.model.explanation import Explanation
    from fairlead.core.model.flow import Change, Reply
    from fairlead.core.model.pod import Pod
    from fairlead.volcano.records.queue_explanation import JobExplanation, QueueExplanation
    from fairlead.volcano.rounds.job import Task


class RoundMode(SchedulingMode):
    """The mode of all profiles that work in rounds; each has a driver."""

    def __init__(self, parts: SchedulerParts) -> None:
        self._parts = parts
        self.drivers: list[RoundDriver] = []

    def serves(self, profile: Profile) -> bool:
        return isinstance(profile.mode, Rounds)

    def reconfigure(self, profiles: Sequence[Profile]) -> None:
        """Keep the drivers of profiles that stay: a round that is under way ends as it began."""
        known = {driver.profile.name: driver for driver in self.drivers}
        self.drivers = []
        for profile in profiles:
            if not self.serves(profile):
                continue
            driver = known.get(profile.name)
            if driver is None:
                driver = RoundDriver(profile, self._parts)
            else:
                driver.reconfigure(profile)
            self.drivers.append(driver)

    # ---- a step ----

    def take_replies(self, replies: Sequence[Reply], now: float) -> None:
        for reply in replies:
            if reply.error is not None:
                for driver in self.drivers:
                    driver.failed(reply.write)
        if any(_is_worth_another_look(reply) for reply in replies):
            self.noticed(now)

    def noticed(self, now: float) -> None:
        for driver in self.drivers:
            driver.noticed(now)

    def step(self, now: float, changes: Sequence[Change], interrupted_by: Sized) -> None:
        if self.drivers and not self._parts.bindings.is_full:
            self._parts.guard.do("rounds", self._run_rounds, now, changes, interrupted_by)

    def _run_rounds(self, now: float, changes: Sequence[Change], interrupted_by: Sized) -> None:
        output = self._parts.output
        output.add(orphaned_layouts(changes, self._parts.cluster.object_index.of(VC_NUMATOPOLOGY)))
        for driver in self.drivers:
            if output.meter is not None:
                output.meter.lapses.extend(watched(changes, driver.rounds.scheduler_names, now))
            if changes:
                driver.noticed(now)
            placed, writes = driver.step(now, interrupted_by)
            output.add(writes)
            for task, row in placed:
                self._bind_placed(driver, task, row)

    def _bind_placed(self, driver: RoundDriver, task: Task, row: int) -> None:
        """A pod that a round placed goes the way of any other."""
        cycle = driver.cycle_of(task, self._parts.output.now)
        placed = Placed(
            row, feasible=driver.fitting(task), judged=len(self._parts.cluster.table), chosen=ScoredRow(row, 0, ())
        )
        self._parts.binding_driver.begin_unqueued(task.pod, cycle, placed, self)

    def wake_at(self, now: float) -> float | None:
        if self._parts.bindings.is_full:  # an answer is what wakes us
            return None
        return min((at for driver in self.drivers if (at := driver.wake_at(now)) is not None), default=None)

    # ---- bindings ----

    def bound(self, binding: Binding) -> None:
        output = self._parts.output
        if output.meter is not None:
            output.meter.lapses.extend(bound(binding, output.now))

    def failed(self, binding: Binding, freed: Pod | None) -> None:
        """The pod waits for the next round."""
        assert binding.status is not None
        output = self._parts.output
        message = f"failed to bind to node {binding.node_name}: {binding.status.message}"
        output.event(binding.pod, kind="Warning", reason="FailedScheduling", action="Binding", note=message)
        pod_state = self._parts.cluster.pods.get(binding.pod.uid)
        if pod_state is not None and not pod_state.seen.node_name:
            output.condition(pod_state.seen, reason="SchedulerError", message=message)
        self.noticed(output.now)  # the patch may say nothing new, and then no change wakes the next round
        output.decided(binding.entry, binding.pod, "error", message=message)

    # ---- explanations ----

    def about_pod(self, pod: Pod) -> Explanation | None:
        for driver in self.drivers:
            if (report := driver.why(pod.uid)) is not None:
                return explained_by_round(driver, report)
        return None

    def about_group(self, namespace: str, name: str, lacks_of: LacksOf) -> JobExplanation | None:
        for driver in self.drivers:
            if (job := explain_job(driver, namespace, name)) is not None:
                return _with_lacks(driver, job, lacks_of)
        return None

    def about_queue(self, name: str) -> QueueExplanation | None:
        found = (explain_queue(driver, name) for driver in self.drivers)
        return next((explanation for explanation in found if explanation is not None), None)

    def lack_explainers(self, scheduler_name: str) -> Iterable[object]:
        rounds = (driver.latest for driver in self.drivers if driver.profile.name == scheduler_name)
        return [plugin for round in rounds if round is not None for plugin in round.tiers.plugins.values()]

    def promised(self, priority: int) -> Iterator[tuple[int, Pod]]:
        """Rows of tasks that a round has given a place which is not free yet."""
        rounds = (driver.latest for driver in self.drivers)
        for job in (job for round in rounds if round is not None for job in round.jobs.values()):
            for task in job.in_status(TaskStatus.PIPELINED):
                if task.row >= 0:
                    yield task.row, task.pod

    def figures(self) -> Mapping[str, object]:
        return {driver.profile.name: driver.figures() for driver in self.drivers}


def _with_lacks(driver: RoundDriver, explained: JobExplanation, lacks_of: LacksOf) -> JobExplanation:
    round, gang = driver.latest, explained.gang
    job = None if round is None else round.jobs.get(f"{gang.namespace}/{gang.name}")
    if round is None or job is None or gang.verdict in ("Scheduled", "Completed"):
        return explained
    tasks = needed_tasks(job)
    domains = domain_lack(gang.domains, len(tasks))
    more = lacks_of([task.pod for task in tasks], [text for text, _ in gang.blockers])
    return replace(explained, gang=replace(gang, lacks=(*queue_lacks(round, job), *domains, *more)))


def _is_worth_another_look(reply: Reply) -> bool:
    """Whether a write failed that a round would request again: no change will make it."""
    ordinary = reply.error is None or isinstance(reply.error, NotFound | NotSent)
    return not ordinary and reply.write.subresource != "binding"
