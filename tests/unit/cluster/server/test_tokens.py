"""Tokens of service accounts, and the questions that are asked by creating something."""

from __future__ import annotations

import pytest

from fairlead.cluster.server import reviews
from fairlead.cluster.server.tokens import ADMIN, Tokens
from fairlead.errors import BadRequest, Conflict, Invalid, NotFound

ACCOUNT = {"metadata": {"name": "robot", "namespace": "team", "uid": "u"}}


def nothing(kind: str, namespace: str, name: str) -> None:
    return None


class Clock:
    now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


def test_a_token_is_good_until_it_expires_and_only_here() -> None:
    clock = Clock()
    tokens = Tokens("secret", clock)
    answer = reviews.token_for(ACCOUNT, {"spec": {"expirationSeconds": 600}}, tokens, nothing)
    token = answer["status"]["token"]
    user = tokens.user(token)
    assert user is not None
    assert (user.name, user.groups[1]) == ("system:serviceaccount:team:robot", "system:serviceaccounts:team")
    assert Tokens("other", clock).user(token) is None
    assert tokens.user(token[:-2]) is None
    assert tokens.user("") is None
    assert tokens.user("a.b.c") is None
    clock.now += 601
    assert tokens.user(token) is None
    assert tokens.user("secret") is ADMIN


def test_a_token_ends_with_its_account_and_with_what_it_is_bound_to() -> None:
    there = {("ServiceAccount", "u"), ("Pod", "p")}
    tokens = Tokens("secret", Clock(), lambda one: (one.kind, one.uid) in there)
    pod = {"metadata": {"name": "web", "namespace": "team", "uid": "p"}}
    spec = {"boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "web"}}
    bound = reviews.token_for(ACCOUNT, {"spec": spec}, tokens, lambda *_: pod)["status"]["token"]
    free = reviews.token_for(ACCOUNT, {}, tokens, nothing)["status"]["token"]
    assert tokens.user(bound) is not None
    there.remove(("Pod", "p"))
    assert tokens.user(bound) is None
    assert tokens.user(free) is not None
    there.remove(("ServiceAccount", "u"))
    there.add(("ServiceAccount", "another of the same name"))
    assert tokens.user(free) is None


def test_a_token_is_bound_only_to_what_is_there() -> None:
    tokens = Tokens("secret", Clock())
    spec = {"boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "web", "uid": "old"}}
    with pytest.raises(NotFound, match='pods "web" not found'):
        reviews.token_for(ACCOUNT, {"spec": spec}, tokens, nothing)
    with pytest.raises(Conflict, match="does not match the UID in record"):
        reviews.token_for(ACCOUNT, {"spec": spec}, tokens, lambda *_: {"metadata": {"uid": "new"}})
    wrong = {"boundObjectRef": {"apiVersion": "v1", "kind": "Service", "name": "web"}}
    with pytest.raises(BadRequest, match="cannot bind token for serviceaccount to object of type v1, Kind=Service"):
        reviews.token_for(ACCOUNT, {"spec": wrong}, tokens, nothing)


def test_an_empty_token_is_refused() -> None:
    with pytest.raises(ValueError, match="empty token"):
        Tokens("", Clock())


def test_a_token_lives_ten_minutes_at_least() -> None:
    with pytest.raises(Invalid, match="may not specify a duration less than 10 minutes"):
        reviews.token_for(ACCOUNT, {"spec": {"expirationSeconds": 5}}, Tokens("secret", Clock()), nothing)


def test_reviews_are_answered() -> None:
    tokens = Tokens("secret", Clock())
    assert reviews.answer(reviews.SELF_ACCESS, {"spec": {}}, ADMIN, tokens)["status"]["allowed"] is True
    assert reviews.answer(reviews.SELF, {}, ADMIN, tokens)["status"]["userInfo"]["username"] == "fairlead-admin"
    known = reviews.answer(reviews.TOKEN, {"spec": {"token": "secret"}}, ADMIN, tokens)["status"]
    assert (known["authenticated"], known["user"]["username"]) == (True, "fairlead-admin")
    unknown = reviews.answer(reviews.TOKEN, {"spec": {"token": "nope"}}, ADMIN, tokens)["status"]
    assert "authenticated" not in unknown
    rules = reviews.answer(reviews.SELF_RULES, {"spec": {"namespace": "x"}}, ADMIN, tokens)["status"]
    assert rules["resourceRules"][0]["verbs"] == ["*"]
