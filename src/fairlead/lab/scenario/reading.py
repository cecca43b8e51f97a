"""read_scenario: a scenario from a YAML file. What is wrong is reported whole, each with its line and the fix.

Files that a scenario names are looked for beside it, and one that is not there is a problem of the line that names it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fairlead.config.problems import CheckStage, ConfigProblems
from fairlead.config.problems import Path as FieldPath
from fairlead.config.source import document_source, note_duplicates, parse_source, read_text
from fairlead.core.model.quantity import parse_quantity
from fairlead.lab.scenario.decoding import ScenarioDecoder
from fairlead.lab.scenario.queues import each_queue, names_of_queues
from fairlead.lab.scenario.records import JobClassSpec, LabScenario, LoadSpec

_MORE_THAN_NOTHING = "one entry or more"


def read_scenario(path: str | Path) -> LabScenario:
    """The scenario of a file. Raises ConfigError with all that is wrong with it."""
    path = Path(path)
    source = parse_source(read_text(path), str(path))
    problems = ConfigProblems(source)
    note_duplicates(source, problems)
    if source.more_documents:
        problems.note(CheckStage.STRICT, (), "has more than one document", hint="one scenario a file", original="")
    scenario: LabScenario = ScenarioDecoder(problems, path.parent).record(LabScenario, source.value)
    problems.raise_if_any(before=CheckStage.VALIDATION)
    _check(scenario, problems)
    problems.raise_if_any()
    return scenario


def check_scenario(scenario: LabScenario) -> LabScenario:
    """The same scenario, if it can be played; raises ConfigError otherwise. For scenarios that are made in Python."""
    problems = ConfigProblems(document_source(None, scenario.name))
    _check(scenario, problems)
    problems.raise_if_any()
    return scenario


def _check(scenario: LabScenario, problems: ConfigProblems) -> None:
    def note(path: FieldPath, message: str, hint: str = "") -> None:
        problems.note(CheckStage.VALIDATION, path, message, hint=hint, original="")

    cluster = scenario.cluster
    if not (cluster.nodes or cluster.trace or cluster.snapshot):
        note(("cluster",), "has no nodes", "give it nodes, a trace or a snapshot")
    for name, many in (("loads", scenario.loads), ("policies", scenario.policies)):
        if not many:
            note((name,), "is empty", _MORE_THAN_NOTHING)
        _check_names(name, [one.name for one in many], note)
    if not scenario.seeds:
        note(("seeds",), "is empty", _MORE_THAN_NOTHING)
    if scenario.measure.every <= 0:
        note(("measure", "every"), "is no time", "for example 60s")
    _check_names(("cluster", "queues"), [one.name for one in cluster.queues], note)
    for number, queue in enumerate(cluster.queues):
        if queue.count < 0:
            note(("cluster", "queues", number, "count"), "is not a number of queues", "1 or more")
    for number, shape in enumerate(cluster.nodes):
        _check_resources(shape.resources, ("cluster", "nodes", number, "resources"), note)
        if shape.count < 1:
            note(("cluster", "nodes", number, "count"), "is not a number of nodes", "1 or more")
    if cluster.trace is not None and not cluster.trace.file.is_file():
        note(("cluster", "trace", "file"), f"{cluster.trace.file} is not there")
    if cluster.snapshot is not None and not cluster.snapshot.is_file():
        note(("cluster", "snapshot"), f"{cluster.snapshot} is not there")
    for number, policy in enumerate(scenario.policies):
        if policy.policy and policy.volcano:
            hint = "a batch policy orders the queue of a kube profile: leave out volcano"
            note(("policies", number, "policy"), f"{policy.policy} has no effect on Volcano's rounds", hint)
    queues = set(names_of_queues(cluster.queues)) | {one.name for one in each_queue(cluster.queues)}
    for number, load in enumerate(scenario.loads):
        _check_load(load, ("loads", number), queues, note)


def _check_load(load: LoadSpec, path: FieldPath, queues: set[str], note: Any) -> None:
    if not load.jobs and load.trace is None:
        note(path, "has neither jobs nor a trace", "give it one of them")
    if load.trace is not None and not load.trace.file.is_file():
        note((*path, "trace", "file"), f"{load.trace.file} is not there")
    if load.trace is not None and load.trace.per_pod is not None and load.trace.per_pod < 1:
        note((*path, "trace", "perPod"), "must be 1 or more")
    for number, jobs in enumerate(load.jobs):
        _check_class(jobs, (*path, "jobs", number), queues, note)


def _check_class(jobs: JobClassSpec, path: FieldPath, queues: set[str], note: Any) -> None:
    arrivals = jobs.arrivals
    _check_resources(jobs.resources, (*path, "resources"), note)
    if not arrivals.at and (arrivals.gap is None or (arrivals.count is None and arrivals.within is None)):
        hint = "for example {gap: {exponential: 10s}, count: 100}, or {at: [0s, 5s]}"
        note((*path, "arrivals"), "does not say when jobs arrive", hint)
    for name in (*jobs.queues, *([jobs.queue] if jobs.queue else [])):
        if queues and name not in queues:
            note((*path, "queues" if name in jobs.queues else "queue"), f'there is no queue "{name}" in cluster.queues')
    if jobs.pod_gap and jobs.made_as != "pods":
        hint = "leave it out, or leave out madeAs: the controllers of Jobs create all pods at once"
        note((*path, "podGap"), f"has no effect on pods of a {jobs.made_as}", hint)
    if not 0 <= jobs.fails <= 1:
        note((*path, "fails"), "is not a probability", "between 0 and 1")


def _check_names(path: Any, names: list[str], note: Any) -> None:
    where = path if isinstance(path, tuple) else (path,)
    for at, name in enumerate(names):
        if not name:
            note((*where, at), "has no name", "give it one with name:")
        elif name in names[:at]:
            note((*where, at, "name"), f'the name "{name}" is given twice', "one of its own each")


def _check_resources(resources: Any, path: FieldPath, note: Any) -> None:
    for name, amount in resources.items():
        try:
            wrong = parse_quantity(amount).nanos < 0
        except ValueError:
            wrong = True
        if wrong:
            note((*path, name), f'"{amount}" is not a quantity of {name}', "for example 8, 500m, 32Gi")
