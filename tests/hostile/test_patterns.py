"""Patterns that need exponential time with backtracking: a server and a scheduler go on."""

from __future__ import annotations

import time
from typing import Any

from fairlead.cluster.server.pki import Credentials
from tests.support.served import Client, run

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
LONG = "a" * 40_000 + "!"


def definition(**of_text: Any) -> dict[str, Any]:
    schema = {
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": {"text": {"type": "string"} | of_text}}},
    }
    return {
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }


async def stored(client: Client, text: str) -> tuple[int, Any]:
    path = "/apis/example.com/v1/namespaces/default/things"
    return await client.ask("POST", path, {"metadata": {"generateName": "t-"}, "spec": {"text": text}})


def story_with(text: str, wanted: int, **of_text: Any) -> None:
    async def story(client: Client) -> None:
        assert (await client.ask("POST", DEFINITIONS, definition(**of_text)))[0] == 201
        status, answer = await stored(client, text)
        assert status == wanted, answer
        assert await client.ask("GET", "/healthz") == (200, b"ok")

    run(Credentials.generate(now=time.time()), story)


def test_a_pattern_of_a_definition() -> None:
    story_with(LONG, 422, pattern="^(a+)+$")


def test_a_pattern_of_a_rule() -> None:
    story_with(LONG, 422, **{"x-kubernetes-validations": [{"rule": "self.find('^(a+)+$') != ''"}]})


def test_an_address_that_is_none() -> None:
    story_with("a@" + "." * 40_000, 422, format="email")


def test_patterns_have_gos_syntax_and_verdicts() -> None:
    story_with("abc", 201, pattern="[[:alpha:]]+")
    story_with("abc\n", 422, pattern="^abc$")
    story_with("é", 201, pattern=r"^\p{L}\z")


def test_what_is_no_pattern_is_said_in_gos_words() -> None:
    async def story(client: Client) -> None:
        status, answer = await client.ask("POST", DEFINITIONS, definition(pattern=r"(a)\1"))
        assert status == 422
        wanted = "must be a valid regular expression, but isn't: error parsing regexp: invalid escape sequence: `\\1`"
        assert wanted in answer["message"]

    run(Credentials.generate(now=time.time()), story)
