"""The Store over HTTPS, as a client sees it: who may ask, what is answered, and what bad requests get."""

from __future__ import annotations

import asyncio
import base64
import stat
import time
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest
import yaml

from fairlead.cluster.server.pki import Credentials, write_private
from fairlead.cluster.server.server import Probes
from fairlead.core.model.attendance import Attendance
from fairlead.core.model.flow import Verb, Write
from fairlead.core.model.kinds import CONFIG_MAP, POD
from tests.support.served import Client, run

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
PODS, MAPS = "/api/v1/namespaces/default/pods", "/api/v1/namespaces/default/configmaps"
POD_BODY = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "x"}]}}


@pytest.fixture(scope="module")
def credentials() -> Credentials:
    return Credentials.generate(now=time.time())


def test_only_the_token_opens_the_door_but_health_is_public(credentials: Credentials) -> None:
    async def story(client: Client) -> None:
        for wrong in ("Bearer other", "", "Basic YTpi"):
            status, answer = await client.ask("GET", PODS, Authorization=wrong)
            assert (status, answer["reason"], answer["message"]) == (401, "Unauthorized", "Unauthorized")
        assert await client.ask("GET", "/healthz", Authorization="") == (200, b"ok")

    run(credentials, story)


def test_readiness_is_somebody_elses_to_say(credentials: Credentials) -> None:
    async def story(client: Client) -> None:
        assert (await client.ask("GET", "/readyz"))[0] == 503
        assert (await client.ask("GET", "/livez"))[0] == 200

    run(credentials, story, probes=Probes(ready=lambda: False))


def test_discovery_names_kinds_verbs_and_short_names_in_both_forms(credentials: Credentials) -> None:
    async def story(client: Client) -> None:
        _, core = await client.ask("GET", "/api/v1")
        pods = next(entry for entry in core["resources"] if entry["name"] == "pods")
        assert (pods["shortNames"], pods["categories"], pods["singularName"]) == (["po"], ["all"], "pod")
        assert "watch" in pods["verbs"]
        assert {"pods/binding", "pods/status"} <= {entry["name"] for entry in core["resources"]}
        _, groups = await client.ask("GET", "/apis")
        assert "batch.volcano.sh" in {group["name"] for group in groups["groups"]}
        accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
        _, aggregated = await client.ask("GET", "/apis", Accept=accept)
        apps = next(item for item in aggregated["items"] if item["metadata"]["name"] == "apps")
        names = {entry["resource"] for entry in apps["versions"][0]["resources"]}
        assert {"deployments", "statefulsets"} <= names

    run(credentials, story)


def test_an_object_lives_from_post_to_delete(credentials: Credentials) -> None:
    async def story(client: Client) -> None:
        assert (await client.ask("POST", PODS, POD_BODY))[0] == 201
        status, doc = await client.ask("GET", f"{PODS}/p")
        assert (status, doc["spec"]["schedulerName"]) == (200, "default-scheduler")
        binding = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}}
        assert (await client.ask("POST", "/api/v1/namespaces/default/bindings", binding))[0] == 201
        patch = {"metadata": {"labels": {"a": "b"}}}
        status, doc = await client.ask("PATCH", f"{PODS}/p", patch, Content_Type="application/merge-patch+json")
        assert (status, doc["spec"]["nodeName"], doc["metadata"]["labels"]) == (200, "n", {"a": "b"})
        assert (await client.ask("DELETE", f"{PODS}/p?gracePeriodSeconds=0"))[0] == 200
        assert (await client.ask("GET", f"{PODS}/p"))[0] == 404

    run(credentials, story)


def test_items_of_a_list_leave_out_what_the_list_says(credentials: Credentials) -> None:
    async def story(client: Client) -> None:
        for name in "abc":
            await client.ask("POST", MAPS, {"metadata": {"name": name}})
        _, page = await client.ask("GET", f"{MAPS}?limit=2")
        assert (page["kind"], page["metadata"]["remainingItemCount"]) == ("ConfigMapList", 1)
        assert [sorted(item) for item in page["items"]] == [["metadata"], ["metadata"]]
        _, rest = await client.ask("GET", f"{MAPS}?limit=2&continue={page['metadata']['continue']}")
        assert [item["metadata"]["name"] for item in rest["items"]] == ["c"]

    run(credentials, story)


def test_kubectl_gets_tables_and_metadata_when_it_asks_for_them(credentials: Credentials) -> None:
    async def story(client: Client) -> None:
        await client.ask("POST", PODS, POD_BODY)
        _, table = await client.ask("GET", PODS, Accept=TABLE)
        columns = [column["name"] for column in table["columnDefinitions"]]
        assert columns[:3] == ["Name", "Ready", "Status"]
        assert table["rows"][0]["cells"][:3] == ["p", "0/1", "Pending"]
        accept = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
        _, partial = await client.ask("GET", PODS, Accept=accept)
        assert (partial["kind"], sorted(partial["items"][0])) == (
            "PartialObjectMetadataList",
            ["apiVersion", "kind", "metadata"],
        )

    run(credentials, story)


def test_a_watch_streams_what_happens_and_ends_in_time(credentials: Credentials) -> None:
    async def story(client: Client) -> None:
        url = f"{client.server.url}{MAPS}?watch=1&timeoutSeconds=1&allowWatchBookmarks=true"
        url += "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
        await client.ask("POST", MAPS, {"metadata": {"name": "a"}})
        async with client.session.get(url) as response:
            events = [orjson.loads(await response.content.readline()) for _ in range(2)]
            await client.ask("POST", MAPS, {"metadata": {"name": "b"}})
            events += [orjson.loads(line) async for line in response.content]
        assert [event["type"] for event in events[:3]] == ["ADDED", "BOOKMARK", "ADDED"]
        assert events[1]["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
        assert events[2]["object"]["metadata"]["name"] == "b"

    run(credentials, story)


QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues"
INITIAL_EVENTS = "watch=1&timeoutSeconds=1&allowWatchBookmarks=true&sendInitialEvents=true"


@pytest.mark.parametrize(("path", "body"), [(MAPS, {"metadata": {"name": "a"}}), (QUEUES, {"metadata": {"name": "a"}})])
def test_all_events_of_a_watch_have_the_form_that_was_asked_for(
    credentials: Credentials, path: str, body: dict[str, Any]
) -> None:
    """Bookmarks too: the garbage collector's informers, which ask for metadata, can decode nothing else."""

    async def story(client: Client) -> None:
        await client.ask("POST", path, body)
        url = f"{client.server.url}{path}?{INITIAL_EVENTS}&resourceVersionMatch=NotOlderThan"
        for accept, kind in (
            ("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1", "PartialObjectMetadata"),
            (TABLE, "Table"),
        ):
            async with client.session.get(url, headers={"Accept": accept}) as response:
                events = [orjson.loads(line) async for line in response.content]
            assert {(event["object"]["kind"], event["object"]["apiVersion"]) for event in events} == {
                (kind, "meta.k8s.io/v1")
            }
            bookmark = next(event["object"] for event in events if event["type"] == "BOOKMARK")
            marked = bookmark if kind != "Table" else bookmark["rows"][0]["object"]
            assert marked["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}

    run(credentials, story)


def test_a_watch_from_a_forgotten_version_gets_that_reason_in_the_stream(credentials: Credentials) -> None:
    async def story(client: Client) -> None:
        client.store._history.log(CONFIG_MAP).compacted = 10_000
        status, event = await client.ask("GET", f"{MAPS}?watch=1&resourceVersion=1")
        assert (status, event["type"], event["object"]["code"]) == (200, "ERROR", 410)
        assert event["object"]["message"] == "too old resource version: 1 (10000)"

    run(credentials, story)


def test_a_watcher_that_does_not_read_is_cut_off_and_others_go_on(credentials: Credentials) -> None:
    async def story(client: Client) -> None:
        def write(number: int) -> None:
            body = {"metadata": {"name": f"c{number}"}, "data": {"k": "v" * 100_000}}
            client.store.perform(Write(Verb.CREATE, CONFIG_MAP, "default", "", body=body))

        url = f"{client.server.url}{MAPS}?watch=1&resourceVersion={client.store.resource_version}"
        async with client.session.get(url) as slow:
            for number in range(400):
                write(number)
                await asyncio.sleep(0)
            with pytest.raises(aiohttp.ClientError):
                await slow.read()
        assert (await client.ask("GET", f"{MAPS}/c399"))[0] == 200

    run(credentials, story, watch_buffer=20)


@pytest.mark.parametrize(
    ("method", "path", "body", "content_type", "status"),
    [
        ("POST", PODS, b'{"meta', "application/json", 400),
        ("POST", PODS, b"", "application/json", 400),
        ("POST", PODS, b"[]", "application/json", 400),
        ("POST", PODS, b'{"metadata":5}', "application/json", 400),
        ("POST", PODS, b'{"metadata":{"name":"p"},"spec":{"containers":"x"}}', "application/json", 400),
        ("POST", PODS, b'{"metadata":{"name":"p"},"spec":{"containers":[]}}', "application/json", 422),
        ("POST", PODS, b"[" * 100_000, "application/json", 400),
        ("POST", MAPS, b'{"data":' * 300 + b"1" + b"}" * 300, "application/json", 400),
        ("POST", MAPS, b"a: &x [1]\nb: *x\n", "application/yaml", 400),
        ("POST", MAPS, b"a: [", "application/yaml", 400),
        ("POST", MAPS, b"{}", "text/plain", 415),
        ("POST", MAPS, b"k8s\0\xff\xff\xff", "application/vnd.kubernetes.protobuf", 400),
        ("POST", MAPS, b"x" * (3 * 1024 * 1024 + 1), "application/json", 413),
        ("PATCH", f"{MAPS}/a", b"{}", "application/json", 415),
        (
            "POST",
            f"{PODS}/p/binding",
            b'{"metadata":{"name":"p"},"target":{"kind":[],"name":"n"}}',
            "application/json",
            400,
        ),
        ("POST", f"{PODS}/p/binding", b'{"metadata":{"name":"p"},"target":5}', "application/json", 400),
        ("PUT", PODS, b"{}", "application/json", 405),
        ("POST", f"{PODS}/p", b"{}", "application/json", 405),
        ("GET", f"{PODS}?limit=x", b"", "", 400),
        ("GET", f"{PODS}?continue=zz", b"", "", 400),
        ("GET", f"{PODS}?labelSelector=((", b"", "", 400),
        ("GET", f"{PODS}?resourceVersionMatch=Exact", b"", "", 422),
        ("GET", "/api/v1/nothing", b"", "", 404),
        ("GET", "/apis/no.such.group/v1/things", b"", "", 404),
        ("DELETE", f"{PODS}/p?dryRun=Some", b"", "", 422),
    ],
)
def test_bad_requests_get_a_status_and_never_a_500(
    credentials: Credentials, method: str, path: str, body: bytes, content_type: str, status: int
) -> None:
    async def story(client: Client) -> None:
        await client.ask("POST", PODS, POD_BODY)
        found, answer = await client.ask(method, path, body, Content_Type=content_type)
        assert (found, answer["kind"], answer["status"], answer["code"]) == (status, "Status", "Failure", status)
        assert answer["message"]

    run(credentials, story)


def test_yaml_is_read_as_kubernetes_reads_it(credentials: Credentials) -> None:
    async def story(client: Client) -> None:
        body = b"metadata: {name: a}\ndata: {day: 2024-01-02}\n"
        status, doc = await client.ask("POST", MAPS, body, Content_Type="application/yaml")
        assert (status, doc["data"]) == (201, {"day": "2024-01-02"})

    run(credentials, story)


def test_unknown_fields_come_back_as_warnings(credentials: Credentials) -> None:
    async def story(client: Client) -> None:
        data = orjson.dumps({"metadata": {"name": "a"}, "surprise": 1})
        headers = {"Content-Type": "application/json"}
        async with client.session.post(client.server.url + MAPS, data=data, headers=headers) as response:
            assert response.status == 201
            assert response.headers.getall("Warning") == ['299 - "unknown field \\"surprise\\""']

    run(credentials, story)


def test_protobuf_bodies_are_understood(credentials: Credentials) -> None:
    # What kubectl sends for `kubectl create namespace x`.
    def field(number: int, value: bytes) -> bytes:
        return bytes([number << 3 | 2, len(value)]) + value

    namespace = field(1, field(1, b"x")) + field(2, b"") + field(3, b"")
    body = b"k8s\0" + field(1, field(1, b"v1") + field(2, b"Namespace")) + field(2, namespace)

    async def story(client: Client) -> None:
        kind = "application/vnd.kubernetes.protobuf"
        accept = f"{kind},application/json"
        status, doc = await client.ask("POST", "/api/v1/namespaces", body, Content_Type=kind, Accept=accept)
        assert (status, doc["metadata"]["name"], doc["status"]["phase"]) == (201, "x", "Active")

    run(credentials, story)


def test_a_kubeconfig_holds_all_that_is_needed_and_is_the_owners_alone(
    credentials: Credentials, tmp_path: Path
) -> None:
    path = tmp_path / "config"
    write_private(path, credentials.kubeconfig("https://127.0.0.1:1234"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    document = yaml.safe_load(path.read_bytes())
    cluster = document["clusters"][0]["cluster"]
    assert cluster["server"] == "https://127.0.0.1:1234"
    assert base64.b64decode(cluster["certificate-authority-data"]) == credentials.ca
    assert document["users"][0]["user"]["token"] == credentials.token
    assert list(tmp_path.iterdir()) == [path]


def test_credentials_kept_in_a_directory_are_used_again(tmp_path: Path) -> None:
    first = Credentials.kept_in(tmp_path, now=time.time())
    assert Credentials.kept_in(tmp_path, now=time.time()) == first
    assert all(stat.S_IMODE(file.stat().st_mode) == 0o600 for file in tmp_path.iterdir())


def test_the_server_listens_on_loopback_unless_set_otherwise(credentials: Credentials) -> None:
    async def story(client: Client) -> None:
        assert client.server.url.startswith("https://127.0.0.1:")
        assert client.server.port > 0
        assert client.store.page(POD).items == []

    run(credentials, story)


def test_a_kind_that_nobody_serves_is_looked_for_in_protobuf_too(credentials: Credentials) -> None:
    """What kubectl does about a misspelt kind: JSON here would be an error about bytes, not about the kind."""
    accept = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"

    async def story(client: Client) -> None:
        async with client.session.get(client.server.url + "/openapi/v2", headers={"Accept": accept}) as response:
            assert response.headers["Content-Type"] == accept.replace("@", "."), "Go reads no @ there"
            raw = await response.read()
        assert raw[:5] == b"\n\x032.0"
        length = raw[6]
        assert raw[5] == 0x12
        assert len(raw) == 7 + length
        status, document = await client.ask("GET", "/openapi/v2", Accept="application/json")
        assert (status, document["swagger"]) == (200, "2.0")

    run(credentials, story)


def test_a_path_that_leads_nowhere_has_details_for_kubectl_to_read(credentials: Credentials) -> None:
    async def story(client: Client) -> None:
        for path in ("/nonsense", "/apis/apps/v2/deployments", "/api/v1/namespaces/default/configmaps/x/status"):
            status, answer = await client.ask("GET", path)
            assert (status, answer["reason"]) == (404, "NotFound")
            assert answer["details"]["causes"][0]["message"] == "404 page not found"

    run(credentials, story)


def test_what_needs_containers_says_that_there_are_none(credentials: Credentials) -> None:
    async def story(client: Client) -> None:
        await client.ask("POST", PODS, POD_BODY)
        for below in ("log", "ephemeralcontainers", "resize"):
            patch = {"Content_Type": "application/strategic-merge-patch+json"}
            status, answer = await client.ask("PATCH", f"{PODS}/p/{below}", {}, **patch)
            assert (status, answer["message"]) == (
                400,
                f"pods/{below}: pods of this cluster are simulated, no container runs",
            )

    run(credentials, story)


def test_who_creates_what_nobody_acts_on_is_warned(credentials: Credentials) -> None:
    async def story(client: Client) -> None:
        async def warned(path: str, body: dict[str, Any]) -> list[str]:
            async with client.session.post(client.server.url + path, json=body) as response:
                assert response.status == 201, await response.text()
                return response.headers.getall("Warning", [])

        named = {"metadata": {"name": "typo"}, "spec": {**POD_BODY["spec"], "schedulerName": "volcanoo"}}
        assert await warned(PODS, POD_BODY) == []
        assert await warned(PODS, named) == [
            '299 - "nobody schedules pods with schedulerName \\"volcanoo\\" here (served: default-scheduler)"'
        ]
        template = {"metadata": {"labels": {"a": "b"}}, "spec": {**POD_BODY["spec"], "schedulerName": "volcano"}}
        deployment = {
            "metadata": {"name": "web"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template},
        }  # fmt: skip
        (told,) = await warned("/apis/apps/v1/namespaces/default/deployments", deployment)
        assert "start with --volcano-conf to serve it" in told
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
        scaler = {"metadata": {"name": "web"}, "spec": {"scaleTargetRef": target, "maxReplicas": 3}}
        (told,) = await warned("/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers", scaler)
        assert "nobody acts on them here" in told

    run(credentials, story, attendance=Attendance(frozenset({"default-scheduler"})))
