"""SchedulingEnv: a Gymnasium environment in which an agent chooses the node of every pod of a scenario.

    reset ─▶ the first pod that waits ─▶ step(node) ─▶ the scheduler tries that node ─▶ the next pod that waits ...

The scheduler, the Store, the kubelets and the controllers are those of `fairlead lab run`. A plugin holds every pod at
PreEnqueue until the agent has decided, and leaves only the chosen node in PreFilter, so an action that no filter would
allow is refused as in a cluster. Actions are numbers of nodes; one more means that the pod waits until something
happens.

Invariant: the same scenario, seed and actions give the same observations and rewards.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
from gymnasium import spaces

from fairlead.core.framework.cycle import Cycle
from fairlead.core.framework.effects import Effects
from fairlead.core.framework.plugin import Plugin
from fairlead.core.model.reasons import Status, unresolvable
from fairlead.errors import ConfigError
from fairlead.lab.play.run import LabRun
from fairlead.lab.scenario.policies import scheduler_name_of
from fairlead.lab.scenario.reading import check_scenario, read_scenario

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.core.engine.scheduler import Scheduler
    from fairlead.core.model.pod import Pod
    from fairlead.core.state.cluster import Cluster
    from fairlead.lab.scenario.records import LabScenario

Observation = dict[str, Any]
Reward = Callable[["Waited"], float]
RESOURCES = ("cpu", "memory", "nvidia.com/gpu")
"""The fields of an observation of nodes and pods, in this order."""
_WAITING = "waiting for the agent to choose a node"


class Waited:
    """What happened since the last step: `pod_seconds` that pods have waited, whether the action was `refused`, and how
    many jobs have `ended`."""

    __slots__ = ("ended", "pod_seconds", "refused")

    def __init__(self, pod_seconds: float, *, refused: bool, ended: int) -> None:
        self.pod_seconds, self.refused, self.ended = pod_seconds, refused, ended


def less_waiting(what: Waited) -> float:
    """The usual reward: minus the time that pods have waited, in hours, and 0.01 less for a node that refused."""
    return -what.pod_seconds / 3600 - 0.01 * what.refused


class AgentsChoice(Plugin):
    """Keeps pods out of the active queue until a node is chosen for them, and then leaves only that node."""

    name = "AgentsChoice"

    def __init__(self) -> None:
        self.undecided: dict[str, Pod] = {}
        self.chosen: dict[str, str] = {}

    def pre_enqueue(self, pod: Pod, cluster: Cluster) -> Status | None:
        if pod.uid in self.chosen:
            return None
        self.undecided[pod.uid] = pod
        return unresolvable(_WAITING)

    def pre_filter(self, cycle: Cycle) -> frozenset[str] | None:
        node = self.chosen.get(cycle.pod.uid)
        return None if node is None else frozenset({node})


class NoTables:
    """Takes the rows of a run and keeps none."""

    def add(self, table: str, *row: Any) -> None:
        return None


class SchedulingEnv(gymnasium.Env[Observation, np.int64]):
    """`scenario` is a file or a LabScenario; its first policy is the one whose filters count, and `load` is the name of
    a load (the first if empty). `reset(seed=N)` plays the load with that seed."""

    metadata = {"render_modes": []}

    def __init__(
        self, scenario: LabScenario | str | Path, *, load: str = "", reward: Reward = less_waiting, most_steps: int = 0
    ) -> None:
        self._base = Path(scenario).parent if isinstance(scenario, str | Path) else Path()
        self._scenario = read_scenario(scenario) if isinstance(scenario, str | Path) else check_scenario(scenario)
        self._load = next(one for one in self._scenario.loads if load in ("", one.name))
        if self._scenario.policies[0].volcano:
            raise ConfigError(
                f"policy {self._scenario.policies[0].name} works in rounds, in which no agent can choose",
                hint="put a policy without `volcano` first",
            )
        self._reward, self._most_steps = reward, most_steps
        self._begin(0)
        self.node_names = tuple(doc["metadata"]["name"] for doc in self._run.cluster.list("nodes"))
        count = len(self.node_names)
        self.action_space = spaces.Discrete(count + 1)
        self.observation_space = spaces.Dict(
            free=spaces.Box(0.0, 1.0, (count, len(RESOURCES)), np.float64),
            asks=spaces.Box(0.0, 1.0, (len(RESOURCES),), np.float64),
            waiting=spaces.Box(0.0, 1.0, (1,), np.float64),
            feasible=spaces.MultiBinary(count + 1),
        )

    @property
    def time(self) -> float:
        """Seconds of virtual time since the start."""
        return self._run.time()

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        super().reset(seed=seed)
        self._begin(int(self.np_random.integers(2**31)))
        self._to_next()
        return self._observe(), self._about()

    def step(self, action: np.int64) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Put the pod on a node, or let it wait; go on to the next pod that waits."""
        pod, refused, unended = self._pod, False, self._run.recorder.unended
        self._steps += 1
        if pod is not None and int(action) < len(self.node_names):
            refused = not self._place(pod, self.node_names[int(action)])
        elif pod is not None:
            self._set_aside.add(pod.uid)
        if refused and pod is not None:
            self._set_aside.add(pod.uid)
        seconds = self._to_next()
        what = Waited(seconds, refused=refused, ended=unended - self._run.recorder.unended)
        over = self._pod is None
        cut = not over and 0 < self._most_steps <= self._steps
        return self._observe(), self._reward(what), over, cut, self._about()

    # ---- the run ----

    def _begin(self, seed: int) -> None:
        self._choice = AgentsChoice()
        first = self._scenario.policies[0]
        policy = replace(first, plugins=[*first.plugins, self._choice])
        self._run = LabRun(self._scenario, policy, self._load, seed, NoTables(), base=self._base)
        self._scheduler_name = scheduler_name_of(policy)
        self._run.begin()
        self._set_aside: set[str] = set()
        self._pod: Pod | None = None
        self._steps = 0

    def _to_next(self) -> float:
        """Let time pass until a pod waits for a decision, or the run is over; the pod-seconds that were waited."""
        seconds = 0.0
        runtime, stop = self._run.cluster.runtime, self._scenario.stop
        runtime.settle()
        self._pod = self._waiting_pod()
        while self._pod is None and not self._run.recorder.is_done and self._run.time() < stop.at:
            now, waiting = self._run.time(), len(self._choice.undecided)
            if not self._run.next_event():
                break
            seconds += (self._run.time() - now) * waiting
            if self._run.time() > now:
                self._set_aside.clear()
            self._pod = self._waiting_pod()
        return seconds

    def _waiting_pod(self) -> Pod | None:
        pods = self._ask(lambda scheduler: scheduler.cluster.pods)
        undecided = self._choice.undecided
        for uid in [uid for uid in undecided if uid not in pods or pods[uid].seen.node_name]:
            del undecided[uid]
        return next((pods[uid].seen for uid in undecided if uid not in self._set_aside), None)

    def _place(self, pod: Pod, node: str) -> bool:
        """Try a node; whether the pod is there now."""
        self._choice.chosen[pod.uid] = node
        self._ask(lambda scheduler: scheduler.backlog.activate([pod], scheduler.now))
        self._run.cluster.runtime.settle()
        del self._choice.chosen[pod.uid]
        pod_state = self._ask(lambda scheduler: scheduler.cluster.pods).get(pod.uid)
        if pod_state is not None and pod_state.row < 0:
            return False
        self._choice.undecided.pop(pod.uid, None)
        return True

    def _ask(self, question: Callable[[Any], Any]) -> Any:
        """Ask the scheduler."""
        return self._run.cluster.runtime.ask(self._run.scheduler, question).result()

    # ---- what the agent sees ----

    def _observe(self) -> Observation:
        """`free` and `asks` as parts of the largest node, in the order of RESOURCES; `waiting` grows from 0 towards 1
        with the number of pods that wait (ten are 0.5); `feasible` are the actions that no filter refuses."""
        free, asks, feasible = self._ask(self._look)
        waiting = len(self._choice.undecided)
        return {"free": free, "asks": asks, "waiting": np.array([waiting / (waiting + 10)]), "feasible": feasible}

    def _look(self, scheduler: Scheduler) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int8]]:
        """Free and asked amounts as parts of the largest node, and where the pod may be; the last one is to wait."""
        table = scheduler.cluster.table
        rows = [table.row_of.get(name, -1) for name in self.node_names]
        free = np.zeros((len(rows), len(RESOURCES)))
        asks = np.zeros(len(RESOURCES))
        request = self._pod.shape.request if self._pod is not None else {}
        for at, name in enumerate(RESOURCES):
            offered, taken = table.allocatable_column(name), table.requested_column(name)
            largest = max(1, int(offered[: table.high].max(initial=1)))
            free[:, at] = [max(0, int(offered[row] - taken[row])) / largest if row >= 0 else 0.0 for row in rows]
            asks[at] = min(1.0, request.get(name, 0) / largest)
        feasible = np.ones(len(rows) + 1, dtype=np.int8)
        ok = self._feasible(scheduler)
        feasible[:-1] = [row >= 0 and ok is not None and bool(ok[row]) for row in rows]
        return free, asks, feasible

    def _feasible(self, scheduler: Scheduler) -> NDArray[np.bool_] | None:
        """The rows that no filter refuses to the pod."""
        if self._pod is None:
            return None
        profile = scheduler.profiles[self._scheduler_name]
        evaluator = scheduler.pods.evaluators[self._scheduler_name]
        cycle = Cycle(
            pod=self._pod,
            cluster=scheduler.cluster,
            profile=profile,
            now=scheduler.now,
            rng=Random(0),
            effects=Effects(),
        )
        if evaluator.pre_filter(cycle).status is not None:
            return None
        return evaluator.judge(cycle).ok

    def _about(self) -> dict[str, Any]:
        return {"time": self.time, "pod": self._pod.key if self._pod is not None else ""}
