"""`fairlead snapshot`: a cluster's state into one file, and out of it again."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from fairlead.cluster.store.snapshot import RedactionOptions, Snapshot

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.group("snapshot")
def snapshot_group() -> None:
    """Save what scheduling reads of a cluster, real or embedded, and start others from it.

    \b
      fairlead snapshot save prod.snapshot --redact
      fairlead up --from prod.snapshot
    """


@snapshot_group.command("save")
@click.argument("file", type=_FILE)
@click.option("--kubeconfig", metavar="FILE", help="Default: KUBECONFIG, ./fairlead.kubeconfig, ~/.kube/config.")
@click.option("--context", metavar="NAME", help="Which of the kubeconfig's contexts.")
@click.option(
    "--redact",
    is_flag=True,
    help="Leave out what may be private: values of variables, commands, arguments, "
    "probes, and annotations that nobody schedules by.",
)
@click.option("--redact-images", is_flag=True, help="Also replace the registries of images.")
def save_command(file: Path, kubeconfig: str | None, context: str | None, redact: bool, redact_images: bool) -> None:
    """Save a cluster's nodes, pods, workloads, volumes, budgets, quotas and so on in FILE.

    Secrets, config maps and events are never saved. Reading is all this does to the cluster.
    """
    from fairlead.cluster.store.snapshot import RedactionOptions, write_snapshot

    redaction = RedactionOptions(private=redact or redact_images, images=redact_images)
    documents = asyncio.run(_collected(kubeconfig, context, redaction))
    count = write_snapshot(file, documents, now=time.time(), redaction=redaction)
    click.echo(f"saved {count} objects in {file}; try: fairlead up --from {file}")


async def _collected(
    kubeconfig: str | None, context: str | None, redaction: RedactionOptions
) -> list[dict[str, object]]:
    from fairlead.client.client import KubeApi
    from fairlead.client.credentials import connect
    from fairlead.cluster.store.snapshot import collect

    api = KubeApi(connect(kubeconfig, context))
    try:
        return await collect(api, redaction)
    finally:
        await api.close()


@snapshot_group.command("load")
@click.argument("file", type=_FILE)
@click.option(
    "--data",
    required=True,
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="The directory of a new cluster, for `fairlead up --data DIR`.",
)
def load_command(file: Path, data: Path) -> None:
    """Make a cluster of FILE in a directory, to be started with `fairlead up --data DIR`.

    For a cluster that need not last, `fairlead up --from FILE` does without a directory.
    """
    from random import Random

    from fairlead.cluster.store.journal import Journal
    from fairlead.cluster.store.snapshot import read_snapshot
    from fairlead.cluster.store.store import Store

    snapshot = read_snapshot(file)
    store = Store(clock=time.time, rng=Random(), journal=Journal(data))
    try:
        nodes = restored_into(store, snapshot, where=str(data))
    finally:
        store.close()
    click.echo(f"loaded {len(snapshot.documents)} objects, {nodes} of them nodes; try: fairlead up --data {data}")


@snapshot_group.command("show")
@click.argument("file", type=_FILE)
def show_command(file: Path) -> None:
    """Say what is in FILE."""
    from fairlead.cluster.store.snapshot import read_snapshot

    snapshot = read_snapshot(file)
    how = "redacted" if snapshot.header.get("redacted") else "not redacted"
    click.echo(f"saved {snapshot.header.get('savedAt')}, {how}")
    for kind, count in sorted(snapshot.counts.items()):
        click.echo(f"{count:8} {kind}")


def restored_into(store: object, snapshot: Snapshot, *, where: str) -> int:
    """Fill a Store that has nothing of its own yet."""
    from fairlead.cluster.store.snapshot import restore
    from fairlead.cluster.store.store import Store
    from fairlead.core.model import kinds
    from fairlead.errors import FairleadError

    assert isinstance(store, Store)
    if any(True for kind in (kinds.NODE, kinds.POD) for _ in store.list(kind)):
        raise FairleadError(f"{where} holds a cluster already; a snapshot needs an empty one")
    return restore(store, snapshot)
