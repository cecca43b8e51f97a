"""The user of a request: the one administrator, or a service account with a token that this server issued.

A token is a JSON Web Token signed with a key derived from the administrator's token, so that nothing more has to be
kept: it is good until it expires or the cluster's credentials change. Everybody who is let in may do everything.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import orjson

ISSUER = "https://kubernetes.default.svc"
SHORTEST, USUAL = 600, 3600
ADMINISTRATOR = "fairlead-admin"


@dataclass(frozen=True, slots=True)
class User:
    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    audiences: tuple[str, ...] = (ISSUER,)
    extra: dict[str, list[str]] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        doc: dict[str, Any] = {"username": self.name, "groups": list(self.groups)}
        return doc | ({"uid": self.uid} if self.uid else {})


ADMIN = User(ADMINISTRATOR, ("system:masters", "system:authenticated"))


class Tokens:
    """Makes and reads tokens."""

    def __init__(self, token: str, clock: Callable[[], float]) -> None:
        self._authorization = token.encode()
        self._key = hashlib.sha256(b"service accounts of " + token.encode()).digest()
        self._clock = clock

    def user(self, token: str) -> User | None:
        """The service account that a token was issued for; None if this server did not issue it."""
        if hmac.compare_digest(token.encode(errors="replace"), self._authorization):
            return ADMIN
        return self._account(token)

    def issue(self, namespace: str, name: str, *, uid: str, audiences: list[str], seconds: int) -> tuple[str, float]:
        """A token for a service account, and when it expires."""
        now = int(self._clock())
        claims = {
            "aud": audiences or [ISSUER], "exp": now + seconds, "iat": now, "nbf": now, "iss": ISSUER,
            "kubernetes.io": {"namespace": namespace, "serviceaccount": {"name": name, "uid": uid}},
            "sub": f"system:serviceaccount:{namespace}:{name}",
        }  # fmt: skip
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
        namespace = claims["kubernetes.io"]["namespace"]
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated")
        uid = claims["kubernetes.io"]["serviceaccount"]["uid"]
        return User(claims["sub"], groups, uid, audiences=tuple(claims["aud"]))

    def _signature(self, content: str) -> str:
        return _packed(hmac.new(self._key, content.encode(errors="replace"), hashlib.sha256).digest())


def _packed(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _unpacked(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
