"""Roles made from the table of grants, and what a process says that it lacks."""

from __future__ import annotations

import logging
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from fairlead.cli.main import cli
from fairlead.cli.roles.documents import cluster_rules, rules_of
from fairlead.cli.roles.ways import WAYS
from fairlead.console.roles.grants import PLUGINS, Grant, of_controller, of_task
from fairlead.console.roles.needs import Needs, Tasks, tasks_of_plugins
from fairlead.console.roles.review import ACCESS_REVIEW, lacking, log_missing_rights
from fairlead.core.model.flow import Doc, Watch, Write
from fairlead.core.model.kinds import POD, SERVICE
from fairlead.errors import Unreachable
from fairlead.koordinator.kinds import KOORD_DEVICE
from fairlead.volcano.family import VOLCANO_CONTROLLERS

BINDING = Grant("", "pods/binding", "create", "no pod can be bound")
LEASE = Grant("coordination.k8s.io", "leases", "update", "this process never leads")


class Reviewer:
    """Answers reviews: `shown` are the rules that it lists, `also` what it allows besides."""

    def __init__(self, shown: list[Doc], *, also: frozenset[str] = frozenset()) -> None:
        self.shown, self.also = shown, also
        self.asked: list[Doc] = []

    async def perform(self, write: Write) -> Doc:
        spec = write.body["spec"]
        if write.kind is not ACCESS_REVIEW:
            return {"status": {"resourceRules": self.shown}}
        self.asked.append(spec["resourceAttributes"])
        return {"status": {"allowed": spec["resourceAttributes"]["resource"] in self.also}}


def rule(group: str, resource: str, *verbs: str, **more: Any) -> Doc:
    return {"apiGroups": [group], "resources": [resource], "verbs": list(verbs), **more}


def test_resources_with_the_same_verbs_share_a_rule() -> None:
    grants = [Grant("", "nodes", "list"), Grant("", "pods", "list"), Grant("apps", "replicasets", "list")]
    assert rules_of(grants) == [
        {"apiGroups": [""], "resources": ["nodes", "pods"], "verbs": ["list"]},
        {"apiGroups": ["apps"], "resources": ["replicasets"], "verbs": ["list"]},
    ]


def test_no_way_of_running_asks_for_everything_or_for_secrets_to_read() -> None:
    for way in WAYS:
        for found in cluster_rules(way):
            assert "*" not in [*found.get("resources", ()), *found["verbs"], *found.get("apiGroups", ())]
            assert "secrets" not in found.get("resources", ()) or set(found["verbs"]) == {"create", "delete"}


def test_the_reader_writes_nothing() -> None:
    verbs = {verb for found in cluster_rules("reader") if "resources" in found for verb in found["verbs"]}
    assert verbs == {"get", "list", "watch"}


def test_a_role_for_the_lease_is_where_the_way_has_its_lease() -> None:
    def leases(*words: str) -> list[tuple[str, str]]:
        documents = yaml.safe_load_all(CliRunner().invoke(cli, ["roles", *words]).output)
        roles = [doc for doc in documents if doc["kind"] == "Role"]
        return [(doc["metadata"]["namespace"], doc["rules"][1]["resourceNames"][0]) for doc in roles]

    assert leases("second") == [("kube-system", "kube-scheduler")]
    assert leases("controllers") == [("volcano-system", "vc-controller-manager")]
    assert leases("descheduler") == [("koordinator-system", "koord-descheduler")]
    assert leases("descheduler", "--lease-namespace", "here") == [("here", "koord-descheduler")]
    assert leases("shards") == []


def test_koordinators_way_reads_what_its_plugins_read() -> None:
    read = {(rule["apiGroups"][0], name) for rule in cluster_rules("koordinator") for name in rule.get("resources", ())}
    plain = {(rule["apiGroups"][0], name) for rule in cluster_rules("second") for name in rule.get("resources", ())}
    assert plain < read
    groups = {group for group, _ in read - plain}
    assert {"scheduling.koordinator.sh", "slo.koordinator.sh", "scheduling.sigs.k8s.io"} <= groups


@pytest.mark.parametrize("name", VOLCANO_CONTROLLERS)
def test_every_controller_has_a_row(name: str) -> None:
    assert of_controller(name)


def test_a_scheduler_needs_the_rights_of_the_families_whose_kinds_its_plugins_read() -> None:
    watches = [Watch(POD), Watch(KOORD_DEVICE)]
    assert tasks_of_plugins(watches[:1]) == []
    tasks = tasks_of_plugins(watches)
    assert tasks == [("koordinator", PLUGINS)]
    needs = Tasks(places=True, of_families=tasks).needs(watches)
    assert set(of_task("koordinator", PLUGINS)) & set(needs.cluster)


def test_plugins_of_a_family_may_write_nothing_besides() -> None:
    assert of_task("gpu_share", PLUGINS) == ()
    with pytest.raises(KeyError):
        of_task("gpu_share", "rounds")


async def test_rights_that_rules_do_not_show_are_asked_for_one_by_one() -> None:
    needs = Needs((BINDING, Grant("", "pods", "delete", "nobody can be preempted")), (LEASE,))
    api = Reviewer(
        [rule("", "pods/binding", "create"), rule("coordination.k8s.io", "leases", "update", resourceNames=["other"])],
        also=frozenset({"leases"}),
    )
    missing = await lacking(api, needs, [("kube-system", "ours")])  # type: ignore[arg-type]
    assert [grant.shown for grant in missing] == ["delete pods"]
    assert [(asked["verb"], asked["resource"], asked.get("name")) for asked in api.asked] == [
        ("delete", "pods", None),
        ("update", "leases", "ours"),
    ]


async def test_what_is_lacking_is_said_with_what_does_not_work(caplog: pytest.LogCaptureFixture) -> None:
    watches = [Watch(POD), Watch(SERVICE, optional=True)]
    with caplog.at_level(logging.INFO, logger="fairlead.scheduler"):
        logging.getLogger("fairlead").propagate = True
        await log_missing_rights(Reviewer([]), Tasks().needs(watches), [])  # type: ignore[arg-type]
    assert "this account may not list pods, watch pods: this process waits until it may" in caplog.text
    assert "this account may not list services, watch services: it counts as empty" in caplog.text


async def test_a_server_without_reviews_stops_nobody(caplog: pytest.LogCaptureFixture) -> None:
    class Silent:
        async def perform(self, write: Write) -> Doc:
            raise Unreachable("no answer")

    with caplog.at_level(logging.INFO, logger="fairlead.scheduler"):
        await log_missing_rights(Silent(), Needs((BINDING,)), ("", ""))  # type: ignore[arg-type]


def test_the_command_prints_roles_and_bindings() -> None:
    words = ["roles", "second", "--for", "fairlead-system:fairlead", "--lease-name", "fairlead"]
    documents = list(yaml.safe_load_all(CliRunner().invoke(cli, words).output))
    assert [doc["kind"] for doc in documents] == ["ClusterRole", "Role", "ClusterRoleBinding", "RoleBinding"]
    assert documents[2]["subjects"] == [{"kind": "ServiceAccount", "namespace": "fairlead-system", "name": "fairlead"}]
    assert CliRunner().invoke(cli, ["roles", "second", "--for", "me"]).exit_code == 2


def test_a_reader_may_ask_questions_and_find_the_leader() -> None:
    rules = cluster_rules("reader")
    paths = {(path, verb) for rule in rules for path in rule.get("nonResourceURLs", ()) for verb in rule["verbs"]}
    assert ("/apis/fairlead.io/v1/questions", "post") in paths
    assert ("/apis/fairlead.io/*", "get") in paths
    leases = [one for one in rules if "leases" in one.get("resources", ())]
    assert [one["verbs"] for one in leases] == [["get"]], "to read which replica leads, and its certificate"


def rights(way: str) -> set[tuple[str, str, str]]:
    return {
        (group, resource, verb)
        for rule in cluster_rules(way)
        for group in rule.get("apiGroups", ())
        for resource in rule.get("resources", ())
        for verb in rule["verbs"]
    }


def test_both_in_one_process_may_what_each_may_alone_and_no_more() -> None:
    assert rights("both") == rights("second") | rights("volcano")
