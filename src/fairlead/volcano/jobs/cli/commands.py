"""`fairlead job run|list|view|logs|suspend|resume|delete|wait`: Volcano Jobs, as a person would rather type it.

`fairlead vcctl` is for scripts that depend on the original's flags and words; this is for people.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fairlead.console.cluster_access import ask_cluster, cluster_options
from fairlead.errors import ConfigError, FairleadError, NotFound

if TYPE_CHECKING:
    from fairlead.client.client import KubeApi
    from fairlead.core.model.flow import Doc
    from fairlead.volcano.jobs.cli.waiting import JobScene

_NAMES = click.argument("names", metavar="NAME...", nargs=-1, required=True)


@click.group("job")
def job_group() -> None:
    """Run, list, view, follow, suspend, resume and delete Volcano Jobs."""


def _where(command: Callable[..., None]) -> Callable[..., None]:
    space = click.option("-n", "--namespace", metavar="NAME", help="Default: that of the kubeconfig's context.")
    return space(cluster_options(command))


def _output(*more: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    return click.option(
        "-o", "--output", type=click.Choice(["text", *more, "json", "yaml"]), default="text", show_default=True
    )


def _seconds(context: click.Context, parameter: click.Parameter, value: str | None) -> float | None:
    from fairlead.core.model.durations import parse_duration

    try:
        return None if value is None else parse_duration(value, unit="s")
    except ValueError as error:
        raise click.BadParameter(f"{error}; for example 90, 30s or 5m", context, parameter) from None


_waits = click.option(
    "--timeout", callback=_seconds, metavar="DURATION", help="Give up waiting after so long: 5m, 30s, or seconds."
)


# ---- run ----


@job_group.command("run")
@click.argument("name", required=False)
@click.argument("command", nargs=-1, metavar="[-- COMMAND...]")
@click.option("-f", "--filename", type=click.Path(path_type=Path, dir_okay=False), help="Jobs in YAML or JSON.")
@click.option("--image", default="busybox", show_default=True)
@click.option("--replicas", type=click.IntRange(1), default=1, show_default=True)
@click.option("--min", "minimum", type=click.IntRange(0), help="Pods that start together.  [default: all]")
@click.option("--queue", default="default", show_default=True)
@click.option("--priority", default="", metavar="CLASS")
@click.option("--requests", default="", metavar="cpu=1,memory=1Gi", help="What each pod asks for.")
@click.option("--limits", default="", metavar="cpu=2,memory=2Gi", help="What each pod may use at most.")
@click.option("--gpus", type=click.IntRange(0), default=0, help="GPUs of each pod (nvidia.com/gpu).")
@click.option(
    "--run-time",
    callback=_seconds,
    metavar="DURATION",
    help="How long simulated pods run: 10m, 30s, or seconds.  [default: what `fairlead up --run-time` says, or 1s]",
)
@click.option("--plugin", "plugins", multiple=True, metavar="NAME", help="svc, env, ssh, mpi, …; may be repeated.")
@click.option("--wait", is_flag=True, help="Follow it to its end; exit code 1 unless it completes.")
@_waits
@_output()
@_where
def run_command(
    name: str | None,
    command: tuple[str, ...],
    filename: Path | None,
    image: str,
    replicas: int,
    minimum: int | None,
    queue: str,
    priority: str,
    requests: str,
    limits: str,
    gpus: int,
    run_time: float | None,
    plugins: tuple[str, ...],
    wait: bool,
    timeout: float | None,
    output: str,
    namespace: str | None,
    kubeconfig: Path | None,
    context: str | None,
) -> None:
    """Create a Job of one task called NAME, or those in a file.

    \b
      fairlead job run train --image trainer --replicas 4 --gpus 8 --requests cpu=2 --wait -- python train.py
      fairlead job run -f job.yaml
    """
    from fairlead.volcano.jobs.cli.new_job import NewJob, amounts, jobs_in, made_job, resources_of

    if (name is None) == (filename is None):
        raise click.UsageError("give either the NAME of a new Job or a file (-f)")
    jobs = (
        jobs_in(filename)
        if filename is not None
        else [
            made_job(
                NewJob(
                    name=str(name),
                    image=image,
                    replicas=replicas,
                    minimum=minimum,
                    queue=queue,
                    priority=priority,
                    resources=resources_of(amounts(requests), amounts(limits), gpus),
                    run_time=run_time,
                    plugins=plugins,
                    command=command,
                )
            )
        ]
    )

    async def work(api: KubeApi, default: str) -> bool:
        stored = [await _create(api, job, namespace or default) for job in jobs]
        if output == "text":
            for job in stored:
                click.echo(f"job {job['metadata']['name']} created")
        else:
            _print(stored, output)
        if not wait:
            return True
        own = namespace or stored[0]["metadata"]["namespace"]
        return await _followed(api, own, [job["metadata"]["name"] for job in stored], "", timeout)

    _exit(ask_cluster(work, kubeconfig, context))


async def _create(api: KubeApi, job: Doc, namespace: str) -> Doc:
    from fairlead.core.model.flow import Verb, Write
    from fairlead.volcano.kinds import VC_JOB

    place = (job.get("metadata") or {}).get("namespace") or namespace
    body = {**job, "metadata": {**(job.get("metadata") or {}), "namespace": place}}
    return await api.perform(Write(Verb.CREATE, VC_JOB, place, body["metadata"].get("name", ""), body=body))


# ---- list and view ----


@job_group.command("list")
@click.option("-A", "--all-namespaces", is_flag=True)
@click.option("--queue", help="Only Jobs of this queue.")
@click.option("--phase", help="Only Jobs in this phase.")
@_output("wide")
@_where
def list_command(
    all_namespaces: bool,
    queue: str | None,
    phase: str | None,
    output: str,
    namespace: str | None,
    kubeconfig: Path | None,
    context: str | None,
) -> None:
    """List Jobs."""
    from fairlead.volcano.jobs.cli.tables import listed
    from fairlead.volcano.jobs.phases import phase_of

    async def work(api: KubeApi, default: str) -> list[Doc]:
        return await _jobs(api, "" if all_namespaces else namespace or default)

    jobs = [
        job
        for job in ask_cluster(work, kubeconfig, context)
        if (not queue or job["spec"].get("queue") == queue) and (not phase or phase_of(job) == phase)
    ]
    if output in ("json", "yaml"):
        _print(jobs, output, as_list=True)
    elif not jobs:
        click.echo("no Jobs")
    else:
        click.echo(listed(jobs, now=time.time(), wide=output == "wide", namespaces=all_namespaces))


async def _jobs(api: KubeApi, namespace: str) -> list[Doc]:
    from fairlead.client.port import Query
    from fairlead.volcano.kinds import VC_JOB

    found = (await api.list(VC_JOB, Query(namespace=namespace))).items
    return [{"apiVersion": VC_JOB.api_version, "kind": VC_JOB.kind, **job} for job in found]


@job_group.command("view")
@click.argument("name")
@_output()
@_where
def view_command(name: str, output: str, namespace: str | None, kubeconfig: Path | None, context: str | None) -> None:
    """Show a Job: its tasks, its life so far, and what it waits for."""
    from fairlead.volcano.jobs.cli.tables import viewed
    from fairlead.volcano.jobs.cli.waiting import reasons_of_waiting

    async def work(api: KubeApi, default: str) -> JobScene:
        return await _scene(api, namespace or default, name)

    scene = ask_cluster(work, kubeconfig, context)
    reasons = reasons_of_waiting(scene)
    if output == "text":
        click.echo(viewed(scene, reasons, now=time.time()))
    else:
        _print([{"job": scene.job, "waitsFor": reasons}], output)


async def _scene(api: KubeApi, namespace: str, name: str) -> JobScene:
    from fairlead.client.port import Query
    from fairlead.core.model.kinds import EVENT, POD
    from fairlead.volcano.jobs.cli.waiting import JobScene
    from fairlead.volcano.jobs.job_groups import group_name
    from fairlead.volcano.jobs.job_pods import JOB_NAME
    from fairlead.volcano.kinds import VC_JOB, VC_POD_GROUP, VC_QUEUE

    job = await api.get(VC_JOB, namespace, name)
    group = await _found(api, VC_POD_GROUP, namespace, group_name(job))
    queue = await _found(api, VC_QUEUE, "", job["spec"].get("queue") or "default")
    pods = (await api.list(POD, Query(namespace=namespace, label_selector=f"{JOB_NAME}={name}"))).items
    about = f"involvedObject.kind=Job,involvedObject.name={name}"
    events = (await api.list(EVENT, Query(namespace=namespace, field_selector=about))).items
    own = sorted(
        (one for one in events if one["involvedObject"].get("uid") == job["metadata"]["uid"]),
        key=lambda one: str(one.get("lastTimestamp") or ""),
    )
    return JobScene(job, queue, group, pods, own)


async def _found(api: KubeApi, kind: Any, namespace: str, name: str) -> Doc | None:
    try:
        return await api.get(kind, namespace, name)
    except NotFound:
        return None


# ---- logs ----


@job_group.command("logs")
@click.argument("name")
@click.option("--task", help="Only pods of this task.")
@click.option("--index", type=int, help="Only the pod of this index.")
@click.option("--container", help="Default: the first.")
@click.option("--tail", type=int, metavar="LINES", help="Only the last lines of each pod.")
@_where
def logs_command(
    name: str,
    task: str | None,
    index: int | None,
    container: str | None,
    tail: int | None,
    namespace: str | None,
    kubeconfig: Path | None,
    context: str | None,
) -> None:
    """Print what the pods of a Job wrote, pod by pod. Simulated pods write nothing."""

    async def work(api: KubeApi, default: str) -> bool:
        place = namespace or default
        pods = await _pods(api, place, name, task, index)
        if not pods:
            raise FairleadError(f"no pods of job {place}/{name} match; `fairlead job view {name}` says what it has")
        options = [f"container={container}"] if container else []
        options += [f"tailLines={tail}"] if tail is not None else []
        failed = False
        for pod in pods:
            path = f"/api/v1/namespaces/{place}/pods/{pod}/log?{'&'.join(options)}".rstrip("?")
            try:
                text = (await api.raw(path, accept="*/*")).decode(errors="replace")
            except FairleadError as error:
                click.echo(f"{pod}: {error}", err=True)
                failed = True
                continue
            for line in text.splitlines():
                click.echo(f"{pod}: {line}" if len(pods) > 1 else line)
        return not failed

    _exit(ask_cluster(work, kubeconfig, context))


async def _pods(api: KubeApi, namespace: str, job: str, task: str | None, index: int | None) -> list[str]:
    from fairlead.client.port import Query
    from fairlead.core.model.kinds import POD
    from fairlead.volcano.jobs.job_pods import JOB_NAME, TASK_INDEX, TASK_SPEC

    wanted = {JOB_NAME: job, TASK_SPEC: task, TASK_INDEX: None if index is None else str(index)}
    selector = ",".join(f"{key}={value}" for key, value in wanted.items() if value is not None)
    found = (await api.list(POD, Query(namespace=namespace, label_selector=selector))).items
    return sorted(pod["metadata"]["name"] for pod in found)


# ---- suspend, resume, delete, wait ----


@job_group.command("suspend")
@_NAMES
@_where
def suspend_command(
    names: tuple[str, ...], namespace: str | None, kubeconfig: Path | None, context: str | None
) -> None:
    """Stop Jobs: their pods are deleted until they are resumed."""
    _command_all(names, "AbortJob", "is being suspended", namespace, kubeconfig, context)


@job_group.command("resume")
@_NAMES
@_where
def resume_command(names: tuple[str, ...], namespace: str | None, kubeconfig: Path | None, context: str | None) -> None:
    """Let suspended Jobs go on; it counts as one of their retries."""
    _command_all(names, "ResumeJob", "is being resumed", namespace, kubeconfig, context)


def _command_all(
    names: Sequence[str], action: str, done: str, namespace: str | None, kubeconfig: Path | None, context: str | None
) -> None:
    from fairlead.core.model.flow import Verb, Write
    from fairlead.volcano.kinds import VC_COMMAND, VC_JOB

    async def work(api: KubeApi, default: str) -> None:
        place = namespace or default
        for name in names:
            job = await api.get(VC_JOB, place, name)
            target = {
                "apiVersion": VC_JOB.api_version,
                "kind": "Job",
                "name": name,
                "uid": job["metadata"]["uid"],
                "controller": True,
            }
            body = {
                "apiVersion": VC_COMMAND.api_version,
                "kind": "Command",
                "action": action,
                "target": target,
                "metadata": {"generateName": f"{name}-{action.lower()}-", "namespace": place},
            }
            await api.perform(Write(Verb.CREATE, VC_COMMAND, place, "", body=body))
            click.echo(f"job {name} {done}")

    ask_cluster(work, kubeconfig, context)


@job_group.command("delete")
@_NAMES
@_where
def delete_command(names: tuple[str, ...], namespace: str | None, kubeconfig: Path | None, context: str | None) -> None:
    """Delete Jobs and their pods."""
    from fairlead.core.model.flow import Verb, Write
    from fairlead.volcano.kinds import VC_JOB

    async def work(api: KubeApi, default: str) -> None:
        for name in names:
            await api.perform(Write(Verb.DELETE, VC_JOB, namespace or default, name))
            click.echo(f"job {name} deleted")

    ask_cluster(work, kubeconfig, context)


@job_group.command("wait")
@_NAMES
@click.option("--for", "wanted", default="", metavar="PHASE", help="Default: until they are over.")
@_waits
@_where
def wait_command(
    names: tuple[str, ...],
    wanted: str,
    timeout: float | None,
    namespace: str | None,
    kubeconfig: Path | None,
    context: str | None,
) -> None:
    """Follow Jobs, task by task, until they are over or in a PHASE. Exit code 1 if one ends otherwise or not in time.

    \b
      fairlead job wait train                until it has completed
      fairlead job wait train --for Running
    """
    from fairlead.volcano.jobs.phases import PHASES

    if wanted and wanted not in PHASES:
        raise ConfigError(f'there is no phase "{wanted}"', hint=f"one of {', '.join(PHASES)}")

    async def work(api: KubeApi, default: str) -> bool:
        return await _followed(api, namespace or default, names, wanted, timeout)

    _exit(ask_cluster(work, kubeconfig, context))


async def _followed(api: KubeApi, namespace: str, names: Sequence[str], wanted: str, patience: float | None) -> bool:
    from fairlead.volcano.jobs.cli.progress import follow
    from fairlead.volcano.jobs.phases import COMPLETED

    async def look() -> list[Doc]:
        return [job for job in await _jobs(api, namespace) if job["metadata"]["name"] in set(names)]

    phases = await follow(look, names, wanted, patience=patience)
    for name, phase in phases.items():
        click.echo(f"job {name}: {phase or 'not found'}")
    return all(phase == (wanted or COMPLETED) for phase in phases.values())


# ---- output ----


def _print(documents: Sequence[Any], output: str, *, as_list: bool = False) -> None:
    whole: Any = {"apiVersion": "v1", "kind": "List", "items": list(documents)}
    if not as_list and len(documents) == 1:
        whole = documents[0]
    if output == "json":
        click.echo(json.dumps(whole, indent=2, ensure_ascii=False))
    else:
        import yaml

        click.echo(yaml.safe_dump(whole, sort_keys=False), nl=False)


def _exit(well: bool) -> None:
    if not well:
        sys.exit(1)
