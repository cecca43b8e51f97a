"""Who may use the port of a running scheduler: everybody, who has a token, or whom the API server lets in.

The last way is kube-scheduler's. A TokenReview says whose the bearer token is, a SubjectAccessReview whether that user
may `get` the path; who brings no token is `system:anonymous`. Both answers are kept for ten seconds. What cannot be
asked is refused.
"""

from __future__ import annotations

import hmac
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from fairlead.core.model.flow import Doc, Verb, Write
from fairlead.core.model.kinds import Kind
from fairlead.errors import ApiError, Forbidden, InternalError, Unauthorized

if TYPE_CHECKING:
    from fairlead.client.port import ClusterApi

TOKEN_REVIEW = Kind("authentication.k8s.io", "v1", "TokenReview", "tokenreviews", namespaced=False)
ACCESS_REVIEW = Kind("authorization.k8s.io", "v1", "SubjectAccessReview", "subjectaccessreviews", namespaced=False)
_KEPT_FOR = 10.0
_MOST_KEPT = 1000
_COMPLAIN_EVERY = 60.0


class Caller(NamedTuple):
    """Somebody as the API server describes them: a user document, and its name."""

    name: str
    document: Doc


ANONYMOUS = Caller("system:anonymous", {"username": "system:anonymous", "groups": ["system:unauthenticated"]})


class PortGuard(Protocol):
    def check_origin(self, host: str, origin: str) -> None:
        """Returns if a request with these headers may come in at all; raises Forbidden if not."""
        ...

    async def check(self, authorization: str, verb: str, path: str) -> None:
        """Returns if the caller may; raises Unauthorized or Forbidden if not."""
        ...

    async def check_pods(self, authorization: str, namespace: str) -> None:
        """The same for reading the names of pods in a namespace, or in all of them if it is empty."""
        ...


_LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]", "::1"})


class Open:
    """Lets everybody in: the port is on loopback. A page that a browser shows is kept out: it has an Origin, or, if it
    reaches the port by a name that its owner lets point here, another Host."""

    def __init__(self, own_host: str = "") -> None:
        self._hosts = _LOOPBACK | ({own_host, f"[{own_host}]"} if own_host else set())

    def check_origin(self, host: str, origin: str) -> None:
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdecimal() and not host.endswith("]") else host
        if origin or name.lower() not in self._hosts:
            raise Forbidden(f"this port is open to programs of this machine, not to {origin or host or 'nobody'}")

    async def check(self, authorization: str, verb: str, path: str) -> None:
        return None

    async def check_pods(self, authorization: str, namespace: str) -> None:
        return None


class OneToken:
    """Lets in who has the token, which is asked for at every request, because files change."""

    def check_origin(self, host: str, origin: str) -> None:
        return None

    def __init__(self, token: Callable[[], str]) -> None:
        self._token = token

    async def check(self, authorization: str, verb: str, path: str) -> None:
        if not _is_bearer(authorization, self._token()):
            raise Unauthorized("Unauthorized")

    async def check_pods(self, authorization: str, namespace: str) -> None:
        await self.check(authorization, "", "")


class LocalToken:
    """Lets in who has the token of a file on this machine; others are left to another guard."""

    def __init__(self, token: str, others: PortGuard) -> None:
        self._token, self._others = token, others

    def check_origin(self, host: str, origin: str) -> None:
        self._others.check_origin(host, origin)

    async def check(self, authorization: str, verb: str, path: str) -> None:
        if not _is_bearer(authorization, self._token):
            await self._others.check(authorization, verb, path)

    async def check_pods(self, authorization: str, namespace: str) -> None:
        if not _is_bearer(authorization, self._token):
            await self._others.check_pods(authorization, namespace)


def _is_bearer(authorization: str, token: str) -> bool:
    return hmac.compare_digest(authorization.encode(errors="replace"), f"Bearer {token}".encode())


class Reviews:
    """Asks the API server. `authenticate` and `authorize` may be two servers, as in kube-scheduler."""

    def __init__(
        self,
        authenticate: ClusterApi,
        authorize: ClusterApi,
        *,
        clock: Callable[[], float] = time.monotonic,
        complain: Callable[[str], None] = lambda words: None,
    ) -> None:
        """`complain` gets a line, once a minute at most, if the API server refuses to review."""
        self._authenticate, self._authorize, self._clock = authenticate, authorize, clock
        self._complain, self._complained_at = complain, float("-inf")
        self._callers: dict[str, tuple[float, Caller | None]] = {}
        self._verdicts: dict[tuple[str, ...], tuple[float, bool]] = {}

    def check_origin(self, host: str, origin: str) -> None:
        return None

    async def check(self, authorization: str, verb: str, path: str) -> None:
        asked = {"nonResourceAttributes": {"verb": verb, "path": path}}
        await self._check(authorization, asked, f'{verb} path "{path}"', path)

    async def check_pods(self, authorization: str, namespace: str) -> None:
        asked = {"resourceAttributes": {"verb": "list", "version": "v1", "resource": "pods", "namespace": namespace}}
        where = f'in the namespace "{namespace}"' if namespace else "at the cluster scope"
        await self._check(authorization, asked, f'list resource "pods" in API group "" {where}', "pods")

    async def _check(self, authorization: str, asked: Doc, words: str, about: str) -> None:
        scheme, _, token = authorization.partition(" ")
        token = token.strip() if scheme.lower() == "bearer" else ""
        caller = await self._caller(token) if token else ANONYMOUS
        if caller is None:
            raise Unauthorized("Unauthorized")
        key = (token, caller.name, words)
        known = self._fresh(self._verdicts, key)
        if known is None:
            known = await self._may(caller, asked, about)
            self._keep(self._verdicts, key, known)
        if not known:
            raise Forbidden(f'forbidden: User "{caller.name}" cannot {words}')

    async def _caller(self, token: str) -> Caller | None:
        kept = self._callers.get(token)
        if kept is not None and self._clock() < kept[0]:
            return kept[1]
        try:
            status = await _review(self._authenticate, TOKEN_REVIEW, {"token": token})
        except ApiError as error:
            self._refused("tokens cannot be reviewed, so nobody is let in at the port", error)
            raise Unauthorized("Unauthorized") from error
        user = status.get("user") or {}
        caller = Caller(user.get("username", ""), user) if status.get("authenticated") else None
        self._keep(self._callers, token, caller)
        return caller

    async def _may(self, caller: Caller, asked: Doc, about: str) -> bool:
        user = caller.document
        spec: Doc = {"user": caller.name, **asked}
        spec |= {name: user[name] for name in ("uid", "groups", "extra") if user.get(name)}
        try:
            status = await _review(self._authorize, ACCESS_REVIEW, spec)
        except ApiError as error:
            self._refused("access cannot be reviewed, so nobody is let in at the port", error)
            raise InternalError(f'Internal Server Error: "{about}": {error.message}') from error
        return bool(status.get("allowed")) and not status.get("denied")

    def _refused(self, words: str, error: ApiError) -> None:
        if self._clock() >= self._complained_at + _COMPLAIN_EVERY:
            self._complained_at = self._clock()
            self._complain(f"{words}: {error.message}")

    def _fresh(self, kept: dict[Any, tuple[float, bool]], key: Any) -> bool | None:
        until, verdict = kept.get(key, (0.0, False))
        return verdict if self._clock() < until else None

    def _keep(self, kept: dict[Any, tuple[float, Any]], key: Any, answer: Any) -> None:
        if len(kept) >= _MOST_KEPT:
            kept.clear()
        kept[key] = (self._clock() + _KEPT_FOR, answer)


async def _review(api: ClusterApi, kind: Kind, spec: Doc) -> Doc:
    body = {"apiVersion": kind.api_version, "kind": kind.kind, "spec": spec}
    answer = await api.perform(Write(Verb.CREATE, kind, "", "", body))
    status: Doc = answer.get("status") or {}
    return status
