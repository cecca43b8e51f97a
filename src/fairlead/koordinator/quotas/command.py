"""`fairlead quota list|explain`: Koordinator's quotas, and what one may use, uses and lends, with those above it.

Both read the objects of any cluster. The scheduler writes what is requested, used and granted on each quota every
second, so the objects say all that it knows.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fairlead.console.cluster_access import cluster_options
from fairlead.core.model.quantity import format_quantity
from fairlead.errors import ApiError, FairleadError, NotFound
from fairlead.koordinator.kinds import KOORD_ELASTIC_QUOTA
from fairlead.koordinator.records.quotas import ROOT, ElasticQuota, compile_elastic_quota

if TYPE_CHECKING:
    from fairlead.client.credentials import Connection
    from fairlead.core.model.flow import Doc

_NONE = "there are no quotas (elasticquotas.scheduling.sigs.k8s.io) in this cluster"


@click.group("quota")
def quota_group() -> None:
    """List Koordinator's quotas; show what one may use, uses and offers to others."""


@quota_group.command("list")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@cluster_options
def list_command(output: str, kubeconfig: Path | None, context: str | None) -> None:
    """List all quotas, each under its parent, with what they use and may use."""
    documents = asyncio.run(_documents(kubeconfig, context))
    if output == "json":
        click.echo(json.dumps(documents, indent=2, ensure_ascii=False))
        return
    if not documents:
        click.echo(_NONE, err=True)
        return
    rows = [("Name", "Min", "Max", "Used", "Runtime", "Request"), *quota_rows(_compiled(documents))]
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    for row in rows:
        click.echo("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())


@quota_group.command("explain")
@click.argument("name")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@cluster_options
def explain_command(name: str, output: str, kubeconfig: Path | None, context: str | None) -> None:
    """Show what quota NAME and those above it may use, use and have left, resource by resource."""
    quotas = _compiled(asyncio.run(_documents(kubeconfig, context)))
    explained = explain_quota(quotas, name)
    if output == "json":
        click.echo(json.dumps(explained, indent=2, ensure_ascii=False))
        return
    for line in explanation_lines(explained):
        click.echo(line)


def quota_rows(quotas: Mapping[str, ElasticQuota]) -> Iterator[tuple[str, ...]]:
    """One row for each quota, children below their parent and indented."""

    def under(parent: str, depth: int) -> Iterator[tuple[str, ...]]:
        for quota in sorted(quotas.values(), key=lambda quota: quota.name):
            above = quota.parent if quota.parent in quotas else ""
            if above == parent and quota.name != parent:
                shown = quota.shown
                amounts = (quota.min, quota.max, *(shown.get(key, {}) for key in ("used", "runtime", "request")))
                yield ("  " * depth + quota.name, *map(_text, amounts))
                yield from under(quota.name, depth + 1)

    return under("", 0)


def explain_quota(quotas: Mapping[str, ElasticQuota], name: str) -> dict[str, Any]:
    """A quota and those above it as a document: the sums of each resource, and in words what limits it."""
    if name not in quotas:
        raise FairleadError(f'elasticquotas.scheduling.sigs.k8s.io "{name}" not found')
    path: list[ElasticQuota] = []
    at: str = name
    while at in quotas and at != ROOT and quotas[at] not in path:
        path.append(quotas[at])
        at = quotas[at].parent
    quota = path[0]
    return {
        "kind": "QuotaExplanation",
        "quota": name,
        "tree": quota.tree,
        "lends": quota.lends,
        "path": [{"quota": one.name, "sums": _sums(one)} for one in path],
        "why": list(_why(path)),
    }


def _sums(quota: ElasticQuota) -> dict[str, dict[str, str]]:
    lines = {
        "min": quota.min,
        "max": quota.max,
        **{key: quota.shown.get(key, {}) for key in ("request", "runtime", "used")},
    }
    sums = {}
    for resource in sorted({resource for amounts in lines.values() for resource in amounts}):
        of = {
            line: format_quantity(amounts[resource], resource) for line, amounts in lines.items() if resource in amounts
        }
        if resource in lines["runtime"]:
            left = max(0, lines["runtime"][resource] - lines["used"].get(resource, 0))
            of["left"] = format_quantity(left, resource)
        sums[resource] = of
    return sums


def _why(path: Sequence[ElasticQuota]) -> Iterator[str]:
    if not any(quota.shown.get("runtime") for quota in path):
        yield "no scheduler has written what it is granted: is one running with Koordinator's profile?"
    for quota in path:
        runtime, used = quota.shown.get("runtime", {}), quota.shown.get("used", {})
        for resource, amount in sorted(runtime.items()):
            if used.get(resource, 0) > amount:
                yield f"{quota.name} uses more {resource} than it is granted"
            elif quota.shown.get("request", {}).get(resource, 0) > amount:
                limit = "its maximum" if amount >= quota.max.get(resource, amount + 1) else "what others leave"
                yield f"{quota.name} asks for more {resource} than it is granted; the limit is {limit}"


def explanation_lines(explained: Mapping[str, Any]) -> Iterator[str]:
    tree = f" of tree {explained['tree']}" if explained["tree"] else ""
    yield f"quota {explained['quota']}{tree}, which {'lends' if explained['lends'] else 'does not lend'}"
    for place in explained["path"]:
        yield f"{place['quota']}:"
        for resource, sums in place["sums"].items():
            yield f"  {resource}: " + ", ".join(f"{line} {amount}" for line, amount in sums.items())
    yield from explained["why"]


def _text(amounts: Mapping[str, int]) -> str:
    return ",".join(f"{name}={format_quantity(amount, name)}" for name, amount in sorted(amounts.items())) or "-"


def _compiled(documents: Sequence[Doc]) -> dict[str, ElasticQuota]:
    made = (compile_elastic_quota(document) for document in documents)
    return {quota.name: quota for quota in made}


async def _documents(kubeconfig: Path | None, context: str | None) -> list[Doc]:
    from fairlead.client.client import KubeApi
    from fairlead.client.credentials import connect

    cluster: Connection = connect(None if kubeconfig is None else str(kubeconfig), context)
    api = KubeApi(cluster, attempts=1)
    try:
        listed = json.loads(await api.raw(KOORD_ELASTIC_QUOTA.path()))
    except NotFound as error:
        raise FairleadError("this cluster does not know quotas: elasticquotas.scheduling.sigs.k8s.io") from error
    except (ApiError, json.JSONDecodeError) as error:
        raise FairleadError(str(error)) from error
    finally:
        await api.close()
    return sorted(listed.get("items") or (), key=lambda document: str(document["metadata"]["name"]))
