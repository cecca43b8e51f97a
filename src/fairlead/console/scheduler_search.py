"""How commands find the scheduler that they have a question for, and make sure that it is the right one.

    --server URL ──▶ that one;  if it stands by, or has another certificate ──▶ the leader
    otherwise    ──▶ the cluster of the kubeconfig (a cluster of `fairlead up` answers itself)
                 ──▶ the leader, which its lease names ──▶ the schedulers of this user on this machine

The lease of a scheduler says in an annotation where its port is and which certificate it has. It is reached at the
address of its pod, or through `kubectl port-forward`. Only leases that are named are believed (`--lease`), by default
those of the chart and of kube-scheduler: anybody who owns a namespace may make others, to be sent tokens.

Invariant: a token is sent only to a port whose certificate was verified, or to plain HTTP on loopback.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import re
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

import click

from fairlead.errors import (
    ApiError,
    ConfigError,
    FairleadError,
    Forbidden,
    MethodNotAllowed,
    NotFound,
    NotLeading,
    Unauthorized,
    Unreachable,
)

if TYPE_CHECKING:
    from fairlead.client.client import KubeApi
    from fairlead.client.credentials import Connection
    from fairlead.console.port_file import LocalPort

ANNOTATION = "fairlead.io/port"
"""Of a lease: JSON with the holder's identity, the address and the certificate of its port, and its pod."""
OPS_PORT = "http://127.0.0.1:10259"
"""The port of a scheduler that was started with --insecure-http."""
USUAL_LEASES = (("fairlead-system", "fairlead"), ("kube-system", "kube-scheduler"))
_FIND_ONE = "name a cluster with --kubeconfig or a scheduler with --server, or start a cluster with `fairlead up`"
_REACHABLE_WITHIN, _FORWARDED_WITHIN = 2.0, 20.0
_FORWARDING = re.compile(rb"Forwarding from 127\.0\.0\.1:(\d+)")
Command = TypeVar("Command", bound=Callable[..., Any])
Answer = TypeVar("Answer")


class NotAScheduler(FairleadError):
    """What was asked is something else, or has no answer to this question."""


@dataclass(frozen=True, slots=True)
class SchedulerChoice:
    """Which scheduler is meant, as the options say."""

    kubeconfig: Path | None = None
    context: str | None = None
    server: str | None = None
    token_file: Path | None = None
    certificate_authority: Path | None = None
    insecure_skip_tls_verify: bool = False
    lease: tuple[str, str] | None = None

    @classmethod
    def of(cls, options: dict[str, Any]) -> SchedulerChoice:
        """Takes the options of `server_options` and `cluster_options` out of a command's."""
        return cls(**{field.name: options.pop(field.name) for field in fields(cls) if field.name in options})


def _lease(context: click.Context, parameter: click.Parameter, value: str | None) -> tuple[str, str] | None:
    if value is None:
        return None
    namespace, slash, name = value.partition("/")
    if not (namespace and slash and name) or "/" in name:
        raise click.BadParameter(f"{value!r} is not NAMESPACE/NAME", context, parameter)
    return namespace, name


def server_options(command: Command) -> Command:
    """The options by which a scheduler is found that no kubeconfig names, and by which it is trusted."""
    file = click.Path(path_type=Path, dir_okay=False)
    usual = ", ".join("/".join(one) for one in USUAL_LEASES)
    options = (
        click.option(
            "--server", metavar="URL", help="Ask this scheduler.  [default: the cluster's, then those on this machine]"
        ),
        click.option(
            "--token-file", type=file, metavar="FILE", help="The token for its port.  [default: the kubeconfig's]"
        ),
        click.option(
            "--certificate-authority",
            type=file,
            metavar="FILE",
            help="Who signed the certificate of --server.  [default: the lease's annotation says which it is]",
        ),
        click.option(
            "--insecure-skip-tls-verify", is_flag=True, help="Believe any certificate of --server, and send no token."
        ),
        click.option("--lease", callback=_lease, metavar="NAMESPACE/NAME", help=f"Its lease.  [default: {usual}]"),
    )
    for option in reversed(options):
        command = option(command)
    return command


async def first_answer(asked: SchedulerChoice, put: Callable[[KubeApi], Awaitable[Answer]]) -> Answer:
    """What `put` returns for the first scheduler that answers. What it raises because the other side is no scheduler,
    stands by or lets nobody in leads to the next; if none is left, FairleadError says what all of them said."""
    from fairlead.client.client import KubeApi

    troubles: list[str] = []
    refusal: ApiError | None = None
    async with AsyncExitStack() as opened:
        search = _Search(asked, opened)
        async for connection in search.candidates():
            api = KubeApi(connection, attempts=1)
            try:
                return await put(api)
            except (NotFound, MethodNotAllowed):
                troubles.append(f"{connection} has no scheduler that answers")
            except NotLeading as error:
                search.asks_leader = True
                troubles.append(f"{connection}: {error}")
            except (Unauthorized, Forbidden) as error:
                refusal = error
                troubles.append(f"{connection}: {error}")
            except Unreachable as error:
                search.asks_leader = search.asks_leader or "certificate" in str(error).lower()
                troubles.append(str(error))
            except (NotAScheduler, json.JSONDecodeError) as error:
                troubles.append(str(error))
            finally:
                await api.close()
    if refusal is not None and len(troubles) == 1:
        raise refusal
    alone = not search.found_cluster and asked.server is None
    hint = f"; there is no kubeconfig either: {_FIND_ONE}" if alone else ""
    raise FairleadError(f"no scheduler answers: {'; '.join([*troubles, *search.troubles])}{hint}")


def namespace_of(asked: SchedulerChoice) -> str:
    """The namespace that is meant when none is named."""
    cluster = cluster_of(asked)
    return "default" if cluster is None else cluster.namespace


def cluster_of(asked: SchedulerChoice) -> Connection | None:
    """The cluster that the options name, or that is found without them."""
    from fairlead.client.credentials import connect

    try:
        return connect(None if asked.kubeconfig is None else str(asked.kubeconfig), asked.context)
    except ConfigError:
        if asked.kubeconfig is not None:
            raise
        return None


@dataclass(frozen=True, slots=True)
class _Place:
    """Where the holder of a lease has its port."""

    lease: str
    server: str
    certificate: str
    namespace: str = ""
    pod: str = ""


class _Search:
    """The schedulers that may be meant, one after the other."""

    def __init__(self, asked: SchedulerChoice, opened: AsyncExitStack) -> None:
        self._asked, self._opened = asked, opened
        self._cluster = cluster_of(asked)
        self._places: list[_Place] | None = None
        self.troubles: list[str] = []
        self.asks_leader = False
        """Whether the one that was named sends on to the leader."""

    @property
    def found_cluster(self) -> bool:
        return self._cluster is not None

    async def candidates(self) -> AsyncIterator[Connection]:
        from fairlead.client.credentials import Connection
        from fairlead.console.port_file import local_ports

        if self._asked.server is not None:
            yield await self._named(self._asked.server)
            if self.asks_leader:
                async for leader in self._leaders():
                    yield leader
            return
        if self._cluster is not None:
            if await self._may_answer(self._cluster):
                yield self._cluster
            async for leader in self._leaders():
                yield leader
        local = list(local_ports())
        for port in local:
            yield self._local(port)
        if not any(urlsplit(port.server).port == 10259 for port in local):
            yield Connection.to(OPS_PORT)

    async def _may_answer(self, cluster: Connection) -> bool:
        """Whether a cluster may be one of fairlead's own. Another would refuse questions as requests for resources that
        nobody has a right to, and its audit log would show them as such."""
        from fairlead.client.client import KubeApi

        api = KubeApi(cluster, attempts=1)
        try:
            version = str(json.loads(await api.raw("/version")).get("gitVersion"))
        except (ApiError, json.JSONDecodeError, AttributeError):
            return True
        finally:
            await api.close()
        if not version.endswith("-fairlead"):
            self.troubles.append(f"{cluster} is not a fairlead")
        return version.endswith("-fairlead")

    # ---- one that is named ----

    async def _named(self, server: str) -> Connection:
        from fairlead.client.credentials import Connection
        from fairlead.console.port_file import local_ports

        asked, address = self._asked, urlsplit(server)
        if address.scheme not in ("http", "https") or not address.hostname:
            raise click.BadParameter(f"{server!r} is not a URL; for example {OPS_PORT}", param_hint="'--server'")
        if address.scheme == "http":
            if asked.token_file is not None and not _is_loopback(address.hostname):
                raise FairleadError(f"the token is not sent to {server}, because anybody on the way could read it")
            return Connection.to(server, token=self._given_token())
        if asked.insecure_skip_tls_verify:
            return Connection.to(server, insecure=True)
        if asked.certificate_authority is not None:
            return Connection.to(server, token=self._given_token(), ca=_text(asked.certificate_authority))
        for port in local_ports():
            if port.server == server.rstrip("/"):
                return self._local(port)
        certificates = [place.certificate for place in await self._leading_places()]
        if certificates:
            return Connection.pinned(server, "\n".join(certificates), self._authorization(), "--server")
        return Connection.to(server, token=self._given_token())

    def _given_token(self) -> str:
        return "" if self._asked.token_file is None else _text(self._asked.token_file).strip()

    def _authorization(self) -> Callable[[], str] | None:
        """The token for a scheduler whose certificate the lease names."""
        if token := self._given_token():
            return lambda: f"Bearer {token}"
        return None if self._cluster is None else self._cluster.authorization

    def _local(self, port: LocalPort) -> Connection:
        from fairlead.client.credentials import Connection

        token = self._given_token() or port.token
        return Connection.pinned(port.server, port.certificate, lambda: f"Bearer {token}", "this machine")

    # ---- the leader ----

    async def _leaders(self) -> AsyncIterator[Connection]:
        from fairlead.client.credentials import Connection
        from fairlead.console.port_file import local_ports

        for place in await self._leading_places():
            here = next((port for port in local_ports() if port.certificate == place.certificate), None)
            server = place.server
            if here is not None:
                yield self._local(here)
                continue
            if not await _is_reachable(server):
                forwarded = await self._opened.enter_async_context(self._forwarded(place))
                if forwarded is None:
                    continue
                server = forwarded
            yield Connection.pinned(server, place.certificate, self._authorization(), f"lease {place.lease}")

    async def _leading_places(self) -> list[_Place]:
        """Where the leaders are whose leases are known; asked for once."""
        if self._places is None:
            self._places = []
            leases = USUAL_LEASES if self._asked.lease is None else (self._asked.lease,)
            for namespace, name in leases if self._cluster is not None else ():
                with suppress(NotFound):
                    place = await self._place(namespace, name)
                    self._places += [] if place is None else [place]
        return self._places

    async def _place(self, namespace: str, name: str) -> _Place | None:
        from fairlead.client.client import KubeApi
        from fairlead.core.model.kinds import LEASE

        assert self._cluster is not None
        api = KubeApi(self._cluster, attempts=1)
        try:
            lease = await api.get(LEASE, namespace, name)
        except NotFound:
            return None
        except ApiError as error:
            self.troubles.append(f"lease {namespace}/{name}: {error}")
            return None
        finally:
            await api.close()
        text = (lease["metadata"].get("annotations") or {}).get(ANNOTATION, "")
        holder = (lease.get("spec") or {}).get("holderIdentity") or ""
        try:
            said = json.loads(text) if text else {}
            if not holder or said.get("holder") != holder:  # another scheduler holds it now
                return None
            pod = (str(said.get("namespace", "")), str(said.get("pod", "")))
            return _Place(f"{namespace}/{name}", str(said["server"]), str(said["certificate"]), *pod)
        except (ValueError, KeyError, AttributeError):
            self.troubles.append(f"lease {namespace}/{name}: its annotation {ANNOTATION} cannot be read")
            return None

    @asynccontextmanager
    async def _forwarded(self, place: _Place) -> AsyncIterator[str | None]:
        """The address at which kubectl makes the port of a pod reachable, or None."""
        kubectl = shutil.which("kubectl")
        if not place.pod or kubectl is None:
            how = "" if place.pod else ", and no pod is known"
            self.troubles.append(f"{place.server} (lease {place.lease}) cannot be reached from here{how}")
            yield None
            return
        command = [kubectl, *self._kubectl_options(), "-n", place.namespace, "port-forward", "--address=127.0.0.1"]
        command += [f"pod/{place.pod}", f":{urlsplit(place.server).port}"]
        process = await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        try:
            assert process.stdout is not None
            assert process.stderr is not None
            line = b""
            with suppress(TimeoutError):
                async with asyncio.timeout(_FORWARDED_WITHIN):
                    line = await process.stdout.readline()
            found = _FORWARDING.match(line)
            if found is None:
                said = (await process.stderr.readline()).decode(errors="replace").strip() if not line else ""
                self.troubles.append(f"kubectl port-forward pod/{place.pod}: {said or 'no answer'}")
            yield f"https://127.0.0.1:{found[1].decode()}" if found is not None else None
        finally:
            with suppress(ProcessLookupError):
                process.terminate()
            await process.wait()

    def _kubectl_options(self) -> Iterator[str]:
        if self._asked.kubeconfig is not None:
            yield f"--kubeconfig={self._asked.kubeconfig}"
        if self._asked.context is not None:
            yield f"--context={self._asked.context}"


async def _is_reachable(server: str) -> bool:
    address = urlsplit(server)
    try:
        async with asyncio.timeout(_REACHABLE_WITHIN):
            _, writer = await asyncio.open_connection(address.hostname, address.port)
    except (OSError, TimeoutError):
        return False
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()
    return True


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError as error:
        raise FairleadError(f"{path}: {error.strerror}") from error
