"""A control plane that writes down every request, and accounts that may do no more than their roles say."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from fairlead.cli.roles.documents import bindings, role_documents
from fairlead.client.client import KubeApi
from fairlead.client.credentials import load_kubeconfig
from fairlead.core.model.flow import Doc, Verb, Write
from fairlead.core.model.kinds import CUSTOM_RESOURCE_DEFINITION, Kind, Registry
from fairlead.errors import ApiError, Forbidden, NotFound
from tests.support.real.control_plane import ControlPlane, real_binary

PATIENCE = 200.0
EVERYBODY = ("selfsubjectaccessreviews", "selfsubjectrulesreviews")
"""What every authenticated user may ask, by the role system:basic-user."""
Right = tuple[str, str, str]
"""Group, resource with its subresource, verb."""


def used_rights(plane: ControlPlane, account: str) -> set[Right]:
    """What an account asked for, by the audit log."""
    return {
        (ref.get("apiGroup", ""), _resource(ref), event["verb"])
        for event in _events(plane, account)
        if (ref := event.get("objectRef")) and ref["resource"] not in EVERYBODY
    }


def refused(plane: ControlPlane, account: str) -> set[Right]:
    """What it asked for and was forbidden."""
    return {
        (ref.get("apiGroup", ""), _resource(ref), event["verb"])
        for event in _events(plane, account)
        if (ref := event.get("objectRef")) and (event.get("responseStatus") or {}).get("code") == 403
    }


def granted_rights(roles: Iterable[Doc]) -> set[Right]:
    """What roles allow."""
    return {
        (group, resource, verb)
        for role in roles
        for rule in role["rules"]
        for group in rule.get("apiGroups", ())
        for resource in rule.get("resources", ())
        for verb in rule["verbs"]
    }


def _events(plane: ControlPlane, account: str) -> Iterator[dict[str, Any]]:
    for line in plane.audit_log.read_text().splitlines():
        event = json.loads(line)
        if event["user"].get("username") == account:
            yield event


def _resource(ref: dict[str, Any]) -> str:
    return str(ref["resource"] + (f"/{ref['subresource']}" if ref.get("subresource") else ""))


class Lab:
    """An administrator's hands and eyes on a cluster."""

    def __init__(self, plane: ControlPlane, api: KubeApi) -> None:
        self.plane, self.api = plane, api

    async def make(self, kind: Kind, body: Doc, *, namespace: str = "default") -> Doc:
        where = namespace if kind.namespaced else ""
        document = {"apiVersion": kind.api_version, "kind": kind.kind, **body}
        return await self.api.perform(Write(Verb.CREATE, kind, where, body["metadata"]["name"], document))

    async def make_in_time(self, kind: Kind, body: Doc) -> None:
        """The same for an object that names another which was just made, and of which the server's admission may not
        have heard yet."""

        async def try_it() -> bool:
            try:
                await self.make(kind, body)
            except Forbidden:
                return False
            return True

        await self.until_true(try_it, f"{kind.resource} {body['metadata']['name']} is admitted")

    async def delete(self, kind: Kind, name: str) -> None:
        where = "default" if kind.namespaced else ""
        await self.api.perform(Write(Verb.DELETE, kind, where, name, {"gracePeriodSeconds": 0}))

    async def patch(self, kind: Kind, name: str, body: Doc, *, subresource: str = "") -> None:
        where = "default" if kind.namespaced else ""
        await self.api.perform(Write(Verb.PATCH, kind, where, name, body, subresource=subresource))

    async def until(self, kind: Kind, name: str, holds: Callable[[Doc], object]) -> None:
        async def look() -> bool:
            try:
                return bool(holds(await self.api.get(kind, "default" if kind.namespaced else "", name)))
            except NotFound:
                return False

        await self.until_true(look, f"{kind.resource} {name}")

    async def until_true(self, look: Callable[[], Awaitable[bool]], what: str) -> None:
        ends = time.monotonic() + PATIENCE
        while not await look():
            if time.monotonic() > ends:
                raise AssertionError(f"after {PATIENCE:.0f} s still not: {what}")
            await asyncio.sleep(0.1)

    async def until_used(self, account: str, *rights: Right) -> None:
        """Until the audit log has them."""

        async def look() -> bool:
            return set(rights) <= used_rights(self.plane, account)

        await self.until_true(look, f"{account} used {rights}")

    async def bind_roles(
        self, way: str, account: str, *, lease: tuple[str, str], extras: Iterable[str] = ()
    ) -> set[Right]:
        """Give an account the roles of a way of running; returns what they grant."""
        roles = role_documents(way, name=f"fairlead-{account}", lease=lease, extras=extras)
        subject = {"kind": "User", "name": account, "apiGroup": "rbac.authorization.k8s.io"}
        registry = Registry()
        for doc in [*roles, *bindings(roles, subject)]:
            kind = registry.by_kind(doc["apiVersion"], doc["kind"])
            assert kind is not None
            await self.make(kind, doc, namespace=lease[0])
        return granted_rights(roles)

    async def define(self, *kinds: Kind) -> None:
        """Have the server serve kinds, without a schema."""
        for kind in kinds:
            anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
            version = {
                "name": kind.version, "served": True, "storage": True, "schema": {"openAPIV3Schema": anything},
                "subresources": {"status": {}},
            }  # fmt: skip
            spec = {
                "group": kind.group,
                "scope": "Namespaced" if kind.namespaced else "Cluster",
                "versions": [version],
                "names": {"plural": kind.plural, "kind": kind.kind},
            }
            metadata = {"name": f"{kind.plural}.{kind.group}"}
            if kind.group.endswith("k8s.io"):
                metadata["annotations"] = {"api-approved.kubernetes.io": "unapproved, for a test"}  # type: ignore[assignment]
            await self.make(CUSTOM_RESOURCE_DEFINITION, {"metadata": metadata, "spec": spec})
        for kind in kinds:
            await self.until_true(lambda kind=kind: self._served(kind), f"{kind} is served")  # type: ignore[misc]

    async def _served(self, kind: Kind) -> bool:
        try:
            await self.api.list(kind)
        except ApiError:
            return False
        return True

    def kubectl(self, *words: str) -> str:
        command = [real_binary("kubectl"), "--kubeconfig", str(self.plane.kubeconfig), *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout


@asynccontextmanager
async def laboratory(plane: ControlPlane) -> AsyncIterator[Lab]:
    """The plane, started and stopped."""
    api: KubeApi | None = None
    try:
        await asyncio.to_thread(plane.start)
        api = KubeApi(load_kubeconfig(plane.kubeconfig))
        yield Lab(plane, api)
    finally:
        if api is not None:
            await api.close()
        await asyncio.to_thread(plane.stop)


_AHEAD = "import time; real = time.time; time.time = lambda: real() + {}; from fairlead.cli.main import main; main()"


@contextmanager
def fairlead(
    lab: Lab, account: str, *words: str, environment: dict[str, str] | None = None, ahead: float = 0.0
) -> Iterator[Path]:
    """A fairlead command as one of the accounts; the answer is its log, which is shown if something fails. Its clock
    is `ahead` by so many seconds, for what would take too long to wait for."""
    log = lab.plane.directory / f"{account}-{words[0]}.log"
    started = ["-c", _AHEAD.format(ahead)] if ahead else ["-m", "fairlead"]
    command = [sys.executable, *started, *words, "--kubeconfig", str(lab.plane.kubeconfig_of(account))]
    with log.open("wb") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file, stdin=subprocess.DEVNULL, env=environment)
    try:
        yield log
    except AssertionError as error:
        raise AssertionError(f"{error}; the end of its log:\n{log.read_text()[-4000:]}") from None
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
