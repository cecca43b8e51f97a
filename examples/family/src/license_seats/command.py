"""`fairlead licenses`: the pools of a cluster and how many of their seats are used."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from fairlead.console.cluster_access import ask_cluster, cluster_options

if TYPE_CHECKING:
    from fairlead.client.client import KubeApi


@click.command("licenses")
@cluster_options
def licenses_command(kubeconfig: Path | None, context: str | None) -> None:
    """List pools of licenses with their seats."""
    for pool in ask_cluster(_pools, kubeconfig, context):
        used = (pool.get("status") or {}).get("used", 0)
        click.echo(f"{pool['metadata']['name']}: {used} of {pool['spec']['seats']} seats used")


async def _pools(api: KubeApi, namespace: str) -> list[dict]:
    from license_seats.kinds import LICENSE_POOL

    return (await api.list(LICENSE_POOL)).items
