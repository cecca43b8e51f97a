"""How commands reach a cluster: the options that name one, and one function that opens and closes the connection."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from fairlead.client.client import KubeApi

Answer = TypeVar("Answer")
Command = TypeVar("Command", bound=Callable[..., Any])
Work = Callable[["KubeApi", str], Coroutine[Any, Any, Answer]]
"""What to do with a cluster, and the namespace of the kubeconfig's context."""


def cluster_options(command: Command) -> Command:
    """`--kubeconfig` and `--context`; the order of the defaults is that of `client.credentials.connect`."""
    return _options(command, "Default: KUBECONFIG, ./fairlead.kubeconfig, ~/.kube/config.")


def controller_cluster_options(command: Command) -> Command:
    """`cluster_options` for what may also run in a pod of the cluster, with the pod's own credentials."""
    return _options(command, "Default: KUBECONFIG, ./fairlead.kubeconfig, ~/.kube/config, the pod's own.")


def _options(command: Command, defaults: str) -> Command:
    kubeconfig = click.option(
        "--kubeconfig", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help=defaults
    )
    context = click.option("--context", metavar="NAME", help="Another context of the kubeconfig than the current one.")
    return kubeconfig(context(command))


def ask_cluster(work: Work[Answer], kubeconfig: Path | None, context: str | None) -> Answer:
    """What `work` returns for the cluster that is meant. Raises ConfigError if none is, ApiError if it fails."""
    from fairlead.client.client import KubeApi
    from fairlead.client.credentials import connect

    connection = connect(None if kubeconfig is None else str(kubeconfig), context)

    async def run() -> Answer:
        api = KubeApi(connection, attempts=2)
        try:
            return await work(api, connection.namespace)
        finally:
            await api.close()

    return asyncio.run(run())
