"""What a client may send and wants to get: media types, bodies, and the three shapes of an answer.

An object, a Table for printing, or metadata only: kubectl names them in the Accept header. Bodies are JSON, YAML or
protobuf; answers are JSON.
Whatever somebody sends, the answer is a Status with a reason and never a surprise: depth, size, aliases and odd
values of YAML are refused here, before anything looks at the content.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

import orjson
import yaml

from fairlead.cluster.server import protobuf
from fairlead.config.yaml_text import load_one
from fairlead.core.model.flow import PatchType
from fairlead.errors import BadRequest, NotAcceptable, TooLarge, UnsupportedMedia

if TYPE_CHECKING:
    from aiohttp.web import BaseRequest

    from fairlead.core.model.kinds import Kind

BODY_LIMIT = 3 * 1024 * 1024
SHOWN_OF_BODY = 100
DEEPEST_ENCODABLE = 200
"""With fewer brackets than this, whatever was read can also be written again."""
JSON = "application/json"
_HINT = "; fairlead reads protobuf but answers in JSON"
_YAML_TYPES = ("application/yaml", "application/x-yaml", "text/yaml")


class AnswerForm(Enum):
    """How the objects of an answer are to look."""

    OBJECT = "object"
    TABLE = "Table"
    METADATA = "PartialObjectMetadata"
    DISCOVERY = "APIGroupDiscoveryList"


_SHAPES = {shape.value: shape for shape in AnswerForm} | {"PartialObjectMetadataList": AnswerForm.METADATA}
_SERVED_VERSIONS = {AnswerForm.DISCOVERY: ("v2",)}


def wanted_shape(accept: str) -> AnswerForm:
    """The first acceptable of what the client lists, in its order."""
    if not accept:
        return AnswerForm.OBJECT
    for clause in accept.split(","):
        media, *parameters = (part.strip() for part in clause.split(";"))
        if media not in (JSON, "application/*", "*/*", "text/html", *_YAML_TYPES):
            continue
        named = dict(part.partition("=")[::2] for part in parameters)
        shape = _SHAPES.get(named.get("as", "object"))
        if shape is not None and named.get("v", "") in _SERVED_VERSIONS.get(shape, (named.get("v", ""),)):
            return shape
    raise NotAcceptable(
        "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml,"
        " application/json;stream=watch" + _HINT
    )


async def read_body(request: BaseRequest) -> bytes:
    """The request's body, as long as it is not too long."""
    parts, size = [], 0
    async for part in request.content.iter_any():
        size += len(part)
        if size > BODY_LIMIT:
            raise TooLarge(f"Request entity too large: limit is {BODY_LIMIT}")
        parts.append(part)
    return b"".join(parts)


def decode_body(raw: bytes, content_type: str, kind: Kind) -> Any:
    """The document in a body of a POST or PUT."""
    media = content_type.partition(";")[0].strip().lower()
    if media in ("", JSON):
        return decode_json(raw, kind)
    if media in _YAML_TYPES:
        return decode_yaml(raw, kind)
    if media == protobuf.MEDIA_TYPE:
        try:
            return protobuf.decode_protobuf(raw)
        except ValueError as error:
            raise _unrecognized(kind, f"couldn't get version/kind; protobuf: {error}") from error
    raise UnsupportedMedia(
        "the body of the request was in an unknown format - accepted media types include: application/json,"
        " application/yaml, application/vnd.kubernetes.protobuf"
    )


def decode_json(raw: bytes, kind: Kind) -> Any:
    try:
        body = orjson.loads(raw)
        if raw.count(b"[") + raw.count(b"{") > DEEPEST_ENCODABLE:
            orjson.dumps(body)
        return body
    except TypeError as error:
        raise _unrecognized(kind, "exceeded max depth") from error
    except orjson.JSONDecodeError as error:
        problem = "unexpected end of JSON input" if error.pos >= len(raw.rstrip()) else error.msg
        raise _unrecognized(
            kind, f"couldn't get version/kind; json parse error: {problem} ({_excerpt(raw)})"
        ) from error


def decode_yaml(raw: bytes, kind: Kind) -> Any:
    try:
        return orjson.loads(orjson.dumps(load_one(raw, aliases=False)))
    except yaml.MarkedYAMLError as error:
        raise _unrecognized(kind, f"error converting YAML to JSON: yaml: {_said(error)}") from error
    except (yaml.YAMLError, RecursionError, TypeError, ValueError) as error:
        raise _unrecognized(kind, f"error converting YAML to JSON: {str(error).splitlines()[0]}") from error


def patch_type(content_type: str, kind: Kind) -> PatchType:
    media = content_type.partition(";")[0].strip().lower()
    try:
        return PatchType(media)
    except ValueError:
        raise UnsupportedMedia("415: Unsupported Media Type") from None


def _said(error: yaml.MarkedYAMLError) -> str:
    mark = error.problem_mark or error.context_mark
    return (f"line {mark.line + 1}: " if mark else "") + (error.problem or str(error).splitlines()[0])


def _unrecognized(kind: Kind, problem: str) -> BadRequest:
    return BadRequest(f"the object provided is unrecognized (must be of type {kind.kind}): {problem}")


def _excerpt(raw: bytes) -> str:
    text = raw[:SHOWN_OF_BODY].decode(errors="replace")
    return (text + (" ..." if len(raw) > SHOWN_OF_BODY else "")) or "<empty>"
