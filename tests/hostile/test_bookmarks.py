"""The bookmark that ends the initial events, while others write: who resumes from it gets nothing twice."""

from __future__ import annotations

import time
from typing import Any

import orjson

from fairlead.cluster.server.pki import Credentials
from fairlead.cluster.server.watching import WatchStream
from fairlead.core.model.flow import Verb, Write
from fairlead.core.model.kinds import CONFIG_MAP
from tests.support.served import Client, run

MAPS = "/api/v1/namespaces/default/configmaps"
WATCH = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"


def test_a_bookmark_never_goes_behind_an_event_that_was_sent(monkeypatch: Any) -> None:
    async def story(client: Client) -> None:
        client.store.perform(Write(Verb.CREATE, CONFIG_MAP, "default", "first", body={}))
        drain = WatchStream._drain

        async def busy(stream: WatchStream, subscription: Any) -> None:
            """Somebody writes after the list was taken and before its events are sent."""
            if client.store.get(CONFIG_MAP, "default", "late") is None:
                client.store.perform(Write(Verb.CREATE, CONFIG_MAP, "default", "late", body={}))
            await drain(stream, subscription)

        monkeypatch.setattr(WatchStream, "_drain", busy)
        seen: list[tuple[str, int]] = []
        async with client.session.get(f"{client.server.url}{MAPS}?{WATCH}") as answer:
            async for line in answer.content:
                event = orjson.loads(line)
                seen.append((event["type"], int(event["object"]["metadata"]["resourceVersion"])))
                if event["type"] == "BOOKMARK":
                    break
        sent = [version for kind, version in seen if kind != "BOOKMARK"]
        assert len(sent) == 2
        assert seen[-1][1] >= max(sent)

    run(Credentials.generate(now=time.time()), story)
