"""What ships under deploy/: roles in step with the table, a clean Dockerfile, and queries about metrics that exist."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import yaml

from fairlead import __version__
from fairlead.runtime import api_health, metrics
from fairlead.runtime.metrics import Name
from tests.support.promql import OF_THE_TARGET, alert_queries, board_queries

HOUSE = Path(__file__).resolve().parents[2]
CHART = HOUSE / "deploy" / "chart"
PROCESS = {"process_cpu_seconds_total", "process_resident_memory_bytes", "up"}
PARTS = re.compile(r"_(bucket|sum|count)$")


def selectors(node: Any) -> Iterator[Any]:
    """The vector selectors of a parsed query."""
    if isinstance(node, promql_parser.VectorSelector):
        yield node
    for part in ("expr", "lhs", "rhs", "vector_selector", "vs", "param"):
        child = getattr(node, part, None)
        if child is not None and not isinstance(child, str):
            yield from selectors(child)
    for child in getattr(node, "args", None) or ():
        yield from selectors(child)


def served() -> dict[str, tuple[str, ...]]:
    """The labels of every metric that a scheduler serves, by name."""
    names = [value for module in (metrics, api_health) for value in vars(module).values() if isinstance(value, Name)]
    return {name.name: name.labels for name in names} | dict.fromkeys(PROCESS, ())


@pytest.mark.parametrize("query", [*board_queries(), *alert_queries()])
def test_a_query_is_about_metrics_and_labels_that_are_served(query: str) -> None:
    known = served()
    found = list(selectors(promql_parser.parse(query)))
    assert found
    for selector in found:
        name = selector.name if selector.name in known else PARTS.sub("", selector.name)
        assert name in known, f"{selector.name} is not served"
        for matcher in selector.matchers.matchers:
            assert matcher.name in known[name], f"{name} has no label {matcher.name}"
    for words in re.findall(r"by \(([^)]*)\)", query):
        labels = {label.strip() for label in words.split(",")}
        allowed = [{*known[PARTS.sub("", one.name)], "le", *OF_THE_TARGET} for one in found]
        assert any(labels <= names for names in allowed), f"{query}: {labels}"


def test_roles_of_the_chart_are_those_of_the_table() -> None:
    command = [sys.executable, str(HOUSE / "tools" / "deploy" / "generate.py"), "--check", "--roles"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


def test_the_dockerfile_is_clean() -> None:
    hadolint = Path(sys.executable).parent / "hadolint"
    done = subprocess.run([hadolint, HOUSE / "deploy" / "Dockerfile"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize("file", ["run.txt", "dev.txt"])
def test_every_package_of_a_locked_installation_has_hashes(file: str) -> None:
    text = (HOUSE / "requirements" / file).read_text()
    packages = re.findall(r"^([\w.\[\]-]+)==\S+(.*)((?:\n    --hash=sha256:[0-9a-f]{64}(?: \\)?)*)", text, re.MULTILINE)
    assert len(packages) >= 30
    assert all(hashes for _, _, hashes in packages)


def test_locked_packages_are_those_that_the_project_asks_for() -> None:
    wanted = tomllib.loads((HOUSE / "pyproject.toml").read_text())["project"]
    for file, asked in (
        ("run.txt", wanted["dependencies"]),
        ("dev.txt", [*wanted["dependencies"], *wanted["optional-dependencies"]["dev"]]),
    ):
        text = (HOUSE / "requirements" / file).read_text().lower()
        for one in asked:
            name = re.match(r"[\w.-]+", one)
            assert name is not None
            assert re.search(rf"^{name[0].lower()}(\[\w+\])?==", text, re.MULTILINE), one
            assert "<" in one, f"{one} has no upper bound"


def test_the_chart_has_the_version_of_the_package() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert (chart["version"], chart["appVersion"]) == (__version__, __version__)
    base = yaml.safe_load((HOUSE / "deploy" / "kustomize" / "base" / "kustomization.yaml").read_text())
    assert base["images"][0]["newTag"] == __version__


def test_pods_alone_are_given_a_token_and_connections_are_limited_both_ways() -> None:
    objects = {doc["kind"]: doc for doc in yaml.safe_load_all((HOUSE / "deploy" / "fairlead.yaml").read_text())}
    assert objects["ServiceAccount"]["automountServiceAccountToken"] is False
    assert objects["Deployment"]["spec"]["template"]["spec"]["automountServiceAccountToken"] is True
    policy = objects["NetworkPolicy"]["spec"]
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    assert [[port["port"] for port in rule["ports"]] for rule in policy["egress"]] == [[53, 53], [443, 6443]]


def test_system_packages_are_installed_only_if_that_is_asked_for(tmp_path: Path) -> None:
    """Without mpirun in the PATH the script says what is missing, and calls no package manager."""
    called = tmp_path / "called"
    (tmp_path / "apt-get").write_text(f"#!/bin/sh\n: >{called}\n")
    (tmp_path / "apt-get").chmod(0o755)
    script = HOUSE / "tools" / "real" / "packages.sh"
    for install in ("", "1"):
        environment = {"PATH": str(tmp_path), "INSTALL": install}
        done = subprocess.run(["/bin/bash", script], env=environment, capture_output=True, text=True, check=False)
        assert ("INSTALL=1" in done.stderr) is not bool(install)
        assert called.exists() is bool(install)


def test_every_query_is_about_the_release_alone() -> None:
    """Beside kube-scheduler, whose names the metrics have, a sum of both would mean nothing."""
    alerts = yaml.safe_load((CHART / "files" / "alerts.yaml").read_text())["groups"][0]["rules"]
    board = json.loads((CHART / "files" / "dashboard.json").read_text())
    queries = [(rule["expr"], "OURS") for rule in alerts]
    queries += [(target["expr"], "$job") for panel in board["panels"] for target in panel["targets"]]
    for query, mark in queries:
        plain = query.replace("OURS,", "").replace("{OURS}", "")
        assert query.count(mark) == len(list(selectors(promql_parser.parse(plain)))), query
    assert {one["name"] for one in board["templating"]["list"]} == {"datasource", "namespace", "job", "instance"}


def test_every_alert_has_a_section_on_the_page_that_it_links_to() -> None:
    page = (HOUSE / "docs" / "operations.md").read_text()
    alerts = yaml.safe_load((CHART / "files" / "alerts.yaml").read_text())["groups"][0]["rules"]
    for rule in alerts:
        assert rule["annotations"]["runbook_url"] == f"RUNBOOKS#{rule['alert'].lower()}"
        assert f"### {rule['alert']}\n" in page, rule["alert"]
