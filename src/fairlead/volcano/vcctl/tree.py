"""The commands of vcctl and their flags, and the short tools that stand for some of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fairlead.volcano.vcctl.flags import CONNECTION, VcCommand, VcFlag

_JOB_NAME = VcFlag("name", "N", "string", "the name of job")
_JOB_NAMESPACE = VcFlag("namespace", "n", "string", "the namespace of job", "default")
_RESOURCES = "cpu=1000m,memory=100Mi"
_ONE_JOB = (*CONNECTION, _JOB_NAME, _JOB_NAMESPACE)


def _group(name: str, help_: str, *commands: VcCommand) -> VcCommand:
    return VcCommand(name, help_, commands={one.name: one for one in commands})


_JOB = _group(
    "job",
    "vcctl command line operation job",
    VcCommand("delete", "delete a job", _ONE_JOB, verb="delete job"),
    VcCommand(
        "list",
        "list job information",
        (
            *CONNECTION,
            _JOB_NAMESPACE,
            VcFlag("all-namespaces", "", "", "list jobs in all namespaces"),
            VcFlag("queue", "q", "string", "list job with specified queue name"),
            VcFlag("scheduler", "S", "string", "list job with specified scheduler name"),
            VcFlag("selector", "", "string", "fuzzy matching jobName"),
        ),
        verb="list job",
    ),
    VcCommand("resume", "resume a job", _ONE_JOB, verb="resume job"),
    VcCommand(
        "run",
        "run job by parameters from the command line",
        (
            *_ONE_JOB,
            VcFlag("filename", "f", "string", "the yaml file of job"),
            VcFlag("image", "i", "string", "the container image of job", "busybox"),
            VcFlag("limits", "L", "string", "the resource limit of the task", _RESOURCES),
            VcFlag("min", "m", "int", "the minimal available tasks of job", 1),
            VcFlag("replicas", "r", "int", "the total tasks of job", 1),
            VcFlag("requests", "R", "string", "the resource request of the task", _RESOURCES),
            VcFlag("scheduler", "S", "string", "the scheduler for this job", "volcano"),
        ),
        verb="run job",
    ),
    VcCommand("suspend", "abort a job", _ONE_JOB, verb="suspend job"),
    VcCommand("view", "show job information", _ONE_JOB, verb="view job"),
)
_QUEUE_NAME = VcFlag("name", "n", "string", "the name of queue")
_QUEUE = _group(
    "queue",
    "Queue Operations",
    VcCommand(
        "create",
        "creates queue",
        (
            *CONNECTION,
            VcFlag("name", "n", "string", "the name of queue", "test"),
            VcFlag("state", "S", "string", "the state of queue", "Open"),
            VcFlag("weight", "w", "int32", "the weight of the queue", 1),
        ),
        verb="create queue",
    ),
    VcCommand("delete", "delete queue", (*CONNECTION, _QUEUE_NAME), verb="delete queue"),
    VcCommand("get", "get a queue", (*CONNECTION, _QUEUE_NAME), verb="get queue"),
    VcCommand("list", "lists all the queue", CONNECTION, verb="list queue"),
    VcCommand(
        "operate",
        "operate queue",
        (
            *CONNECTION,
            _QUEUE_NAME,
            VcFlag("action", "a", "string", "operate action to queue, valid actions are open, close, update"),
            VcFlag("weight", "w", "int32", "the weight of the queue"),
        ),
        verb="operate queue",
    ),
)


def _stored(kind: str, words: str, plural: str, *, all_namespaces: bool) -> VcCommand:
    """The commands of JobFlows and of JobTemplates."""
    file = VcFlag("file", "f", "string", f"the path to the YAML file containing the {words}")
    name = VcFlag("name", "N", "string", f"the name of {words}")
    namespace = VcFlag("namespace", "n", "string", f"the namespace of {words}", "default")
    everywhere = (VcFlag("all-namespaces", "", "", f"list {plural} in all namespaces"),) if all_namespaces else ()
    form = VcFlag("format", "o", "string", "the format of output", "yaml")
    return _group(
        kind,
        f"vcctl command line operation {kind}",
        VcCommand("create", f"create a {kind}", (*CONNECTION, file), verb=f"create {kind}"),
        VcCommand("delete", f"delete a {kind}", (*CONNECTION, file, name, namespace), verb=f"delete {kind}"),
        VcCommand("describe", f"describe a {kind}", (*CONNECTION, form, name, namespace), verb=f"describe {kind}"),
        VcCommand("get", f"get a {kind}", (*CONNECTION, name, namespace), verb=f"get {kind}"),
        VcCommand("list", f"list {plural}", (*CONNECTION, namespace, *everywhere), verb=f"list {kind}"),
    )


TREE = _group(
    "",
    "",
    VcCommand("help", "Help about any command"),
    _JOB,
    _stored("jobflow", "jobflow", "jobflows", all_namespaces=True),
    _stored("jobtemplate", "job template", "jobtemplates", all_namespaces=False),
    _group(
        "pod",
        "vcctl command line operation pod",
        VcCommand(
            "list",
            "list pod information created by vcjob",
            (
                *CONNECTION,
                _JOB_NAMESPACE,
                VcFlag("all-namespaces", "", "", "list jobs in all namespaces"),
                VcFlag("job", "j", "string", "list pod with specified job name"),
                VcFlag("queue", "q", "string", "list pod with specified queue name"),
            ),
            verb="list pod",
        ),
    ),
    _QUEUE,
    VcCommand("version", "Print the version information"),
)

SHORT_TOOLS: Mapping[str, Sequence[str]] = {
    "vsub": ("job", "run"),
    "vjobs": ("job", "list"),
    "vqueues": ("queue", "list"),
    "vcancel": ("job", "delete"),
    "vsuspend": ("job", "suspend"),
    "vresume": ("job", "resume"),
}
"""Tool -> the command that it is; its -n is the job's name and its -N the namespace."""
