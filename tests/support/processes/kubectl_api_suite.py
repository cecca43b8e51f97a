"""The longer kubectl run: owners of fields, defined kinds, evictions, explanations, and what fails clearly."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from tests.support.processes.kubectl_suite import Kubectl, KubectlSuite, columns, pod

CRON_TAB: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "spec": {
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1", "served": True, "storage": True,
                "subresources": {
                    "status": {},
                    "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
                },
                "additionalPrinterColumns": [
                    {"name": "Spec", "type": "string", "jsonPath": ".spec.cronSpec"},
                    {"name": "Replicas", "type": "integer", "jsonPath": ".spec.replicas"},
                    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
                ],
                "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "required": ["spec"],
                    "properties": {
                        "spec": {
                            "type": "object", "description": "When it runs, and how often at once.",
                            "required": ["cronSpec"],
                            "properties": {
                                "cronSpec": {"type": "string", "maxLength": 40},
                                "replicas": {"type": "integer", "minimum": 1, "default": 1},
                                "limit": {"type": "integer", "default": 5},
                            },
                            "x-kubernetes-validations": [
                                {"rule": "self.replicas <= self.limit", "message": "replicas may not exceed limit"},
                                {"rule": "self.cronSpec == oldSelf.cronSpec", "message": "cronSpec is immutable"},
                            ],
                        },
                        "status": {"type": "object", "properties": {"replicas": {"type": "integer"}}},
                    },
                }},
            }
        ],
    },
}  # fmt: skip


def cron_tab_definition(word: str) -> dict[str, Any]:
    """A definition of its own for each test: kinds are the whole cluster's."""
    group = f"{word}.example.com"
    names = {"plural": "crontabs", "singular": "crontab", "kind": "CronTab", "shortNames": [f"ct-{word}"]}
    spec = CRON_TAB["spec"] | {"group": group, "names": names}
    return CRON_TAB | {"metadata": {"name": f"crontabs.{group}"}, "spec": spec}


def config_map(**data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": data}


class KubectlApiSuite(KubectlSuite):
    """Everything of the first suite, and more."""

    # who owns which field

    def test_server_side_apply_shows_a_conflict_and_can_be_forced(self, kubectl: Kubectl) -> None:
        assert kubectl("apply", "--server-side", "-f", "-", stdin=config_map(a="1", b="1")) == (
            "configmap/c serverside-applied\n"
        )
        theirs = ("apply", "--server-side", "--field-manager=other", "-f", "-")
        words = kubectl.error(*theirs, stdin=config_map(a="2"))
        assert 'Apply failed with 1 conflict: conflict with "kubectl": .data.a' in words
        assert kubectl(*theirs, "--force-conflicts", stdin=config_map(a="2")) == "configmap/c serverside-applied\n"
        stored = kubectl.json("get", "cm", "c", "--show-managed-fields")
        assert stored["data"] == {"a": "2", "b": "1"}
        owned = {entry["manager"]: entry["fieldsV1"]["f:data"] for entry in stored["metadata"]["managedFields"]}
        assert owned == {"kubectl": {"f:b": {}}, "other": {"f:a": {}}}

    def test_what_is_no_longer_applied_goes(self, kubectl: Kubectl) -> None:
        kubectl("apply", "--server-side", "-f", "-", stdin=config_map(a="1", b="1"))
        kubectl("apply", "--server-side", "-f", "-", stdin=config_map(a="1"))
        assert kubectl.json("get", "cm", "c")["data"] == {"a": "1"}

    def test_a_user_of_apply_may_change_to_server_side(self, kubectl: Kubectl) -> None:
        kubectl("apply", "-f", "-", stdin=config_map(a="1", b="1"))
        kubectl("apply", "--server-side", "-f", "-", stdin=config_map(a="2"))
        assert kubectl.json("get", "cm", "c")["data"] == {"a": "2"}
        words = kubectl.error("apply", "--server-side", "--field-manager=other", "-f", "-", stdin=config_map(a="3"))
        assert 'conflict with "kubectl": .data.a' in words

    def test_a_containers_owner_keeps_it_while_another_sets_replicas(self, kubectl: Kubectl) -> None:
        template = {"metadata": {"labels": {"app": "d"}}, "spec": {"containers": [{"name": "main", "image": "x:1"}]}}
        spec: dict[str, Any] = {"selector": {"matchLabels": {"app": "d"}}, "template": template}
        doc = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": spec}
        kubectl("apply", "--server-side", "-f", "-", stdin=doc)
        kubectl("scale", "deployment", "d", "--replicas=2")
        template["spec"] = {"containers": [{"name": "main", "image": "x:2"}]}
        kubectl("apply", "--server-side", "-f", "-", stdin=doc)
        stored = kubectl.json("get", "deploy", "d")
        assert stored["spec"]["replicas"] == 2
        assert stored["spec"]["template"]["spec"]["containers"][0]["image"] == "x:2"
        words = kubectl.error("apply", "--server-side", "-f", "-", stdin=doc | {"spec": spec | {"replicas": 3}})
        assert 'with subresource "scale" using apps/v1: .spec.replicas' in words

    # looking before leaping

    def test_diff_shows_the_change_and_makes_none(self, kubectl: Kubectl) -> None:
        kubectl("apply", "-f", "-", stdin=config_map(a="1"))
        code, output, _ = kubectl.result("diff", "-f", "-", stdin=config_map(a="2"))
        assert code == 1
        assert '-  a: "1"' in output
        assert '+  a: "2"' in output
        assert kubectl.json("get", "cm", "c")["data"] == {"a": "1"}
        assert kubectl.result("diff", "-f", "-", stdin=config_map(a="1"))[0] == 0

    def test_a_dry_run_on_the_server_defaults_and_validates_and_stores_nothing(self, kubectl: Kubectl) -> None:
        shown = kubectl("create", "--dry-run=server", "-o", "yaml", "-f", "-", stdin=pod("p"))
        assert "schedulerName: default-scheduler" in shown
        assert "NotFound" in kubectl.error("get", "pod", "p")
        broken = pod("p", restartPolicy="Sometimes")
        assert "spec.restartPolicy" in kubectl.error("apply", "--dry-run=server", "-f", "-", stdin=broken)

    def test_edit_saves_what_the_editor_leaves(self, kubectl: Kubectl, tmp_path: Path) -> None:
        kubectl("apply", "-f", "-", stdin=config_map(a="1"))
        editor = tmp_path / "editor"
        editor.write_text('#!/bin/sh\nsed -i \'s/a: "1"/a: "edited"/\' "$1"\n')
        editor.chmod(editor.stat().st_mode | stat.S_IXUSR)
        before, os.environ["KUBE_EDITOR"] = os.environ.get("KUBE_EDITOR"), str(editor)
        try:
            fresh = Kubectl(kubectl._command[0], Path(kubectl._command[2]), kubectl.namespace)
            assert fresh("edit", "configmap", "c") == "configmap/c edited\n"
        finally:
            os.environ.pop("KUBE_EDITOR") if before is None else os.environ.__setitem__("KUBE_EDITOR", before)
        assert kubectl.json("get", "cm", "c")["data"] == {"a": "edited"}

    # evictions

    def test_drain_is_held_up_by_a_budget_and_goes_on_without_it(self, kubectl: Kubectl) -> None:
        label = f"app={kubectl.namespace}"  # drain looks into all namespaces
        kubectl("create", "-f", "-", stdin=pod("web", labels={"app": kubectl.namespace}))
        kubectl("wait", "--for=condition=Ready", "pod/web", "--timeout=180s")
        kubectl("create", "poddisruptionbudget", "b", f"--selector={label}", "--min-available=1")
        kubectl("wait", "--for=jsonpath={.status.observedGeneration}=1", "pdb/b", "--timeout=180s")
        node = kubectl("get", "pod", "web", "-o", "jsonpath={.spec.nodeName}")
        drain = ("drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--force")
        chosen = (f"--pod-selector={label}", "--timeout=3s")
        words = kubectl.error(*drain, *chosen)
        assert "Cannot evict pod as it would violate the pod's disruption budget." in words
        assert kubectl("get", "pod", "web", "-o", "jsonpath={.status.phase}") == "Running"
        kubectl("delete", "pdb", "b")
        assert "pod/web evicted" in kubectl(*drain, f"--pod-selector={label}", "--grace-period=1", "--timeout=180s")
        kubectl("uncordon", node)

    # questions

    def test_explain_knows_what_scheduling_reads(self, kubectl: Kubectl) -> None:
        words = kubectl("explain", "pod.spec.affinity")
        assert "podAntiAffinity\t<PodAntiAffinity>" in words
        assert "Away from other pods" in words
        assert "<[]Toleration>" in kubectl("explain", "pod.spec.tolerations")
        assert "does not exist" in kubectl.error("explain", "pod.spec.affinty")

    def test_auth_says_who_one_is_and_that_one_may(self, kubectl: Kubectl) -> None:
        assert kubectl("auth", "can-i", "create", "pods") == "yes\n"
        assert "system:masters" in kubectl("auth", "whoami")
        assert "*.*" in kubectl("auth", "can-i", "--list")

    def test_a_service_account_gets_a_token_that_works(self, kubectl: Kubectl) -> None:
        kubectl("create", "serviceaccount", "robot")
        token = kubectl("create", "token", "robot").strip()
        mine = kubectl("--token", token, "auth", "whoami", "-o", "jsonpath={.status.userInfo.username}")
        assert mine == f"system:serviceaccount:{kubectl.namespace}:robot"

    def test_events_are_reported_in_order(self, kubectl: Kubectl) -> None:
        kubectl("create", "-f", "-", stdin=pod("web"))
        kubectl("wait", "--for=condition=Ready", "pod/web", "--timeout=180s")
        header, *rows = columns(kubectl("events", "--for", "pod/web"))
        assert header == ["LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"]
        assert any(row[2] == "Scheduled" and row[3] == "Pod/web" for row in rows)

    def test_top_fails_and_says_why(self, kubectl: Kubectl) -> None:
        assert "Metrics API not available" in kubectl.error("top", "nodes")

    def test_a_typo_is_named_by_the_server(self, kubectl: Kubectl) -> None:
        broken = pod("p", nodeSelecter={"a": "b"})
        words = kubectl.error("apply", "-f", "-", stdin=broken)
        assert 'strict decoding error: unknown field "spec.nodeSelecter"' in words
        _, _, words = kubectl.result("create", "--validate=warn", "-f", "-", stdin=broken)
        assert 'Warning: unknown field "spec.nodeSelecter"' in words

    @pytest.mark.parametrize(("version", "kind"), [("apps/v2", "Deployment"), ("v1", "Pood"), ("none.such/v1", "Pod")])
    def test_a_misspelt_kind_is_said_not_to_exist(self, kubectl: Kubectl, version: str, kind: str) -> None:
        words = kubectl.error(
            "apply", "-f", "-", stdin={"apiVersion": version, "kind": kind, "metadata": {"name": "x"}}
        )
        assert f'no matches for kind "{kind}" in version "{version}"' in words

    # kinds that users define

    def test_a_defined_kind_lives_with_rules_and_columns_and_goes_with_its_objects(self, kubectl: Kubectl) -> None:
        word = kubectl.namespace.removeprefix("k-")
        definition = cron_tab_definition(f"x{word}")
        name, group = definition["metadata"]["name"], definition["spec"]["group"]
        kubectl("apply", "-f", "-", stdin=definition)
        kubectl("wait", "--for=condition=Established", f"crd/{name}", "--timeout=180s")
        tab: dict[str, Any] = {
            "apiVersion": f"{group}/v1",
            "kind": "CronTab",
            "metadata": {"name": "t"},
            "spec": {"cronSpec": "* * *"},
        }
        assert kubectl("apply", "-f", "-", stdin=tab) == f"crontab.{group}/t created\n"
        header, row = columns(kubectl("get", f"ct-x{word}"))
        assert header == ["NAME", "SPEC", "REPLICAS", "AGE"]
        assert row[:3] == ["t", "* * *", "1"]
        assert kubectl("scale", f"ct-x{word}", "t", "--replicas=3").strip().endswith("scaled")
        words = kubectl.error("scale", f"ct-x{word}", "t", "--replicas=9")
        assert "spec: Invalid value: replicas may not exceed limit" in words
        words = kubectl.error("patch", f"ct-x{word}", "t", "--type=merge", "-p", '{"spec":{"cronSpec":"x"}}')
        assert "spec: Invalid value: cronSpec is immutable" in words
        words = kubectl.error("apply", "-f", "-", stdin=tab | {"spec": {"cronSpec": 5}})
        assert 'spec.cronSpec in body must be of type string: "integer"' in words
        words = kubectl.error("create", "-f", "-", stdin=tab | {"spec": {"cronSpec": "x", "replica": 1}})
        assert 'unknown field "spec.replica"' in words
        assert "When it runs, and how often at once." in kubectl("explain", f"ct-x{word}.spec")
        kubectl("delete", "crd", name, "--timeout=180s")
        assert "NotFound" in kubectl.error("get", "crd", name)

    @pytest.mark.parametrize(
        "command",
        [("logs", "web"), ("exec", "web", "--", "true"), ("port-forward", "web", "80"), ("debug", "web", "--image=x")],
    )
    def test_what_simulated_pods_cannot_do_fails_and_says_so(self, kubectl: Kubectl, command: tuple[str, ...]) -> None:
        kubectl("create", "-f", "-", stdin=pod("web"))
        kubectl("wait", "--for=condition=Ready", "pod/web", "--timeout=180s")
        assert "simulated" in kubectl.error(*command)
