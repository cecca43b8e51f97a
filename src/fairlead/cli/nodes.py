"""`fairlead nodes`: simulated nodes join, leave, fail and recover while a cluster runs.

It speaks to the cluster's API like any client, so it works on `fairlead up` and on any cluster whose simulated kubelets
are ours. Nodes that are not simulated are left alone: nobody here could start or stop their machines.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fairlead.cli.fleet import Fleet, NodeShape, parse_shape, parse_zones
from fairlead.console.cluster_access import ask_cluster, cluster_options
from fairlead.errors import ConfigError, FairleadError

if TYPE_CHECKING:
    from fairlead.client.client import KubeApi
    from fairlead.core.model.flow import Doc


@click.group("nodes")
def nodes_group() -> None:
    """Add, remove, fail and recover simulated nodes of a running cluster."""


def _shape(context: click.Context, parameter: click.Parameter, text: str) -> NodeShape:
    try:
        return parse_shape(text)
    except ConfigError as error:
        raise click.BadParameter(str(error), context, parameter) from None


@nodes_group.command("add")
@click.argument("shape", metavar="[COUNT:]RES=N,...", callback=_shape, default="1:cpu=8,memory=32Gi")
@click.option("--zone", default="", help="The zone of these nodes.  [default: none]")
@cluster_options
def add_command(shape: NodeShape, zone: str, kubeconfig: Path | None, context: str | None) -> None:
    """Add nodes of a shape, as `fairlead up --shape` takes it. Names go on where those in the cluster end.

    \b
      fairlead nodes add 5:cpu=64,memory=256Gi,nvidia.com/gpu=8,name=gpu
    """
    zones = parse_zones(zone) if zone else ()

    async def work(api: KubeApi, _: str) -> None:
        from fairlead.core.model.flow import Verb, Write
        from fairlead.core.model.kinds import NODE

        taken = {node["metadata"]["name"] for node in (await api.list(NODE)).items}
        for node in _new_nodes(shape, zones, taken):
            name = node["metadata"]["name"]
            await api.perform(Write(Verb.CREATE, NODE, "", name, body=node))
            click.echo(f"node/{name} added")

    ask_cluster(work, kubeconfig, context)


def _new_nodes(shape: NodeShape, zones: tuple[str, ...], taken: set[str]) -> list[Doc]:
    wanted, prefix = shape.count or 1, shape.name or "node"
    numbers = [int(tail) for name in taken if (tail := name.removeprefix(f"{prefix}-")).isdecimal() and tail != name]
    first = max(numbers, default=-1) + 1
    made = Fleet(wanted, zones, [shape]).documents(now=time.time())
    for number, node in enumerate(made, start=first):
        old, new = node["metadata"]["name"], f"{prefix}-{number}"
        node["metadata"] |= {"name": new, "labels": {**node["metadata"]["labels"], "kubernetes.io/hostname": new}}
        for address in node["status"]["addresses"]:
            address["address"] = new if address["address"] == old else address["address"]
    return made


@nodes_group.command("remove")
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@cluster_options
def remove_command(names: tuple[str, ...], kubeconfig: Path | None, context: str | None) -> None:
    """Delete nodes. Pods on them are gone with them; what owns the pods makes new ones."""

    async def remove(api: KubeApi, node: Doc) -> None:
        from fairlead.core.model.flow import Verb, Write
        from fairlead.core.model.kinds import NODE

        await api.perform(Write(Verb.DELETE, NODE, "", node["metadata"]["name"]))

    _each(names, remove, "removed", kubeconfig, context)


@nodes_group.command("fail")
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@cluster_options
def fail_command(names: tuple[str, ...], kubeconfig: Path | None, context: str | None) -> None:
    """Silence the kubelets of nodes, as a lost machine would: they turn NotReady after about 50 seconds."""
    _each(names, lambda api, node: _annotate(api, node, "true"), "fails from now on", kubeconfig, context)


@nodes_group.command("recover")
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@cluster_options
def recover_command(names: tuple[str, ...], kubeconfig: Path | None, context: str | None) -> None:
    """Let nodes that were made to fail report again."""
    _each(names, lambda api, node: _annotate(api, node, None), "recovers", kubeconfig, context)


async def _annotate(api: KubeApi, node: Doc, value: str | None) -> None:
    from fairlead.cluster.kubelets.simulated_nodes import FAIL
    from fairlead.core.model.flow import PatchType, Verb, Write
    from fairlead.core.model.kinds import NODE

    body = {"metadata": {"annotations": {FAIL: value}}}
    await api.perform(Write(Verb.PATCH, NODE, "", node["metadata"]["name"], body=body, patch_type=PatchType.MERGE))


def _each(
    names: tuple[str, ...],
    change: Callable[[KubeApi, Doc], Awaitable[None]],
    done: str,
    kubeconfig: Path | None,
    context: str | None,
) -> None:
    """Change each node, all of which must exist and be simulated before the first is touched."""

    async def work(api: KubeApi, _: str) -> None:
        from fairlead.cluster.kubelets.simulated_nodes import is_simulated
        from fairlead.core.model.kinds import NODE

        nodes = [await api.get(NODE, "", name) for name in names]
        for node in nodes:
            if not is_simulated(node):
                raise FairleadError(f"node {node['metadata']['name']} is not simulated, so it is left alone")
        for node in nodes:
            await change(api, node)
            click.echo(f"node/{node['metadata']['name']} {done}")

    ask_cluster(work, kubeconfig, context)
