"""The records of a scenario. In YAML the same fields have names in camel case: `start_delay` is `startDelay`.

A Scenario is a value: two equal ones give equal runs. `decoding.py` reads these classes to know the fields, their types
and their defaults, and `json_schema` makes the schema for editors from them, so there is one list of fields.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

Seconds = Annotated[float, "a duration"]
"""In YAML a duration (`1m30s`) or a number of seconds."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """What a number or a duration is drawn from. In YAML a plain value, or a mapping with the name of one law:
    `{exponential: 5m}` (mean), `{uniform: [1m, 5m]}`, `{lognormal: [5m, 1.2]}` (median, sigma), `{pareto: [1m, 1.5]}`
    (smallest, alpha) or `{choice: [1, 2, 4]}`."""

    law: str
    values: tuple[float, ...]


def constant(value: float) -> Distribution:
    """A distribution that always gives this value."""
    return Distribution("constant", (value,))


@dataclass(frozen=True, slots=True)
class ShapeSpec:
    """So many equal nodes, called `name-0`, `name-1` and so on."""

    count: int = 1
    name: str = "node"
    resources: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: Sequence[Any] = ()
    devices: int = 0
    """Devices of the class `gpu.example.com` that the node publishes in a ResourceSlice."""


@dataclass(frozen=True, slots=True)
class NodeTraceSpec:
    """A list of nodes in a CSV file, packed with gzip or not. `copies` repeats the whole list. In the format `omega`
    it is an initial cell: machines of 4 cpus and 16 GB, less what is taken on each."""

    file: Path = Path()
    format: Literal["openb", "csv", "omega"] = "openb"
    copies: int = 1


@dataclass(frozen=True, slots=True)
class QueueSpec:
    """A queue. With the Volcano profile it is a Queue; elsewhere it is a name by which results are grouped. `weight`
    gives the share that it deserves, unless `deserved` does. With a `count` it is so many equal queues, called
    `name-0`, `name-1` and so on. `dequeue_strategy` says whether jobs may overtake one of their queue that cannot be
    placed."""

    name: str = ""
    count: int = 0
    weight: int = 1
    parent: str = ""
    deserved: Mapping[str, str] = field(default_factory=dict)
    capability: Mapping[str, str] = field(default_factory=dict)
    guarantee: Mapping[str, str] = field(default_factory=dict)
    dequeue_strategy: Literal["traverse", "fifo"] = "traverse"


@dataclass(frozen=True, slots=True)
class ClusterSpec:
    """Nodes by shape, from a trace, or from a snapshot that `fairlead snapshot save` wrote, or several of these.
    `zones` and `racks` are labels dealt out in turn; with `hypernodes` each rack is a HyperNode as well."""

    nodes: Sequence[ShapeSpec] = ()
    trace: NodeTraceSpec | None = None
    snapshot: Path | None = None
    zones: int = 0
    racks: int = 0
    hypernodes: bool = False
    queues: Sequence[QueueSpec] = ()


@dataclass(frozen=True, slots=True)
class ArrivalSpec:
    """When jobs of a class arrive: `count` of them, or as many as come within `within`. `gap` is drawn between two
    arrivals, and `burst` jobs arrive together each time; `at` lists times instead. The first arrives at `first`."""

    gap: Distribution | None = None
    count: int | None = None
    within: Seconds | None = None
    burst: int = 1
    first: Seconds = 0.0
    at: Sequence[Seconds] = ()


@dataclass(frozen=True, slots=True)
class JobClassSpec:
    """Jobs of one kind. Each has `pods` equal pods of `resources`, which run for `duration`; a `gang` starts whole or
    not at all. The work of a gang's pods goes on only while all of them run; `runs_together` says the same of a job
    that is no gang for the scheduler, or the opposite of a gang. Bare pods are created together, or one every
    `pod_gap`. `queues` gives each of these queues its own stream of arrivals; a queue with a `count` is all of its
    queues. `made_as` is what is made: bare pods, a Job of `batch/v1`, or a Job of Volcano's; the controllers of the
    last two replace pods that are lost."""

    name: str = "job"
    arrivals: ArrivalSpec = field(default_factory=ArrivalSpec)
    pods: Distribution = field(default_factory=lambda: constant(1))
    gang: bool = False
    runs_together: bool | None = None
    pod_gap: Seconds = 0.0
    resources: Mapping[str, str] = field(default_factory=dict)
    duration: Distribution | None = None
    start_delay: Distribution | None = None
    priority: int = 0
    queue: str = ""
    queues: Sequence[str] = ()
    users: Sequence[str] = ()
    fails: float = 0.0
    """The probability that a pod ends with exit code 1."""
    made_as: Literal["pods", "job", "volcano-job"] = "pods"
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    node_selector: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class JobTraceSpec:
    """Jobs in a file, packed with gzip or not. In the format `csv`, `columns` names the column of each of our fields
    (name, arrival, duration, pods, class, queue, user, priority, estimate; gpus and cpus of the whole job, which are
    split into equal pods; nodes, a number of pods; start and end, in the place of duration) and `resources` the column
    of each resource of a pod; of the first eight, one whose column has the field's own name need not be listed.
    Arrivals are numbers or dates. `helios` and `philly` are such tables with the columns of these recordings; `swf` is
    the Standard Workload Format. `per_pod` is the most GPUs (in `swf` processors) that a pod takes: as many as the
    largest node has, unless given. Times are multiplied by `time_scale`. `order` keeps the jobs of the file, deals
    their times out to them anew (`shuffled`), draws as many with replacement for the times of the file (`sampled`) or
    with their own times (`bootstrap`), with the seed of the run; `jitter` moves each arrival by up to so much, earlier
    or later. `copies` repeats the list. The other formats are job lists of papers; in `gavel` arrivals are in units of
    the mean gap, and `time_scale` is that gap in seconds."""

    file: Path = Path()
    format: Literal["openb", "csv", "helios", "philly", "swf", "omega", "pool", "shockwave", "gavel"] = "csv"
    columns: Mapping[str, str] = field(default_factory=dict)
    resources: Mapping[str, str] = field(default_factory=dict)
    time_scale: float = 1.0
    order: Literal["file", "shuffled", "sampled", "bootstrap"] = "file"
    jitter: Seconds = 0.0
    per_pod: int | None = None
    limit: int | None = None
    copies: int = 1
    gap: Distribution | None = None
    """Arrivals with these gaps, in the place of the times of the file."""
    burst: int = 1
    """How many jobs arrive together after each gap."""
    gang: bool = True


@dataclass(frozen=True, slots=True)
class LoadSpec:
    """Jobs that arrive: drawn from classes, read from a trace, or both."""

    name: str = "load"
    jobs: Sequence[JobClassSpec] = ()
    trace: JobTraceSpec | None = None


@dataclass(frozen=True, slots=True)
class NodeFailureSpec:
    """Each node falls silent after times drawn from `every`, and comes back after `repair`."""

    every: Distribution = field(default_factory=lambda: Distribution("exponential", (86400.0,)))
    repair: Distribution = field(default_factory=lambda: constant(600.0))


@dataclass(frozen=True, slots=True)
class LatencySpec:
    """How long a change takes to be seen (`watch`), a write such as a bind to be performed (`bind`), and a bound pod to
    start (`start`). None takes no time."""

    watch: Distribution | None = None
    bind: Distribution | None = None
    start: Distribution | None = None


@dataclass(frozen=True, slots=True)
class PolicySpec:
    """One scheduler: a KubeSchedulerConfiguration as a file, a preset or inline (`config`), a Volcano configuration as
    a file or a preset (`volcano`), a batch policy by name (`policy`), and plugins in Python as `module:name` or
    `file.py:name`.
    `fifo` lets no job overtake the first that waits, `easy` only those that do not delay it by the estimates; `sjf`
    tries jobs with the shortest estimates first, `smallest` those that ask for least. Without a name the policy is
    called after its batch policy, or `default`. `scheduler_name` is what pods name; it is `volcano` if the Volcano
    profile is configured. `period` is the time between two rounds. `ties` is how one of equally good nodes is chosen:
    any, as kube-scheduler does, or the first of the table."""

    name: str = ""
    config: Any = None
    volcano: str = ""
    policy: Literal["fifo", "easy", "sjf", "smallest"] | None = None
    plugins: Sequence[Any] = ()
    scheduler_name: str = ""
    period: Seconds = 1.0
    ties: Literal["random", "first"] = "random"

    def __post_init__(self) -> None:
        if not self.name:
            object.__setattr__(self, "name", self.policy or "default")


@dataclass(frozen=True, slots=True)
class FitSpec:
    """A shape of pods; it is counted how many of it would fit now."""

    name: str = ""
    resources: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MeasureSpec:
    """`every` is the time between two samples. `decisions` False leaves the table of decisions empty. `fragmentation`
    computes the measure of the FGD paper, for pods with GPUs that can be shared."""

    every: Seconds = 60.0
    fits: Sequence[FitSpec] = ()
    fragmentation: bool = False
    decisions: bool = True


@dataclass(frozen=True, slots=True)
class StopSpec:
    """A run stops at `at`, or as soon as all jobs have arrived and ended (`when: done`), or no pod waits (`placed`),
    but not after `at`. Unless it is to go on until `at` (`when: time`), it also stops when nothing can happen any more:
    no job is to come, nothing that runs will end, and either all jobs that wait can never fit or nothing has happened
    for `idle`."""

    at: Seconds = 30 * 86400.0
    when: Literal["done", "placed", "time"] = "done"
    idle: Seconds = 3600.0


@dataclass(frozen=True, slots=True)
class LabScenario:
    """An experiment. `controllers` are those that run beside the scheduler, as `fairlead up --controllers` names them.
    `keep_ended` False deletes pods as soon as they have ended, so that memory does not grow with them."""

    name: str = "scenario"
    cluster: ClusterSpec = field(default_factory=ClusterSpec)
    loads: Sequence[LoadSpec] = ()
    policies: Sequence[PolicySpec] = (PolicySpec(),)
    latencies: LatencySpec = field(default_factory=LatencySpec)
    node_failures: NodeFailureSpec | None = None
    measure: MeasureSpec = field(default_factory=MeasureSpec)
    stop: StopSpec = field(default_factory=StopSpec)
    seeds: Sequence[int] = (1,)
    controllers: str = "all"
    keep_ended: bool = False
