"""Who is let in at the scheduler's port when the API server is asked."""

from __future__ import annotations

from concurrent.futures import Future

import pytest

from fairlead.cluster.server.asking import answer_to
from fairlead.cluster.server.port_guard import TOKEN_REVIEW, Reviews
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
async def test_others_are_told_what_kube_scheduler_tells(
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

    def answered(question: Doc) -> Future[Doc]:
        future: Future[Doc] = Future()
        future.set_result(question)
        return future

    await answer_to(b'{"kind": "EvictionsQuestion", "namespace": "own"}', [answered], may_list)
    await answer_to(b'{"kind": "FitQuestion"}', [answered], may_list)
    with pytest.raises(Forbidden):
        await answer_to(b'{"kind": "EvictionsQuestion"}', [answered], may_list)
    assert asked == ["own", ""]
