"""Wrong requests that were answered 500: each is refused with the field, and no answer names our interpreter."""

from __future__ import annotations

import time
from typing import Any

import pytest

from fairlead.cluster.server.pki import Credentials
from tests.support.served import Client, run

GROUP, HPA = "/apis/scheduling.k8s.io", "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers"
QUOTAS = "/apis/scheduling.sigs.k8s.io/v1alpha1/namespaces/default/elasticquotas"
APPLY = "application/apply-patch+yaml"


@pytest.fixture(scope="module")
def credentials() -> Credentials:
    return Credentials.generate(now=time.time())


@pytest.mark.parametrize("digits", [20, 40, 5000])
def test_resource_versions_of_any_length_are_out_of_range(credentials: Credentials, digits: int) -> None:
    async def story(client: Client) -> None:
        version = "9" * digits
        status, said = await client.ask("GET", f"/api/v1/pods?resourceVersion={version}")
        assert (status, said["message"].endswith("value out of range")) == (400, True)

    run(credentials, story)


@pytest.mark.parametrize("wrong", [{"spec": 5}, {"spec": ["a"]}, {"status": "a"}, {"metadata": 5}])
def test_what_is_applied_in_another_version_has_the_types_of_that_version(
    credentials: Credentials, wrong: dict[str, Any]
) -> None:
    async def story(client: Client) -> None:
        for path, kind, version in (
            (HPA, "HorizontalPodAutoscaler", "autoscaling/v1"),
            (f"{GROUP}/v1alpha2/namespaces/default/podgroups", "PodGroup", "scheduling.k8s.io/v1alpha2"),
            (f"{GROUP}/v1beta1/namespaces/default/podgroups", "PodGroup", "scheduling.k8s.io/v1beta1"),
        ):
            body = {"apiVersion": version, "kind": kind, "metadata": {"name": "a"}, **wrong}
            status, said = await client.ask("PATCH", f"{path}/a?fieldManager=me", body, Content_Type=APPLY)
            assert 400 <= status < 500, (kind, said)

    run(credentials, story)


@pytest.mark.parametrize("wrong", [{"status": {"currentMetrics": ["a"]}}, {"spec": {"metrics": [5]}}])
def test_what_is_applied_beside_a_manager_of_another_version_is_checked_first(
    credentials: Credentials, wrong: dict[str, Any]
) -> None:
    async def story(client: Client) -> None:
        spec = {"scaleTargetRef": {"kind": "Deployment", "name": "d"}, "maxReplicas": 3}
        body = {"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "a"}}
        status, said = await client.ask("PATCH", f"{HPA}/a?fieldManager=one", body | {"spec": spec}, Content_Type=APPLY)
        assert status == 201, said
        path = f"{HPA.replace('v1', 'v2')}/a?fieldManager=two"
        status, said = await client.ask(
            "PATCH", path, body | {"apiVersion": "autoscaling/v2"} | wrong, Content_Type=APPLY
        )
        assert 400 <= status < 500, said

    run(credentials, story)


def test_a_quota_of_koordinator_names_the_field_that_is_no_quantity(credentials: Credentials) -> None:
    async def story(client: Client) -> None:
        body = {
            "apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "ElasticQuota", "metadata": {"name": "q"},
            "spec": {"min": {"cpu": "a"}, "max": {"cpu": "2"}},
        }  # fmt: skip
        status, said = await client.ask("POST", QUOTAS, body)
        assert (status, "spec.min.cpu" in said["message"]) == (422, True)

    run(credentials, story)


def test_answers_do_not_name_the_interpreter(credentials: Credentials) -> None:
    async def story(client: Client) -> None:
        for path in ("/healthz", "/api/v1/pods", "/nowhere"):
            async with client.session.get(client.server.url + path) as answer:
                assert "Server" not in answer.headers

    run(credentials, story)


@pytest.mark.parametrize("scheme", ["bearer", "BEARER"])
def test_the_scheme_of_a_token_is_read_in_any_case(credentials: Credentials, scheme: str) -> None:
    async def story(client: Client) -> None:
        token = f"{scheme} {credentials.token}"
        assert (await client.ask("GET", "/api/v1/namespaces", Authorization=token))[0] == 200

    run(credentials, story)


def test_a_rule_over_twenty_thousand_items_is_decided(credentials: Credentials) -> None:
    """As the API server does, whose limit is one of cost and not of steps."""
    rule = {"rule": "!has(self.l) || self.l.all(x, x >= 0)"}
    properties = {"l": {"type": "array", "maxItems": 30_000, "items": {"type": "integer"}}}
    schema = {"type": "object", "properties": properties, "x-kubernetes-validations": [rule]}
    versions = [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}]
    names = {"plural": "foos", "kind": "Foo"}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "foos.example.com"},
        "spec": {"group": "example.com", "scope": "Cluster", "names": names, "versions": versions},
    }

    async def story(client: Client) -> None:
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        assert (await client.ask("POST", path, definition))[0] == 201
        for last, status in ((1, 201), (-1, 422)):
            body = {"apiVersion": "example.com/v1", "kind": "Foo", "metadata": {"generateName": "a"}}
            answer = await client.ask("POST", "/apis/example.com/v1/foos", body | {"l": [*range(20_000), last]})
            assert answer[0] == status

    run(credentials, story)


@pytest.mark.parametrize(("size", "status"), [(2_000_000, 404), (4_000_000, 413)])
def test_a_large_question_is_read_and_a_larger_one_refused(credentials: Credentials, size: int, status: int) -> None:
    """Whole workloads are asked about. Here is nobody who would answer."""

    async def story(client: Client) -> None:
        question = {"kind": "SimulateQuestion", "objects": [{"data": {"k": "x" * size}}]}
        assert (await client.ask("POST", "/apis/fairlead.io/v1/questions", question))[0] == status

    run(credentials, story)


def test_a_job_whose_template_has_no_quantity_is_refused_with_the_field(credentials: Credentials) -> None:
    async def story(client: Client) -> None:
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "a"}}}
        task = {"name": "t", "replicas": 1, "template": {"spec": {"containers": [container]}}}
        body = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "j"}}
        path = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"
        status, said = await client.ask("POST", path, body | {"spec": {"minAvailable": 1, "tasks": [task]}})
        assert 400 <= status < 500, said
        assert "spec.task" in said["message"]

    run(credentials, story)
