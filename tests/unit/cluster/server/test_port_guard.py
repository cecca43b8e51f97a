"""Who is let in at the scheduler's port when the API server is asked."""

from __future__ import annotations

import orjson
import pytest

from fairlead.cluster.server.asking import answer_to
from fairlead.cluster.server.port_guard import TOKEN_REVIEW, Open, Reviews
from fairlead.core.model.flow import Doc, Write
from fairlead.errors import ApiError, Forbidden, InternalError, Unauthorized, Unreachable

USERS = {"good": {"username": "prometheus", "groups": ["monitoring"]}, "other": {"username": "eve"}}


class Server:
    """Knows two tokens, and lets one user read one path."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.now = 0.0
        self.down = ""

    async def perform(self, write: Write) -> Doc:
        spec = write.body["spec"]
        self.asked.append(write.kind.plural)
        if self.down == write.kind.plural:
            raise Unreachable("no answer")
        if write.kind is TOKEN_REVIEW:
            user = USERS.get(spec["token"])
            return {"status": {"authenticated": user is not None, "user": user or {}}}
        if "resourceAttributes" in spec:
            attributes = spec["resourceAttributes"]
            return {"status": {"allowed": (spec["user"], attributes["namespace"]) == ("eve", "own")}}
        wanted = {"verb": "get", "path": "/metrics"}
        return {"status": {"allowed": spec["user"] == "prometheus" and spec["nonResourceAttributes"] == wanted}}

    def guard(self) -> Reviews:
        return Reviews(self, self, clock=lambda: self.now)  # type: ignore[arg-type]


async def test_who_may_read_the_path_is_let_in_and_asked_about_once() -> None:
    server = Server()
    guard = server.guard()
    for _ in range(3):
        await guard.check("Bearer good", "get", "/metrics")
    assert server.asked == ["tokenreviews", "subjectaccessreviews"]
    server.now = 11.0
    await guard.check("Bearer good", "get", "/metrics")
    assert len(server.asked) == 4


@pytest.mark.parametrize(
    ("authorization", "verb", "error", "message"),
    [
        ("", "get", Forbidden, 'forbidden: User "system:anonymous" cannot get path "/metrics"'),
        ("Bearer other", "get", Forbidden, 'forbidden: User "eve" cannot get path "/metrics"'),
        ("Bearer good", "delete", Forbidden, 'forbidden: User "prometheus" cannot delete path "/metrics"'),
        ("Bearer guess", "get", Unauthorized, "Unauthorized"),
        ("Basic good", "get", Forbidden, 'forbidden: User "system:anonymous" cannot get path "/metrics"'),
    ],
)
async def test_others_get_what_kube_scheduler_answers(
    authorization: str, verb: str, error: type[ApiError], message: str
) -> None:
    with pytest.raises(error) as refused:
        await Server().guard().check(authorization, verb, "/metrics")
    assert refused.value.message == message


async def test_nobody_is_let_in_while_the_server_cannot_be_asked() -> None:
    server = Server()
    server.down = "tokenreviews"
    with pytest.raises(Unauthorized):
        await server.guard().check("Bearer good", "get", "/metrics")
    server.down = "subjectaccessreviews"
    with pytest.raises(InternalError):
        await server.guard().check("Bearer good", "get", "/metrics")


async def test_names_of_pods_are_for_those_who_may_list_them() -> None:
    guard = Server().guard()
    await guard.check_pods("Bearer other", "own")
    with pytest.raises(Forbidden, match='User "eve" cannot list resource "pods" in API group "" at the cluster scope'):
        await guard.check_pods("Bearer other", "")
    with pytest.raises(Forbidden, match='in the namespace "own"'):
        await guard.check_pods("Bearer good", "own")


async def test_a_list_of_evictions_is_asked_for_with_that_right() -> None:
    asked: list[str] = []

    async def may_list(namespace: str) -> None:
        asked.append(namespace)
        if not namespace:
            raise Forbidden("not you")

    async def answered(question: Doc) -> Doc:
        return question

    await answer_to(b'{"kind": "EvictionsQuestion", "namespace": "own"}', [answered], may_list)
    await answer_to(b'{"kind": "FitQuestion", "objects": [{"metadata": {"namespace": "own"}}]}', [answered], may_list)
    for kind in ("EvictionsQuestion", "DrainQuestion", "SimulateQuestion"):
        with pytest.raises(Forbidden):
            await answer_to(orjson.dumps({"kind": kind}), [answered], may_list)
    assert asked == ["own", "own", "", "", ""]


HOSTS = ["127.0.0.1:10259", "localhost:10259", "[::1]:10259", "localhost", "[::1]", "10.0.0.7:1"]


@pytest.mark.parametrize("host", HOSTS)
def test_programs_of_the_machine_may_use_an_open_port(host: str) -> None:
    Open("10.0.0.7").check_origin(host, "")


@pytest.mark.parametrize(
    ("host", "origin"),
    [("evil.example:10259", ""), ("127.0.0.1:10259", "https://evil.example"), ("127.0.0.1:10259", "null"), ("", "")],
)
def test_pages_may_not_use_an_open_port(host: str, origin: str) -> None:
    with pytest.raises(Forbidden, match="open to programs of this machine"):
        Open().check_origin(host, origin)
