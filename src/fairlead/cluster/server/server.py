"""The Store over Kubernetes-compatible REST, on loopback, with TLS and one bearer token.

There is no routing table: a path names a kind, a namespace, a name and a subresource (paths.py), a method and a few
parameters say what to do with it. Everything that goes wrong is a Status; what is wrong with a request is never a
500. The event loop that runs the server is the thread that owns the Store.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson
from aiohttp import web
from multidict import CIMultiDict
from prometheus_client import CONTENT_TYPE_LATEST

from fairlead.cluster.server import answers, negotiation
from fairlead.cluster.server.asking import NOBODY_ASKED, QUESTIONS_PATH, STATUS_PATH, answer_to_request
from fairlead.cluster.server.discovery import aggregated_document, discovery_document, served_verbs, version_document
from fairlead.cluster.server.explaining import explanation_document, is_explanation
from fairlead.cluster.server.listening import LOOPBACK, Endpoint, Listener
from fairlead.cluster.server.negotiation import AnswerForm
from fairlead.cluster.server.openapi import PROTOBUF_V2, V2_IN_PROTOBUF, OpenApi
from fairlead.cluster.server.parameters import flag, query_of, whole_number
from fairlead.cluster.server.paths import Target, find_target, is_pod_binding
from fairlead.cluster.server.reviews import REVIEWS, TOKEN_REQUEST, answer, token_for
from fairlead.cluster.server.tokens import ISSUER, Tokens
from fairlead.cluster.server.watching import DEFAULT_SECONDS, WatchStream
from fairlead.cluster.store.objects import private_copy, unsupported_option
from fairlead.cluster.store.owners import check_patch_options, owner_name
from fairlead.cluster.store.paging import Chunk
from fairlead.cluster.store.storeapi import StoreApi
from fairlead.cluster.store.subresources import BINDING, EVICTION, scale_of
from fairlead.cluster.store.verbs import SERVED_SUBRESOURCES, not_found_path
from fairlead.core.model import kinds
from fairlead.core.model.attendance import Attendance
from fairlead.core.model.flow import PatchType, Verb, Write
from fairlead.errors import ApiError, BadRequest, InternalError, MethodNotAllowed, Unauthorized, Unreachable

if TYPE_CHECKING:
    from fairlead.cluster.server.asking import Asked
    from fairlead.cluster.server.tokens import Reference, User
    from fairlead.cluster.store.store import Store
    from fairlead.core.model.flow import Doc

logger = logging.getLogger(__name__)

HEADER_LIMIT = 16 * 1024
WATCH_BUFFER = 10_000
WATCH_SEND_BUFFER = 256 * 1024
SHUTDOWN_SECONDS = 2.0
WARNING_LENGTH, WARNINGS_IN_ALL, MOST_WARNINGS = 256, 4096, 64
OF_RUNNING_CONTAINERS = ("log", "exec", "attach", "portforward", "proxy", "ephemeralcontainers", "resize")
"""Subresources that cannot be: behind a simulated pod there is no process."""
FIELD_VALIDATION = ("", "Ignore", "Strict", "Warn")
_BOUND_KINDS = {
    "ServiceAccount": kinds.SERVICE_ACCOUNT, "Pod": kinds.POD, "Secret": kinds.SECRET, "Node": kinds.NODE,
}  # fmt: skip
"""What a token can be bound to."""
_OPTIONS = {"POST": "CreateOptions", "PUT": "UpdateOptions", "PATCH": "PatchOptions"}
_REVIEW_KINDS = frozenset(REVIEWS.values())
_PASSED_ON = ("dryRun", "fieldManager", "fieldValidation", "gracePeriodSeconds", "propagationPolicy", "force")


@dataclass(frozen=True, slots=True)
class Probes:
    """What /readyz and /metrics answer, and how the scheduler in this process is; what is None is not served."""

    ready: Callable[[], bool] = lambda: True
    metrics: Callable[[], Awaitable[bytes]] | None = None
    status: Callable[[], Awaitable[Doc]] | None = None


_PROBES = Probes()


class Server:
    """Serves one Store until it is stopped."""

    def __init__(
        self,
        store: Store,
        *,
        token: str,
        at: Endpoint = LOOPBACK,
        probes: Probes = _PROBES,
        watch_buffer: int = WATCH_BUFFER,
        asked: Asked = NOBODY_ASKED,
        attendance: Attendance | None = None,
    ) -> None:
        """`attendance` knows who acts on what; creators of objects that nobody acts on are warned."""
        self.store = store
        self._attendance = attendance or Attendance()
        self.host, self.port, self._tls = at.host, at.port, at.tls
        self._api = StoreApi(store)
        self._tokens = Tokens(token, store.clock, self._is_there)
        self._openapi_of = OpenApi(store.registry)
        self._probes, self._watch_buffer, self._asked = probes, watch_buffer, asked
        self._watches: set[asyncio.Task[Any]] = set()
        self._listener: Listener | None = None

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self._tls else 'http'}://{host}:{self.port}"

    async def start(self) -> None:
        """Begin to listen; from here on `port` is the real one."""
        self._listener = Listener(self._handle, within=SHUTDOWN_SECONDS, line=HEADER_LIMIT, field=HEADER_LIMIT)
        self.port = await self._listener.start(self.host, self.port, self._tls)

    async def stop(self) -> None:
        """Close all watches and stop listening."""
        for task in self._watches:
            task.cancel()
        if self._listener is not None:
            await self._listener.stop()
            self._listener = None

    # -- one request --------------------------------------------------------------------------------------------------

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            return await self._answer(request)
        except ApiError as error:
            return _failure(error)
        except (asyncio.CancelledError, ConnectionError):
            raise
        except Exception as error:
            logger.exception("%s %s failed", request.method, request.path)
            return _failure(InternalError(f"Internal error occurred: {type(error).__name__}: {error}"))

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        path = request.path.rstrip("/") or "/"
        if path in ("/healthz", "/livez", "/readyz") or path.startswith(("/livez/", "/readyz/", "/healthz/")):
            return self._health(path)
        user = self._authenticate(request)
        target = find_target(path, self.store.registry)
        if target is not None:
            if target.kind in _REVIEW_KINDS:
                return await self._review(request, target, user)
            return await self._resource(request, target)
        if is_explanation(path) and request.method == "GET":
            return _json(await explanation_document(path, self._asked.explainers))
        if path == QUESTIONS_PATH and request.method == "POST":
            return _json(await answer_to_request(request, self._asked.answerers))
        if path == STATUS_PATH and request.method == "GET" and self._probes.status is not None:
            return _json(await self._probes.status())
        if path == "/metrics" and request.method == "GET" and self._probes.metrics is not None:
            return web.Response(body=await self._probes.metrics(), headers={"Content-Type": CONTENT_TYPE_LATEST})
        return self._document(request, path)

    def _authenticate(self, request: web.BaseRequest) -> User:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        user = self._tokens.user(token.strip()) if scheme.lower() == "bearer" else None
        if user is None or ISSUER not in user.audiences:
            raise Unauthorized("Unauthorized")
        return user

    def _find_bound(self, kind: str, namespace: str, name: str) -> Doc | None:
        return self.store.get(_BOUND_KINDS[kind], namespace, name)

    def _is_there(self, bound: Reference) -> bool:
        doc = self._find_bound(bound.kind, bound.namespace, bound.name)
        return doc is not None and doc["metadata"].get("uid") == bound.uid

    def _health(self, path: str) -> web.Response:
        if path.startswith("/readyz") and not self._probes.ready():
            return _failure(Unreachable("the server is not ready yet"))
        return web.Response(text="ok")

    def _document(self, request: web.BaseRequest, path: str) -> web.Response:
        """Discovery, version and OpenAPI."""
        if request.method != "GET":
            raise _not_allowed() if discovery_document(path, self.store.registry) else not_found_path()
        registry = self.store.registry
        if path == "/version":
            return _json(version_document())
        if path.startswith("/openapi/"):
            return self._openapi(path, request.headers.get("Accept", ""))
        if path == "/":
            metrics = [] if self._probes.metrics is None else ["/metrics"]
            return _json(
                {
                    "paths": [
                        "/api",
                        "/api/v1",
                        "/apis",
                        "/healthz",
                        "/livez",
                        *metrics,
                        "/openapi/v2",
                        "/openapi/v3",
                        "/readyz",
                        "/version",
                    ]
                }
            )
        if "as=APIGroupDiscoveryList" in request.headers.get("Accept", ""):
            shape = negotiation.wanted_shape(request.headers["Accept"])
            document = aggregated_document(path, registry) if shape is AnswerForm.DISCOVERY else None
            if document is not None:
                content_type = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
                return web.Response(body=orjson.dumps(document), headers={"Content-Type": content_type})
        document = discovery_document(path, registry)
        if document is None:
            raise not_found_path()
        return _json(document)

    def _openapi(self, path: str, accept: str) -> web.Response:
        known = self._openapi_of
        if path == "/openapi/v2" and accept.startswith(PROTOBUF_V2):
            return web.Response(body=V2_IN_PROTOBUF, headers={"Content-Type": PROTOBUF_V2.replace("@", ".")})
        if path == "/openapi/v2":
            return _json_bytes(known.v2())
        if path == "/openapi/v3":
            return _json_bytes(known.v3_index())
        body = known.v3(path.removeprefix("/openapi/v3/")) if path.startswith("/openapi/v3/") else None
        if body is None:
            raise not_found_path()
        return _json_bytes(body)

    # -- resources ----------------------------------------------------------------------------------------------------

    async def _resource(self, request: web.BaseRequest, target: Target) -> web.StreamResponse:
        method = request.method
        if method == "POST" and is_pod_binding(target):
            return await self._bind(request, target)
        if method == "POST" and target.subresource in ("eviction", "token") and target.name:
            return await self._created_below(request, target)
        if target.kind is BINDING:
            raise _not_allowed()
        if target.subresource and target.subresource not in target.kind.subresources & SERVED_SUBRESOURCES:
            if target.kind is kinds.POD and target.subresource in OF_RUNNING_CONTAINERS:
                self.store.existing(target.kind, target.namespace, target.name)
                raise BadRequest(f"pods/{target.subresource}: pods of this cluster are simulated, no container runs")
            raise not_found_path()
        if method in ("GET", "HEAD"):
            return await self._read(request, target)
        if method == "DELETE" and not target.name:
            return await self._delete_collection(request, target)
        if method in ("POST", "PUT", "PATCH", "DELETE") and bool(target.name) == (method != "POST"):
            return await self._write(request, target)
        raise _not_allowed()

    async def _read(self, request: web.BaseRequest, target: Target) -> web.StreamResponse:
        params, kind = request.query, target.kind
        shape = negotiation.wanted_shape(request.headers.get("Accept", ""))
        include = params.get("includeObject") or ""
        if flag(params, "watch") and not target.subresource:
            return await self._watch(request, target, shape, include)
        if not target.name:
            chunk = self.store.chunk(kind, query_of(params, target.namespace))
            return _json_bytes(answers.many(self.store, kind, chunk, shape, include=include))
        if target.subresource in ("binding", "finalize", "eviction", "token"):
            raise _not_allowed()
        doc = self.store.read(kind, target.namespace, target.name)
        if target.subresource == "scale":
            return _json(scale_of(kind, doc))
        return _json_bytes(answers.one(self.store, kind, doc, shape, include=include))

    async def _watch(
        self, request: web.BaseRequest, target: Target, shape: AnswerForm, include: str
    ) -> web.StreamResponse:
        form = answers.EventForm(self.store, target.kind, shape, include=include)
        seconds = whole_number(request.query, "timeoutSeconds") or DEFAULT_SECONDS
        stream = WatchStream(request, self.store, target.kind, form=form, seconds=seconds)
        task = asyncio.current_task()
        assert task is not None
        self._watches.add(task)
        if request.transport is not None:
            request.transport.set_write_buffer_limits(high=WATCH_SEND_BUFFER)
        try:
            return await stream.run(target.namespace, name=target.name, buffer=self._watch_buffer)
        finally:
            self._watches.discard(task)

    async def _write(self, request: web.BaseRequest, target: Target) -> web.Response:
        params = {name: request.query[name] for name in _PASSED_ON if name in request.query}
        _check_validation(request.method, params)
        params.setdefault("fieldManager", owner_name(request.headers.get("User-Agent", "")))
        shape = negotiation.wanted_shape(request.headers.get("Accept", ""))
        write = _as_write(request, target, await negotiation.read_body(request), params)
        warnings: list[str] = []
        applies = write.verb is Verb.PATCH and write.patch_type is PatchType.APPLY
        new = applies and self.store.find(target.kind, target.namespace, target.name) is None
        doc = await self._api.perform(write, warnings=warnings)
        status = 201 if request.method == "POST" or new else 200
        if status == 201 and not target.subresource:
            warnings += self._attendance.complaints(target.kind, doc)
        if shape is AnswerForm.OBJECT or doc.get("kind") == "Status":
            return _json(doc, status, warnings)
        return _json_bytes(answers.one(self.store, target.kind, doc, shape), status, warnings)

    async def _created_below(self, request: web.BaseRequest, target: Target) -> web.Response:
        """What is created under an object and is none of its kind: an Eviction, a TokenRequest."""
        if target.subresource not in target.kind.subresources:
            raise not_found_path()
        raw, content_type = await negotiation.read_body(request), request.headers.get("Content-Type", "")
        if target.subresource == "token":
            account = self.store.read(target.kind, target.namespace, target.name)
            body = private_copy(negotiation.decode_body(raw, content_type, TOKEN_REQUEST))
            return _json(token_for(account, body, self._tokens, self._find_bound), 201)
        body = private_copy(negotiation.decode_body(raw, content_type, EVICTION))
        params = {"dryRun": request.query["dryRun"]} if "dryRun" in request.query else {}
        write = Write(
            Verb.CREATE, target.kind, target.namespace, target.name, body=body, subresource="eviction", params=params
        )
        return _json(await self._api.perform(write), 201)

    async def _review(self, request: web.BaseRequest, target: Target, user: User) -> web.Response:
        if request.method != "POST" or target.name:
            raise _not_allowed()
        raw, content_type = await negotiation.read_body(request), request.headers.get("Content-Type", "")
        body = private_copy(negotiation.decode_body(raw, content_type, target.kind))
        return _json(answer(target.kind, body, user, self._tokens), 201)

    async def _bind(self, request: web.BaseRequest, target: Target) -> web.Response:
        raw = await negotiation.read_body(request)
        body = private_copy(negotiation.decode_body(raw, request.headers.get("Content-Type", ""), BINDING))
        _check_binding_types(body)
        metadata = body.get("metadata")
        name = target.name or (metadata.get("name") if isinstance(metadata, dict) else "") or ""
        params = {"dryRun": request.query["dryRun"]} if "dryRun" in request.query else {}
        write = Write(
            Verb.CREATE, kinds.POD, target.namespace, str(name), body=body, subresource="binding", params=params
        )
        return _json(await self._api.perform(write), 201)

    async def _delete_collection(self, request: web.BaseRequest, target: Target) -> web.Response:
        if "deletecollection" not in served_verbs(target.kind):
            raise _not_allowed()
        query = query_of(request.query, target.namespace)
        options = _delete_options(await negotiation.read_body(request), request, target) or {}
        options |= {
            name: request.query[name] for name in ("gracePeriodSeconds", "propagationPolicy") if name in request.query
        }
        if request.query.get("dryRun"):
            options["dryRun"] = [request.query["dryRun"]]
        chosen = self.store.delete_collection(target.kind, query, options)
        return _json_bytes(
            answers.many(self.store, target.kind, Chunk(chosen, self.store.resource_version), AnswerForm.OBJECT)
        )


def _check_binding_types(body: Doc) -> None:
    """What has the wrong JSON type is a bad request; what it says is for the Store to judge."""
    target = body.get("target", {})
    named = [target.get("kind"), target.get("name")] if isinstance(target, dict) else [target]
    if not all(each is None or isinstance(each, str) for each in named) or isinstance(target, str):
        raise BadRequest('Binding in version "v1" cannot be handled as a Binding: target is no object reference')


def _as_write(request: web.BaseRequest, target: Target, raw: bytes, params: Mapping[str, str]) -> Write:
    """The request as the Store knows it."""
    verb = {"POST": Verb.CREATE, "PUT": Verb.UPDATE, "PATCH": Verb.PATCH, "DELETE": Verb.DELETE}[request.method]
    content_type = request.headers.get("Content-Type", "")
    dialect = PatchType.MERGE
    body: Any
    if verb is Verb.DELETE:
        body = _delete_options(raw, request, target)
    elif verb is Verb.PATCH:
        dialect = negotiation.patch_type(content_type, target.kind)
        check_patch_options(params, applies=dialect is PatchType.APPLY)
        if dialect is PatchType.APPLY and "fieldManager" not in request.query:
            params = {name: value for name, value in params.items() if name != "fieldManager"}
        decode = negotiation.decode_yaml if dialect is PatchType.APPLY else negotiation.decode_json
        body = decode(raw, target.kind)
    else:
        body = negotiation.decode_body(raw, content_type, target.kind)
    return Write(
        verb,
        target.kind,
        target.namespace,
        target.name,
        body=body,
        subresource=target.subresource,
        patch_type=dialect,
        params=params,
    )


def _delete_options(raw: bytes, request: web.BaseRequest, target: Target) -> Doc | None:
    if not raw.strip():
        return None
    body = negotiation.decode_body(raw, request.headers.get("Content-Type", ""), target.kind)
    return None if body is None else private_copy(body)


def _check_validation(method: str, params: Mapping[str, str]) -> None:
    given = params.get("fieldValidation", "")
    if given not in FIELD_VALIDATION and method in _OPTIONS:
        supported = ", ".join(f'"{value}"' for value in FIELD_VALIDATION)
        raise unsupported_option(_OPTIONS[method], "fieldValidation", f'"{given}"', supported)


def _not_allowed() -> MethodNotAllowed:
    return MethodNotAllowed("the server does not allow this method on the requested resource")


def _failure(error: ApiError) -> web.Response:
    response = web.Response(body=orjson.dumps(error.status()), status=error.code, content_type="application/json")
    if error.retry_after is not None:
        response.headers["Retry-After"] = str(max(1, round(error.retry_after)))
    return response


def fitting_warnings(warnings: Sequence[str]) -> list[str]:
    """The warnings that fit in the headers of an answer: 256 characters each and 4 KiB in all, as kube-apiserver has
    it, and not more than clients written in Python take. Characters that a header cannot hold are replaced, because a
    write that happened must not look failed."""
    plain = ["".join(one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in text) for text in warnings]
    if sum(map(len, plain)) > WARNINGS_IN_ALL:
        plain = [text[:WARNING_LENGTH] for text in plain]
    fitting, length = [], 0
    for text in plain[:MOST_WARNINGS]:
        length += len(text)
        if length > WARNINGS_IN_ALL:
            break
        fitting.append(text)
    return fitting


def _json(document: Doc, status: int = 200, warnings: list[str] | None = None) -> web.Response:
    return _json_bytes(orjson.dumps(document), status, warnings)


def _json_bytes(body: bytes, status: int = 200, warnings: list[str] | None = None) -> web.Response:
    headers: CIMultiDict[str] = CIMultiDict({"Content-Type": "application/json"})
    for warning in fitting_warnings(warnings or ()):
        headers.add("Warning", '299 - "' + warning.replace("\\", "\\\\").replace('"', '\\"') + '"')
    return web.Response(body=body, status=status, headers=headers)
