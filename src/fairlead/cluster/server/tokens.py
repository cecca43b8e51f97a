"""The user of a request: the one administrator, or a service account with a token that this server issued.

A token is a JSON Web Token signed with a key derived from the administrator's token, so that nothing more has to be
kept: it is good until it expires, its account or the object that it is bound to goes, or the cluster's credentials
change. Everybody who is let in may do everything.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import orjson

ISSUER = "https://kubernetes.default.svc"
SHORTEST, USUAL = 600, 3600
ADMINISTRATOR = "fairlead-admin"


class Reference(NamedTuple):
    """An object by kind (`ServiceAccount`, `Pod`, `Secret` or `Node`), namespace, name and uid."""

    kind: str
    namespace: str
    name: str
    uid: str


IsThere = Callable[[Reference], bool]


def _all_there(_: Reference) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class User:
    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    audiences: tuple[str, ...] = (ISSUER,)
    extra: dict[str, list[str]] = field(default_factory=dict)
    bound_to: tuple[Reference, ...] = ()
    """What must be there for the token to be good."""

    def document(self) -> dict[str, Any]:
        doc: dict[str, Any] = {"username": self.name, "groups": list(self.groups)}
        return doc | ({"uid": self.uid} if self.uid else {})


ADMIN = User(ADMINISTRATOR, ("system:masters", "system:authenticated"))


class Tokens:
    """Makes and reads tokens. `is_there` says whether an object exists with its uid."""

    def __init__(self, token: str, clock: Callable[[], float], is_there: IsThere = _all_there) -> None:
        if not token:
            raise ValueError("an empty token would let everybody in")
        self._authorization = token.encode()
        self._key = hashlib.sha256(b"service accounts of " + token.encode()).digest()
        self._clock = clock
        self._is_there = is_there

    def user(self, token: str) -> User | None:
        """The service account that a token was issued for; None if this server did not issue it."""
        if hmac.compare_digest(token.encode(errors="replace"), self._authorization):
            return ADMIN
        return self._account(token)

    def issue(
        self, account: Reference, *, audiences: list[str], seconds: int, bound: Reference | None = None
    ) -> tuple[str, float]:
        """A token for a service account, and when it expires. It is `bound` to one more object if one is given."""
        now, namespace, name = int(self._clock()), account.namespace, account.name
        claims = {
            "aud": audiences or [ISSUER],
            "exp": now + seconds,
            "iat": now,
            "nbf": now,
            "iss": ISSUER,
            "kubernetes.io": {
                "namespace": namespace,
                "serviceaccount": {"name": name, "uid": account.uid},
                **({} if bound is None else {bound.kind.lower(): {"name": bound.name, "uid": bound.uid}}),
            },
            "sub": f"system:serviceaccount:{namespace}:{name}",
        }
        head = _packed(orjson.dumps({"alg": "HS256", "typ": "JWT"}))
        content = f"{head}.{_packed(orjson.dumps(claims))}"
        return f"{content}.{self._signature(content)}", float(now + seconds)

    def _account(self, token: str) -> User | None:
        content, _, signature = token.rpartition(".")
        if not hmac.compare_digest(signature.encode(errors="replace"), self._signature(content).encode()):
            return None
        try:
            claims = orjson.loads(_unpacked(content.partition(".")[2]))
        except (ValueError, binascii.Error):
            return None
        if claims["exp"] <= self._clock():
            return None
        bound = _bound_objects(claims["kubernetes.io"])
        if not all(map(self._is_there, bound)):
            return None
        namespace, uid = bound[0].namespace, bound[0].uid
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated")
        return User(claims["sub"], groups, uid, audiences=tuple(claims["aud"]), bound_to=bound)

    def _signature(self, content: str) -> str:
        return _packed(hmac.new(self._key, content.encode(errors="replace"), hashlib.sha256).digest())


def _bound_objects(claims: dict[str, Any]) -> tuple[Reference, ...]:
    """The objects of a token's claims, its account first."""
    namespace = claims["namespace"]
    return tuple(
        Reference(kind, "" if kind == "Node" else namespace, named["name"], named["uid"])
        for kind in ("ServiceAccount", "Pod", "Secret", "Node")
        if (named := claims.get(kind.lower())) is not None
    )


def _packed(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _unpacked(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
