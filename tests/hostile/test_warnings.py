"""Warnings of a write that happened: they fit in headers whatever the request held."""

from __future__ import annotations

import time

from fairlead.cluster.server.pki import Credentials
from fairlead.cluster.server.server import WARNINGS_IN_ALL, fitting_warnings
from tests.support.served import Client, run

MAPS = "/api/v1/namespaces/default/configmaps"


def test_a_field_with_a_control_character_is_warned_of_and_the_write_is_answered() -> None:
    async def story(client: Client) -> None:
        status, doc = await client.ask("POST", MAPS, {"metadata": {"name": "odd"}, "un\x01known\r\n": 1})
        assert (status, doc["metadata"]["name"]) == (201, "odd")

    run(Credentials.generate(now=time.time()), story)


def test_thousands_of_unknown_fields_leave_few_headers() -> None:
    async def story(client: Client) -> None:
        body = {"metadata": {"name": "many"}, **{f"unknown{number}": 1 for number in range(3_000)}}
        async with client.session.post(client.server.url + MAPS, json=body) as answer:
            assert answer.status == 201
            assert sum(map(len, answer.headers.getall("Warning"))) < 2 * WARNINGS_IN_ALL

    run(Credentials.generate(now=time.time()), story)


def test_warnings_are_cut_only_if_they_are_too_long_together() -> None:
    assert fitting_warnings(["a" * 300]) == ["a" * 300]
    assert fitting_warnings(["a" * 300] * 100) == ["a" * 256] * 16
    assert fitting_warnings(["a\nb\x7f"]) == ["a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}"]
