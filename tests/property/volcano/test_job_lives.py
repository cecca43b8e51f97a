"""Random Volcano Jobs to which random things happen, on virtual time: phases follow the table, counters are those of
the pods, and a Job that could go on does.

FAIRLEAD_JOBS says how many Jobs; `make soak` takes two thousand.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairlead.assembly.cluster import ClusterAssembly
from fairlead.cluster.controllers.workqueue import Reconciler
from fairlead.cluster.controllers.writes import namespaced_name, patch
from fairlead.core.model import kinds as k
from fairlead.core.model.flow import Change, Doc, Happened, Verb, Watch, Write
from fairlead.errors import ApiError
from fairlead.volcano.jobs.job_pod_builder import WantedPods, waiting_tasks
from fairlead.volcano.jobs.job_pods import read_job_pod
from fairlead.volcano.jobs.phases import COUNTERS, FINISHED, JobState, move_for, phase_of, total_replicas
from fairlead.volcano.kinds import VC_COMMAND, VC_JOB, VC_POD_GROUP
from fairlead.volcano.records.quirks import FIXED
from fairlead.volcano.replay.story_world import STORY_CONTROLLERS, StoryWorld, story_settings

JOBS = int(os.environ.get("FAIRLEAD_JOBS", "40"))
SPACE = "lives"
ENDING = {"Aborting", "Completing", "Terminating"}
TABLE = {
    "": {"Pending", "Running"},
    "Pending": {"Running", "Restarting", *ENDING},
    "Running": {"Pending", "Restarting", "Completed", "Failed", *ENDING},
    "Restarting": {"Pending", "Failed", *ENDING},
    "Aborting": {"Aborted", "Restarting"},
    "Aborted": {"Restarting"},
    "Completing": {"Completed"},
    "Terminating": {"Terminated"},
    **{phase: set() for phase in FINISHED},
}
"""Which phases may follow which."""
JOB_ACTIONS = ("AbortJob", "RestartJob", "TerminateJob", "CompleteJob", "ResumeJob")
ACTIONS = (*JOB_ACTIONS, "RestartTask", "RestartPod")
EVENTS = ("PodFailed", "PodEvicted", "TaskCompleted", "TaskFailed", "Unknown")


class OpenDoor(Reconciler[tuple[str, str, str]]):
    """A scheduler that lets every group in and has room for every pod."""

    name = "open-door"
    watches: Sequence[Watch] = (Watch(VC_POD_GROUP), Watch(k.POD))

    def observe(self, change: Change) -> None:
        if change.happened is not Happened.DELETED:
            self.queue.add((change.kind.kind, *namespaced_name(change.doc)))

    def visit(self, key: tuple[str, str, str], now: float) -> Iterable[Write]:
        kind = k.POD if key[0] == "Pod" else VC_POD_GROUP
        doc = self.view.get(kind, *key[1:])
        if doc is None:
            return
        if kind is VC_POD_GROUP and ((doc.get("status") or {}).get("phase") or "Pending") == "Pending":
            yield patch(kind, doc, {"status": {"phase": "Inqueue"}})
        elif kind is k.POD and not doc["spec"].get("nodeName") and not doc["metadata"].get("deletionTimestamp"):
            body = {
                "apiVersion": "v1", "kind": "Binding", "metadata": {"name": key[2], "namespace": key[1]},
                "target": {"apiVersion": "v1", "kind": "Node", "name": "node-0"},
            }  # fmt: skip
            yield Write(Verb.CREATE, k.POD, key[1], key[2], body=body, subresource="binding")

    def forgives(self, key: Any, reply: Any) -> bool:
        return True


# ---- random Jobs ----


@st.composite
def policies(draw: st.DrawFn) -> list[Doc]:
    made: list[Doc] = []
    for event in draw(st.lists(st.sampled_from(EVENTS), max_size=2, unique=True)):
        made.append({"event": event, "action": draw(st.sampled_from(ACTIONS))})
        if draw(st.integers(0, 4)) == 0:
            made[-1]["timeout"] = "10s"
    if draw(st.integers(0, 3)) == 0:
        made.append({"exitCode": 3, "action": draw(st.sampled_from(ACTIONS))})
    return made


@st.composite
def jobs(draw: st.DrawFn) -> Doc:
    tasks: list[Doc] = []
    for index in range(draw(st.integers(1, 3))):
        replicas = draw(st.integers(0 if index else 1, 3))
        task: Doc = {
            "name": f"t{index}",
            "replicas": replicas,
            "minAvailable": draw(st.integers(0, replicas)),
            "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "x"}]}},
        }
        if made := draw(policies()):
            task["policies"] = made
        if index and draw(st.integers(0, 3)) == 0:
            task["dependsOn"] = {"name": [f"t{draw(st.integers(0, index - 1))}"]}
        tasks.append(task)
    total = sum(task["replicas"] for task in tasks)
    spec: Doc = {"tasks": tasks, "minAvailable": draw(st.integers(1, total)), "maxRetry": draw(st.integers(1, 3))}
    if made := draw(policies()):
        spec["policies"] = made
    if draw(st.integers(0, 4)) == 0:
        spec["minSuccess"] = draw(st.integers(1, total + 1))
    if draw(st.integers(0, 2)) == 0:
        spec["plugins"] = {name: [] for name in draw(st.sets(st.sampled_from(["svc", "env", "ssh"])))}
    return {"apiVersion": VC_JOB.api_version, "kind": "Job", "metadata": {"name": "job"}, "spec": spec}


POD_PHASES = ("Running", "Running", "Succeeded", "Failed", "Unknown")
happenings = st.one_of(
    st.tuples(
        st.just("pods"), st.sampled_from(["Running", "Running", "Succeeded", "Failed", "Unknown"]), st.integers()
    ),
    st.tuples(st.just("exit"), st.just("Failed"), st.integers()),
    st.tuples(st.just("delete"), st.just(""), st.integers()),
    st.tuples(st.just("command"), st.sampled_from([*ACTIONS, "SyncJob"]), st.integers()),
    st.tuples(st.just("scale"), st.just(""), st.integers(0, 11)),
    st.tuples(st.just("hold"), st.just(""), st.integers()),
    st.tuples(st.just("release"), st.just(""), st.integers()),
    st.tuples(st.just("wait"), st.just(""), st.integers(1, 20)),
)


# ---- a life ----


class Life:
    def __init__(self, job: Doc) -> None:
        cluster = ClusterAssembly(names=STORY_CONTROLLERS, settings=[story_settings(FIXED)], seed=0)
        self.world = StoryWorld(SPACE, cluster, lambda view: OpenDoor(view))
        self._feed = self.world.store.feed([Watch(VC_JOB)])
        self._phase = ""
        self._held = False
        self.world.create(VC_JOB, job)
        self.world.rest()
        self.check()

    def job(self) -> Doc:
        found = self.world.store.get(VC_JOB, SPACE, "job")
        assert found is not None
        return found

    def pods(self) -> list[Doc]:
        return [pod for pod in self.world.store.list(k.POD, SPACE) if read_job_pod(pod) is not None]

    def happen(self, what: str, word: str, number: int) -> None:
        names = sorted(pod["metadata"]["name"] for pod in self.pods())
        some = [name for index, name in enumerate(names) if number >> index & 1]
        try:
            match what:
                case "pods":
                    self.world.set_phase(some, {"phase": word})
                case "exit":
                    self.world.set_phase(some[:1], {"phase": word, "exitCode": 3})
                case "delete":
                    for name in some[:2]:
                        self.world.delete(k.POD, name, "Background")
                case "command":
                    self.world.command(word, {"kind": "Job", "name": "job"})
                case "scale":
                    self._scale(number)
                case "hold" | "release":
                    self._held = what == "hold"
                    (self.world.hold if self._held else self.world.release)()
                case "wait":
                    self.world.rest(float(number))
        except ApiError:
            return  # refused: nothing has happened
        self.world.rest()
        self.check()

    def _scale(self, number: int) -> None:
        tasks = [dict(task) for task in self.job()["spec"]["tasks"]]
        task = tasks[number % len(tasks)]
        task["replicas"] = number // 3
        task["minAvailable"] = min(task["minAvailable"], task["replicas"])
        total = sum(int(one.get("replicas") or 0) for one in tasks)
        spec = {"tasks": tasks, "minAvailable": min(self.job()["spec"]["minAvailable"], total)}
        self.world.patch(VC_JOB, "job", {"spec": spec}, status=False)

    # ---- what must hold ----

    def check(self) -> None:
        for change in self._feed.drain():
            phase = phase_of(change.doc)
            if phase != self._phase:
                assert phase in TABLE[self._phase], f"{self._phase} -> {phase}"
                self._phase = phase
        job = self.job()
        status = job.get("status") or {}
        assert int(status.get("retryCount") or 0) <= job["spec"]["maxRetry"]
        self._counters_are_those_of_the_pods(job, status)
        if not self._held:
            self._nothing_waits(job)

    def _counters_are_those_of_the_pods(self, job: Doc, status: Doc) -> None:
        pods_follow = phase_of(job) in ("Pending", "Running")  # a Job that is over keeps pods that it no longer wants
        wanted = WantedPods(job)
        pods = [read for pod in self.pods() if (read := read_job_pod(pod)) is not None]
        seen: Counter[str] = Counter()
        for pod in pods:
            going = pod.deleting or (pods_follow and pod.name not in wanted)
            seen["terminating" if going else COUNTERS.get(pod.phase, "unknown")] += 1
        fields = (*COUNTERS.values(), "terminating", "unknown")
        assert {name: int(status.get(name) or 0) for name in fields} == {name: seen[name] for name in fields}
        stay = [pod for pod in pods if not pod.deleting and (pod.name in wanted or not pods_follow)]
        by_task = Counter(pod.task for pod in stay)
        told = {name: sum(one["phase"].values()) for name, one in (status.get("taskStatusCount") or {}).items()}
        assert told == dict(by_task)

    def _nothing_waits(self, job: Doc) -> None:
        phase = phase_of(job)
        assert phase not in {"", "Restarting", *ENDING}, "nothing is ending, so nothing is to be waited for"
        assert not list(self.world.store.list(VC_COMMAND, SPACE))
        if phase not in ("Pending", "Running"):
            return
        state = JobState.of(job)
        move_for(phase, "SyncJob", FIXED).rule(job["spec"], state)
        assert state.phase == phase, f"{phase} could be {state.phase}"
        known = {pod["metadata"]["name"] for pod in self.pods()}
        read = [pod for one in self.pods() if (pod := read_job_pod(one)) is not None]
        blocked = waiting_tasks(job, read)
        assert not list(WantedPods(job).missing(known, blocked))

    def end(self) -> None:
        """From here on every pod runs and succeeds: the Job ends, or is suspended, or waits for a task that cannot."""
        if self._held:
            self.happen("release", "", 0)
        for _ in range(8):
            self.happen("wait", "", 20)
            self.happen("pods", "Running", -1)
            self.happen("pods", "Succeeded", -1)
        job = self.job()
        read = [pod for one in self.pods() if (pod := read_job_pod(one)) is not None]
        stuck = not total_replicas(job["spec"]) or waiting_tasks(job, read)
        unknown = any(pod.phase == "Unknown" for pod in read)
        assert phase_of(job) in FINISHED or phase_of(job) == "Aborted" or stuck or unknown


@settings(max_examples=JOBS, deadline=None, suppress_health_check=list(HealthCheck))
@given(job=jobs(), happened=st.lists(happenings, max_size=10))
def test_a_job_follows_the_table_counts_its_pods_and_never_waits_for_nothing(
    job: Doc, happened: list[tuple[str, str, int]]
) -> None:
    life = Life(job)
    for each in happened:
        life.happen(*each)
    life.end()
