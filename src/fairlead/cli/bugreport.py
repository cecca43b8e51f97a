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
from fairlead.errors import ApiError, ConfigError, FairleadError

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
@click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="The cluster.  [default: KUBECONFIG, ./fairlead.kubeconfig, ~/.kube/config]",
)
@click.option("--context", metavar="NAME", help="Another context of the kubeconfig than the current one.")
@click.option("--server", metavar="URL", help="The port of a running `fairlead scheduler`.  [default: port 10259 here]")
@click.option("--anonymous", is_flag=True, help="Replace names of objects, labels and images by numbers.")
def bug_report_command(
    output: Path | None,
    config: Path | None,
    kubeconfig: Path | None,
    context: str | None,
    server: str | None,
    anonymous: bool,
) -> None:
    """Pack state, effective configuration and versions into one archive, without secrets.

    What cannot be had (no cluster, no scheduler) is left out, and `versions.json` says so.
    """
    files = asyncio.run(_gather(config, kubeconfig, context, server, anonymous=anonymous))
    path = output or Path(time.strftime("fairlead-bug-report-%Y%m%d-%H%M%S.tar.gz"))
    try:
        write_archive(path, files)
    except OSError as error:
        raise FairleadError(f"{path} cannot be written: {error.strerror}") from error
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
    config: Path | None, kubeconfig: Path | None, context: str | None, server: str | None, *, anonymous: bool
) -> dict[str, bytes]:
    from fairlead.cluster.store.redaction import Redactor

    missing: list[str] = []
    files: dict[str, bytes] = {}
    redaction = Redactor(anonymous=anonymous)
    facts = versions()
    cluster = _cluster(kubeconfig, context, missing)
    if cluster is not None:
        try:
            files |= await _objects(cluster, facts, redaction, missing)
        finally:
            await cluster.close()
    scheduler = await _scheduler(server)
    if scheduler is None:
        missing.append("no running scheduler")
    else:
        files |= scheduler
    if config is not None:
        files["configuration.yaml"] = _configuration(config)
    facts["missing"] = missing
    return {"versions.json": json.dumps(facts, indent=2).encode(), **files}


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


def _cluster(kubeconfig: Path | None, context: str | None, missing: list[str]) -> KubeApi | None:
    from fairlead.client.client import KubeApi
    from fairlead.client.credentials import connect

    try:
        return KubeApi(connect(None if kubeconfig is None else str(kubeconfig), context), attempts=2)
    except ConfigError as error:
        if kubeconfig is not None:
            raise
        missing.append(f"no cluster: {error}")
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
    files["explanations.json"] = await _explanations(api, files, redaction)
    return files


async def _explanations(api: KubeApi, files: dict[str, bytes], redaction: Any) -> bytes:
    from fairlead.cluster.server.explaining import explanation_path

    found: list[Any] = []
    for item in json.loads(files.get("objects/pods.json", b"[]")):
        if len(found) == _MOST_EXPLAINED or item.get("spec", {}).get("nodeName") or redaction.anonymous:
            continue
        try:
            path = explanation_path(item["metadata"].get("namespace", "default"), item["metadata"]["name"])
            found.append(json.loads(await api.raw(path)))
        except (ApiError, json.JSONDecodeError):
            break
    return json.dumps(found, indent=1).encode()


async def _scheduler(server: str | None) -> dict[str, bytes] | None:
    from fairlead.client.client import KubeApi
    from fairlead.client.credentials import Connection
    from fairlead.cluster.store.redaction import without_key_material
    from fairlead.console.explanations import OPS_PORT

    api = KubeApi(Connection.to(server or OPS_PORT, insecure=True), attempts=1)
    try:
        config = json.loads(await api.raw("/configz"))["componentconfig"]
        return {
            "configuration.yaml": json.dumps(without_key_material(config), indent=2).encode(),
            "metrics.txt": await api.raw("/metrics", accept="text/plain"),
        }
    except (ApiError, json.JSONDecodeError, KeyError):
        return None
    finally:
        await api.close()
