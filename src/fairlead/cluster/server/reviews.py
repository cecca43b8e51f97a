"""Questions that are asked by creating something: who am I, may I, whose token is this.

Nothing of it is stored. There is no authorization: a client that is let in may do everything, and the answers say so.
RBAC objects can be created and read like all others; nobody looks at them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fairlead.cluster.server.tokens import ISSUER, SHORTEST, USUAL, Reference, User
from fairlead.core.model.kinds import Kind
from fairlead.core.model.times import timestamp
from fairlead.errors import BadRequest, Conflict, Invalid, NotFound

if TYPE_CHECKING:
    from fairlead.cluster.server.tokens import Tokens
    from fairlead.core.model.flow import Doc

AUTHORIZATION, AUTHENTICATION = "authorization.k8s.io", "authentication.k8s.io"


def _review(group: str, kind: str, *, namespaced: bool = False) -> Kind:
    return Kind(group, "v1", kind, kind.lower() + "s", namespaced=namespaced, singular=kind.lower())


SELF_ACCESS = _review(AUTHORIZATION, "SelfSubjectAccessReview")
ACCESS = _review(AUTHORIZATION, "SubjectAccessReview")
LOCAL_ACCESS = _review(AUTHORIZATION, "LocalSubjectAccessReview", namespaced=True)
SELF_RULES = _review(AUTHORIZATION, "SelfSubjectRulesReview")
SELF = _review(AUTHENTICATION, "SelfSubjectReview")
TOKEN = _review(AUTHENTICATION, "TokenReview")
TOKEN_REQUEST = Kind(AUTHENTICATION, "v1", "TokenRequest", "tokenrequests")
REVIEWS: dict[tuple[str, str, str], Kind] = {
    (kind.group, kind.version, kind.plural): kind
    for kind in (SELF_ACCESS, ACCESS, LOCAL_ACCESS, SELF_RULES, SELF, TOKEN)
}


def answer(kind: Kind, body: Doc, user: User, tokens: Tokens) -> Doc:
    """The review with its status."""
    if not isinstance(body.get("spec", {}), dict | None):
        raise BadRequest(f'{kind.kind} in version "v1" cannot be handled as a {kind.kind}: spec must be an object')
    status = _ANSWERS[kind](body.get("spec") or {}, user, tokens)
    return {**body, "kind": kind.kind, "apiVersion": kind.api_version, "metadata": {}, "status": status}


def _allowed(_: Doc, __: User, ___: Tokens) -> Doc:
    return {"allowed": True, "reason": "fairlead lets everybody who is let in do everything"}


def _allowed_to(spec: Doc, _: User, __: Tokens) -> Doc:
    """Nobody is let in here without a token, so who has none may nothing elsewhere either."""
    if spec.get("user") == "system:anonymous":
        return {"allowed": False, "reason": "fairlead lets nobody in without a token"}
    return _allowed(spec, _, __)


def _rules(_: Doc, __: User, ___: Tokens) -> Doc:
    everything = [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]
    paths = [{"verbs": ["*"], "nonResourceURLs": ["*"]}]
    return {"resourceRules": everything, "nonResourceRules": paths, "incomplete": False}


def _me(_: Doc, user: User, __: Tokens) -> Doc:
    return {"userInfo": user.document()}


def _whose(spec: Doc, _: User, tokens: Tokens) -> Doc:
    token = spec.get("token")
    if not isinstance(token, str) or not token:
        raise Invalid(
            'TokenReview.authentication.k8s.io "" is invalid: spec.token: Required value',
            details={"group": AUTHENTICATION, "kind": "TokenReview"},
        )
    wanted = _texts(spec.get("audiences"), "spec.audiences", TOKEN)
    user = tokens.user(token)
    if user is None:
        return {"user": {}, "error": "invalid bearer token"}
    common = [each for each in wanted if each in user.audiences] if wanted else list(user.audiences)
    if not common:
        return {"user": {}, "error": "token audiences do not match"}
    return {"authenticated": True, "user": user.document(), "audiences": common}


def _texts(value: Any, field: str, kind: Kind) -> list[str]:
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        handled = f'{kind.kind} in version "v1" cannot be handled as a {kind.kind}'
        raise BadRequest(f"{handled}: {field} must be a list of texts")
    return value


def _bound(wanted: Any, account: Reference, find: Find) -> Reference | None:
    """The object that a TokenRequest binds its token to, as it is now."""
    if wanted is None:
        return None
    if not isinstance(wanted, dict):
        raise BadRequest(
            'TokenRequest in version "v1" cannot be handled as a TokenRequest: spec.boundObjectRef must be an object'
        )
    kind, name, uid = (str(wanted.get(field) or "") for field in ("kind", "name", "uid"))
    if _BOUND_KINDS.get(kind) != wanted.get("apiVersion"):
        which = f"{wanted.get('apiVersion')}, Kind={kind}"
        raise BadRequest(f"cannot bind token for serviceaccount to object of type {which}")
    namespace = "" if kind == "Node" else account.namespace
    found = find(kind, namespace, name)
    if found is None:
        raise NotFound(f'{kind.lower()}s "{name}" not found', details={"name": name, "kind": f"{kind.lower()}s"})
    actual = found["metadata"]["uid"]
    if uid and uid != actual:
        raise Conflict(
            f'Operation cannot be fulfilled on {kind.lower()}s "{name}": the UID in the bound object reference ({uid})'
            f" does not match the UID in record. The object might have been deleted and then recreated"
        )
    return Reference(kind, namespace, name, actual)


_ANSWERS: dict[Kind, Callable[[Any, User, Any], Doc]] = {
    SELF_ACCESS: _allowed, ACCESS: _allowed_to, LOCAL_ACCESS: _allowed_to, SELF_RULES: _rules, SELF: _me, TOKEN: _whose,
}  # fmt: skip


Find = Callable[[str, str, str], "Doc | None"]
"""The object with this kind, namespace and name; None if it does not exist."""
_BOUND_KINDS = {"Pod": "v1", "Secret": "v1", "Node": "v1"}


def token_for(account: Doc, body: Doc, tokens: Tokens, find: Find) -> Doc:
    """The answer to a TokenRequest for a service account. `find` reads the object that the token is bound to."""
    spec = body.get("spec") or {}
    if not isinstance(spec, dict):
        raise BadRequest('TokenRequest in version "v1" cannot be handled as a TokenRequest: spec must be an object')
    seconds = spec.get("expirationSeconds") or USUAL
    if not isinstance(seconds, int) or not SHORTEST <= seconds <= 2**32:
        problem = "may not specify a duration less than 10 minutes"
        raise Invalid(
            'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: '
            f"{seconds}: {problem}",
            details={"group": AUTHENTICATION, "kind": "TokenRequest"},
        )
    audiences = _texts(spec.get("audiences"), "spec.audiences", TOKEN_REQUEST) or [ISSUER]
    metadata = account["metadata"]
    reference = Reference("ServiceAccount", metadata["namespace"], metadata["name"], metadata["uid"])
    token, expires = tokens.issue(
        reference, audiences=audiences, seconds=seconds, bound=_bound(spec.get("boundObjectRef"), reference, find)
    )
    return {
        "kind": "TokenRequest",
        "apiVersion": TOKEN_REQUEST.api_version,
        "metadata": {key: metadata[key] for key in ("name", "namespace")},
        "spec": {**spec, "audiences": audiences, "expirationSeconds": seconds},
        "status": {"token": token, "expirationTimestamp": timestamp(expires)},
    }
