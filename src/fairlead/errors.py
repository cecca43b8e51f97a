"""Every exception that fairlead raises on purpose.

A refusal to place a pod is an answer and never an exception (see core/model/reasons.py). What remains are surprises,
and the shell decides what becomes of them: retry, back off or exit.

    FairleadError
    ├── ApiError                 an API answered with a Status; carries code, reason, message and details
    │   ├── BadRequest           400  the request makes no sense
    │   ├── Unauthorized         401  who are you
    │   ├── Forbidden            403  not you
    │   ├── NotFound             404
    │   ├── MethodNotAllowed     405
    │   ├── NotAcceptable        406
    │   ├── AlreadyExists        409  create of a name that is taken
    │   ├── Conflict             409  the resourceVersion (or uid) moved on
    │   ├── Gone                 410  the resourceVersion is too old to watch or continue from
    │   ├── TooLarge             413
    │   ├── UnsupportedMedia     415
    │   ├── Invalid              422  validation failed; the causes name the fields
    │   ├── TooManyRequests      429  retry after a while
    │   ├── InternalError        500
    │   ├── StorageFull          507  nothing was written
    │   ├── NotSent              503  a write that never left this process: superseded, dropped, or not ours to send
    │   ├── NotLeading           503  a scheduler that stands by; the details name who leads
    │   └── Unreachable          503  no answer at all, or the server is not ready
    │       └── Interrupted      503  the answer had begun when the connection broke off or fell silent
    ├── ConfigError              a configuration file is wrong; names file, path of the field and the fix
    ├── JournalError             the data directory cannot be used
    ├── PluginError              a plugin raised; names plugin and point
    ├── ExtenderError            an HTTP extender failed; names it and the verb
    └── ScenarioError            a scenario or recording cannot be used
"""

from __future__ import annotations

from typing import Any


class FairleadError(Exception):
    """The root of the tree."""


class ApiError(FairleadError):
    """An API's refusal, with what a Kubernetes Status carries."""

    code = 500
    reason = "InternalError"

    def __init__(
        self, message: str, *, details: dict[str, Any] | None = None, retry_after: float | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.details = details or {}
        self.retry_after = retry_after

    def status(self) -> dict[str, Any]:
        """This error as a `v1.Status` document."""
        doc: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "code": self.code,
        }
        details = dict(self.details)
        if self.retry_after is not None:
            details["retryAfterSeconds"] = max(1, round(self.retry_after))
        if details:
            doc["details"] = details
        return doc


class BadRequest(ApiError):
    code, reason = 400, "BadRequest"


class Unauthorized(ApiError):
    code, reason = 401, "Unauthorized"


class Forbidden(ApiError):
    code, reason = 403, "Forbidden"


class NotFound(ApiError):
    code, reason = 404, "NotFound"


class MethodNotAllowed(ApiError):
    code, reason = 405, "MethodNotAllowed"


class NotAcceptable(ApiError):
    code, reason = 406, "NotAcceptable"


class AlreadyExists(ApiError):
    code, reason = 409, "AlreadyExists"


class Conflict(ApiError):
    code, reason = 409, "Conflict"


class Gone(ApiError):
    code, reason = 410, "Expired"


class TooLarge(ApiError):
    code, reason = 413, "RequestEntityTooLarge"


class UnsupportedMedia(ApiError):
    code, reason = 415, "UnsupportedMediaType"


class Invalid(ApiError):
    code, reason = 422, "Invalid"


class TooManyRequests(ApiError):
    code, reason = 429, "TooManyRequests"


class InternalError(ApiError):
    code, reason = 500, "InternalError"


class StorageFull(ApiError):
    code, reason = 507, "InsufficientStorage"


class NotSent(ApiError):
    code, reason = 503, "NotSent"


class NotLeading(ApiError):
    code, reason = 503, "NotLeading"


class Unreachable(ApiError):
    code, reason = 503, "ServiceUnavailable"


class Interrupted(Unreachable):
    pass


_BY_REASON: dict[str, type[ApiError]] = {
    cls.reason: cls
    for cls in (
        BadRequest,
        Unauthorized,
        Forbidden,
        NotFound,
        MethodNotAllowed,
        NotAcceptable,
        AlreadyExists,
        Conflict,
        Gone,
        TooLarge,
        UnsupportedMedia,
        Invalid,
        TooManyRequests,
        InternalError,
        StorageFull,
        NotLeading,
        Unreachable,
    )
}
_BY_CODE: dict[int, type[ApiError]] = {cls.code: cls for cls in _BY_REASON.values() if cls is not AlreadyExists} | {
    504: Unreachable,
    502: Unreachable,
}


def api_error(code: int, status: dict[str, Any]) -> ApiError:
    """The exception for a Status document received over the wire."""
    cls = _BY_REASON.get(status.get("reason") or "") or _BY_CODE.get(code) or InternalError
    details = status.get("details") or {}
    error = cls(
        status.get("message") or f"the server answered {code}",
        details=details,
        retry_after=details.get("retryAfterSeconds"),
    )
    error.code = code
    return error


class ConfigError(FairleadError):
    """A configuration that cannot be used; `path` is the field, as in `.profiles[0].plugins`."""

    def __init__(
        self, message: str, *, file: str = "", path: str = "", line: int | None = None, hint: str = ""
    ) -> None:
        where = file + (f":{line}" if line is not None else "")
        text = ": ".join(part for part in (where, path, message) if part)
        super().__init__(f"{text} ({hint})" if hint else text)
        self.message, self.file, self.path, self.line, self.hint = message, file, path, line, hint


class JournalError(FairleadError):
    """A data directory that cannot be used: locked, unreadable, or of an unknown format."""


class PluginError(FairleadError):
    """A plugin raised instead of answering, or answered what is no answer."""

    def __init__(self, plugin: str, point: str, cause: BaseException) -> None:
        words = f"failed at {point}: {type(cause).__name__}: {cause}"
        if isinstance(cause, WrongAnswer):
            words = f"answered wrongly at {point}: {cause}"
        super().__init__(f"plugin {plugin} {words}")
        self.plugin, self.point = plugin, point


class WrongAnswer(Exception):
    """What a plugin answered is no answer. The words begin with what it did, as in "it returned None"."""


class IndexFailed(Exception):
    """An index raised while a pod came to a row or left it. It is no FairleadError: the table may be wrong from here
    on, so no caller may take it for one plugin's failure and go on."""


class ExtenderError(FairleadError):
    """An extender that did not answer as it should."""


class ScenarioError(FairleadError):
    """A scenario, trace or recording that cannot be used."""
