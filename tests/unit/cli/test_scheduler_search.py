"""How commands find a scheduler: by its lease, by its file, through kubectl; and to whom they send a token."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from fairlead.client.client import KubeApi
from fairlead.cluster.server.listening import Listener
from fairlead.cluster.server.pki import Credentials
from fairlead.console.scheduler_search import ANNOTATION, NotAScheduler, SchedulerChoice, first_answer
from fairlead.errors import FairleadError, NotLeading, Unauthorized


class Room:
    """An API server with leases, and ports of schedulers that write down which token they were sent."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.credentials = Credentials.generate(now=time.time())
        self.leases: dict[str, dict[str, Any]] = {}
        self.tokens: list[str] = []
        self.api = ""
        self.port = ""
        self.standing_by = False
        self.version = ""
        self.asked: list[str] = []

    async def cluster(self, request: web.BaseRequest) -> web.StreamResponse:
        name = request.path.rpartition("/")[2]
        self.asked.append(request.path)
        if request.path == "/version" and self.version:
            return web.json_response({"gitVersion": self.version})
        if name in self.leases:
            return web.json_response(self.leases[name])
        missing = {"kind": "Status", "reason": "NotFound", "message": "not found", "code": 404}
        return web.json_response(missing, status=404)

    async def scheduler(self, request: web.BaseRequest) -> web.StreamResponse:
        self.tokens.append(request.headers.get("Authorization", ""))
        if self.standing_by:
            self.standing_by = False
            return web.json_response(NotLeading("it stands by").status(), status=503)
        if self.tokens[-1] != "Bearer of-the-user":
            return web.json_response(Unauthorized("Unauthorized").status(), status=401)
        return web.json_response({"kind": "Answer"})

    def lease(self, name: str, *, holder: str = "pod-1", server: str = "", **more: str) -> None:
        certificate = more.pop("certificate", self.credentials.certificate.decode())
        said = {"holder": "pod-1", "server": server or self.port, "certificate": certificate, **more}
        annotations = {ANNOTATION: json.dumps(said)}
        self.leases[name] = {
            "metadata": {"name": name, "annotations": annotations}, "spec": {"holderIdentity": holder},
        }  # fmt: skip

    async def __aenter__(self) -> Room:
        api, port = Listener(self.cluster, within=1.0), Listener(self.scheduler, within=1.0)
        self._listeners = (api, port)
        self.api = f"http://127.0.0.1:{await api.start('127.0.0.1', 0, None)}"
        self.port = f"https://127.0.0.1:{await port.start('127.0.0.1', 0, self.credentials.tls())}"
        return self

    async def __aexit__(self, *_: object) -> None:
        for listener in self._listeners:
            await listener.stop()

    @property
    def kubeconfig(self) -> Path:
        file = self.directory / "kubeconfig"
        document = {
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": self.api}}],
            "users": [{"name": "c", "user": {"token": "of-the-user"}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
        }  # fmt: skip
        file.write_text(json.dumps(document))
        return file

    async def ask(self, **options: Any) -> Any:
        async def answer(api: KubeApi) -> Any:
            found = json.loads(await api.raw("/apis/fairlead.io/v1/status"))
            if found.get("kind") != "Answer":
                raise NotAScheduler("somebody else")
            return found

        return await first_answer(SchedulerChoice(**{"kubeconfig": self.kubeconfig, **options}), answer)


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Room:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("fairlead.console.scheduler_search.OPS_PORT", "http://127.0.0.1:1")
    return Room(tmp_path)


async def test_the_leader_is_found_by_its_lease_and_its_certificate_is_pinned(room: Room) -> None:
    async with room:
        room.lease("fairlead")
        assert await room.ask() == {"kind": "Answer"}
        other = Credentials.generate(now=time.time())
        room.lease("fairlead", certificate=other.certificate.decode())
        room.tokens.clear()
        with pytest.raises(FairleadError, match="no scheduler answers"):
            await room.ask()
        assert room.tokens == [], "whoever has another certificate gets no token"


async def test_a_lease_that_another_holds_now_leads_nowhere(room: Room) -> None:
    async with room:
        room.lease("kube-scheduler", holder="kube-scheduler-1")
        with pytest.raises(FairleadError, match="no scheduler answers"):
            await room.ask()
        assert room.tokens == []


async def test_only_a_lease_that_is_named_is_believed(room: Room) -> None:
    async with room:
        room.lease("planted")
        with pytest.raises(FairleadError):
            await room.ask()
        assert room.tokens == []
        assert await room.ask(lease=("tenant", "planted")) == {"kind": "Answer"}


async def test_a_server_that_is_named_is_verified_by_the_lease_or_an_authority(room: Room, tmp_path: Path) -> None:
    async with room:
        with pytest.raises(FairleadError, match=r"(?i)certificate"):
            await room.ask(server=room.port)
        assert room.tokens == []
        room.lease("fairlead")
        assert await room.ask(server=room.port) == {"kind": "Answer"}
        del room.leases["fairlead"]
        authority, token = tmp_path / "ca.crt", tmp_path / "token"
        authority.write_bytes(room.credentials.ca)
        token.write_text("of-the-user")
        assert await room.ask(server=room.port, certificate_authority=authority, token_file=token) == {"kind": "Answer"}


async def test_who_believes_any_certificate_sends_no_token(room: Room, tmp_path: Path) -> None:
    async with room:
        token = tmp_path / "token"
        token.write_text("of-the-user")
        with pytest.raises(Unauthorized):
            await room.ask(server=room.port, token_file=token, insecure_skip_tls_verify=True)
        assert room.tokens
        assert set(room.tokens) == {""}
        with pytest.raises(FairleadError, match="anybody on the way could read it"):
            await room.ask(server="http://192.0.2.1:10259", token_file=token)


async def test_a_replica_that_stands_by_sends_on_to_the_leader(room: Room) -> None:
    async with room:
        room.lease("fairlead")
        room.standing_by = True
        assert await room.ask(server=room.port) == {"kind": "Answer"}
        assert len(room.tokens) == 2


async def test_a_pod_out_of_reach_is_asked_through_kubectl(
    room: Room, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with room:
        port = room.port.rpartition(":")[2]
        kubectl = tmp_path / "kubectl"
        kubectl.write_text(
            f'#!/bin/sh\necho "$@" > {tmp_path}/said\necho "Forwarding from 127.0.0.1:{port} -> 10259"\nexec sleep 60\n'
        )
        kubectl.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
        room.lease("fairlead", server="https://127.0.0.1:1", namespace="fairlead-system", pod="fairlead-7d")
        assert await room.ask() == {"kind": "Answer"}
        said = (tmp_path / "said").read_text().split()
        assert said[1:] == ["-n", "fairlead-system", "port-forward", "--address=127.0.0.1", "pod/fairlead-7d", ":1"]


async def test_a_cluster_of_another_make_is_not_asked_for_what_it_does_not_have(room: Room) -> None:
    async with room:
        room.lease("fairlead")
        room.version = "v1.36.4"
        assert await room.ask() == {"kind": "Answer"}
        assert not any("fairlead.io" in path for path in room.asked)
        room.version = "v1.36.4-fairlead"
        await room.ask()
        assert any("fairlead.io" in path for path in room.asked)
