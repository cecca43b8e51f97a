"""How commands ask a scheduler why something is as it is: where they look for one, and the answer of the first.

A scheduler is found through the kubeconfig (a cluster of `fairlead up` answers there), then on the port of a `fairlead
scheduler` on this machine, or where `--server` says.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

import click

from fairlead.errors import ApiError, ConfigError, FairleadError, NotFound

if TYPE_CHECKING:
    from fairlead.client.credentials import Connection

OPS_PORT = "http://127.0.0.1:10259"
_FIND_ONE = "name a cluster with --kubeconfig or a scheduler with --server, or start a cluster with `fairlead up`"
_KINDS = ("Explanation", "GangExplanation", "QueueExplanation")
Command = TypeVar("Command", bound=Callable[..., Any])


class UnknownToScheduler(FairleadError):
    """A scheduler answers, and does not know what it was asked about."""


def server_options(command: Command) -> Command:
    """`--server` and `--token-file`, for a scheduler that no kubeconfig names."""
    server = click.option(
        "--server", metavar="URL", help=f"Ask this scheduler.  [default: the cluster's, then {OPS_PORT}]"
    )
    token = click.option(
        "--token-file", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="The token for --server."
    )
    return server(token(command))


def connections(
    kubeconfig: Path | None, context: str | None, server: str | None, token_file: Path | None
) -> tuple[list[Connection], str]:
    """Whom to ask, in order, and the namespace that is meant when none is named."""
    from fairlead.client.credentials import Connection, connect

    if server is not None:
        if urlsplit(server).scheme not in ("http", "https") or not urlsplit(server).hostname:
            raise click.BadParameter(f"{server!r} is not a URL; for example {OPS_PORT}", param_hint="'--server'")
        try:
            token = token_file.read_text().strip() if token_file is not None else ""
        except OSError as error:
            raise FairleadError(f"{token_file}: {error.strerror}") from error
        return [Connection.to(server, token=token, insecure=True)], "default"
    neighbour = Connection.to(OPS_PORT)
    try:
        cluster = connect(None if kubeconfig is None else str(kubeconfig), context)
    except ConfigError:
        if kubeconfig is not None:
            raise
        return [neighbour], "default"
    return [cluster, neighbour], cluster.namespace


async def ask(
    asked: Sequence[Connection], namespace: str, name: str, *, plural: str = "pods", called: str = ""
) -> dict[str, Any]:
    """The Explanation, from the first who has one. `called` is what the user calls such a thing."""
    from fairlead.client.client import KubeApi
    from fairlead.cluster.server.explaining import explanation_path

    troubles: list[str] = []
    unknown = False
    for connection in asked:
        api = KubeApi(connection, attempts=1)
        try:
            answer = json.loads(await api.raw(explanation_path(namespace, name, plural)))
            if isinstance(answer, dict) and answer.get("kind") in _KINDS:
                return answer
            troubles.append(f"{connection} is not a fairlead")
        except NotFound as error:
            unknown |= error.details.get("kind") == plural
            troubles.append(f"{connection} has no explanations")
        except (ApiError, json.JSONDecodeError) as error:
            troubles.append(str(error))
        finally:
            await api.close()
    if unknown:
        where = f' in namespace "{namespace}"' if namespace else ""
        raise UnknownToScheduler(f'the scheduler knows no {called or plural.removesuffix("s")} "{name}"{where}')
    alone = [connection.server for connection in asked] == [OPS_PORT]
    hint = f"; there is no kubeconfig either: {_FIND_ONE}" if alone else ""
    raise FairleadError(f"no scheduler answers: {'; '.join(troubles)}{hint}")
