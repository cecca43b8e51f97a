"""`fairlead bug-report`: one archive with what is needed to look into a bug elsewhere, and nothing secret.

    versions.json       fairlead, Python, libraries, platform, the API server
    configuration.yaml  the effective configuration (of --config, or of the running scheduler)
    metrics.txt         of the running scheduler, if there is one
    explanations.json   of pods that wait
    objects/KIND.json   what scheduling reads: nodes, pods, volumes, budgets and so on

Redacted before it is written (cluster/store/redaction.py): no secrets, no configuration of users, no environment, no
arguments, no annotations; names are kept, because scheduling is about them, unless `--anonymous` replaces them too.
"""

from __future__ import annotations

import asyncio
import io
import json
import platform
import tarfile
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fairlead import __version__
from fairlead.console.cluster_access import cluster_options
from fairlead.console.scheduler_search import NotAScheduler, SchedulerChoice, first_answer, server_options
from fairlead.errors import ApiError, ConfigError, FairleadError, NotFound

if TYPE_CHECKING:
    from fairlead.client.client import KubeApi

LIBRARIES = ("aiohttp", "click", "cryptography", "jsonpatch", "kubernetes", "numpy", "orjson", "prometheus-client",
             "pyyaml", "rich")  # fmt: skip
_MOST_EXPLAINED = 200


@click.command("bug-report")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Where to write it.  [default: fairlead-bug-report-TIME.tar.gz]",
)
@click.option(
    "--config",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="The scheduler's configuration file.  [default: the running scheduler's configuration]",
)
@cluster_options
@server_options
@click.option("--anonymous", is_flag=True, help="Replace names of objects, labels and images by numbers.")
def bug_report_command(output: Path | None, config: Path | None, anonymous: bool, **options: Any) -> None:
    """Pack state, effective configuration and versions into one archive, without secrets.

    What cannot be had (no cluster, no scheduler, no right) is left out, and standard error and `versions.json` say so.
    """
    files, missing = asyncio.run(_gather(config, SchedulerChoice.of(options), anonymous=anonymous))
    path = output or Path(time.strftime("fairlead-bug-report-%Y%m%d-%H%M%S.tar.gz"))
    try:
        write_archive(path, files)
    except OSError as error:
        raise FairleadError(f"{path} cannot be written: {error.strerror}") from error
    for one in missing:
        click.echo(f"missing: {one}", err=True)
    click.echo(f"wrote {path}: {', '.join(files)}", err=True)
    click.echo(str(path))


def write_archive(path: Path, files: dict[str, bytes]) -> None:
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(f"fairlead-bug-report/{name}")
            entry.size, entry.mode, entry.mtime = len(content), 0o600, int(time.time())
            archive.addfile(entry, io.BytesIO(content))
    path.chmod(0o600)


async def _gather(
    config: Path | None, asked: SchedulerChoice, *, anonymous: bool
) -> tuple[dict[str, bytes], list[str]]:
    """The files of the archive, and what it lacks."""
    from fairlead.cluster.store.redaction import Redactor

    missing: list[str] = []
    files: dict[str, bytes] = {}
    redaction = Redactor(anonymous=anonymous)
    facts = versions()
    cluster = _cluster(asked, missing)
    if cluster is not None:
        try:
            files |= await _objects(cluster, facts, redaction, missing)
        finally:
            await cluster.close()
    if not anonymous:  # an explanation is words, and words have names in them
        files["explanations.json"] = await _explanations(asked, files, missing)
    files |= await _scheduler(asked, missing)
    if config is not None:
        files["configuration.yaml"] = _configuration(config)
    facts["missing"] = missing
    return {"versions.json": json.dumps(facts, indent=2).encode(), **files}, missing


def versions() -> dict[str, Any]:
    return {
        "fairlead": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "libraries": {name: _version(name) for name in LIBRARIES},
    }


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def _configuration(path: Path) -> bytes:
    """The effective configuration; a file that is wrong is included as it is."""
    import yaml

    from fairlead.assembly.loading import read_config
    from fairlead.assembly.registry import PluginRegistry
    from fairlead.cluster.store.redaction import without_key_material
    from fairlead.kube.config.document import to_document

    try:
        document = to_document(read_config(path, capabilities=PluginRegistry().capabilities))
    except ConfigError as error:
        return f"# {error}\n".encode()
    return yaml.safe_dump(without_key_material(document), sort_keys=True).encode()


def _cluster(asked: SchedulerChoice, missing: list[str]) -> KubeApi | None:
    from fairlead.client.client import KubeApi
    from fairlead.client.credentials import connect

    try:
        return KubeApi(connect(None if asked.kubeconfig is None else str(asked.kubeconfig), asked.context), attempts=2)
    except ConfigError as error:
        if asked.kubeconfig is not None:
            raise
        missing.append(f"objects: no cluster: {error}")
        return None


async def _objects(api: KubeApi, facts: dict[str, Any], redaction: Any, missing: list[str]) -> dict[str, bytes]:
    from fairlead.core.engine.watching import LIVING_PODS
    from fairlead.core.model import kinds
    from fairlead.core.state.object_index import WATCHED

    files: dict[str, bytes] = {}
    try:
        facts["cluster"] = json.loads(await api.raw("/version")).get("gitVersion", "")
    except (ApiError, json.JSONDecodeError) as error:
        missing.append(f"the API server's version: {error}")
        return files
    for kind in (kinds.NODE, LIVING_PODS.kind, *WATCHED):
        try:
            items = [redaction.document(item) for item in (await api.list(kind)).items]
        except ApiError as error:
            missing.append(f"{kind.resource}: {error.message}")
            continue
        files[f"objects/{kind.resource}.json"] = json.dumps(items, indent=1).encode()
    return files


async def _explanations(asked: SchedulerChoice, files: dict[str, bytes], missing: list[str]) -> bytes:
    """Why pods wait, from the scheduler that knows them; a pod that it does not know is left out."""
    from fairlead.cluster.server.explaining import explanation_path

    waiting = [
        item["metadata"]
        for item in json.loads(files.get("objects/pods.json", b"[]"))
        if not item.get("spec", {}).get("nodeName")
    ]
    found: list[Any] = []

    async def explained(api: KubeApi) -> None:
        for metadata in waiting[:_MOST_EXPLAINED]:
            path = explanation_path(metadata.get("namespace", "default"), metadata["name"])
            try:
                found.append(json.loads(await api.raw(path)))
            except NotFound as error:
                if error.details.get("kind") != "pods":
                    raise

    try:
        if waiting:
            await first_answer(asked, explained)
    except FairleadError as error:
        missing.append(f"explanations.json: {error}")
    return json.dumps(found, indent=1).encode()


async def _scheduler(asked: SchedulerChoice, missing: list[str]) -> dict[str, bytes]:
    """What only the scheduler's own port says: its configuration and metrics."""
    from fairlead.cluster.store.redaction import without_key_material

    async def own(api: KubeApi) -> dict[str, bytes]:
        config = json.loads(await api.raw("/configz")).get("componentconfig")
        if config is None:
            raise NotAScheduler(f"{api.connection} is not a fairlead")
        return {
            "configuration.yaml": json.dumps(without_key_material(config), indent=2).encode(),
            "metrics.txt": await api.raw("/metrics", accept="text/plain"),
        }

    try:
        return await first_answer(asked, own)
    except FairleadError as error:
        missing.append(f"configuration and metrics of the running scheduler: {error}")
        return {}
