"""Every code block of README and docs/ is run: what needs no kubectl here, the rest in test_first_hour.py.

`tests/support/doc_blocks.py` says what is done with a block of each language, and how one that cannot run is marked.
"""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from fairlead.cli.fleet_file import read_fleet_file
from fairlead.lab.scenario.reading import read_scenario
from fairlead.testing import Harness
from fairlead.volcano.config.setup import VolcanoSetup
from tests.support.doc_blocks import (
    COMMANDS,
    PAGES,
    REPOSITORY,
    Block,
    blocks_of,
)
from tests.support.doc_shell import PageShell, needs_kubectl

BLOCKS = [block for page in PAGES for block in blocks_of(page)]
IN_PROCESS = ("python", "yaml", "json")


def name_of(page: Path) -> str:
    return str(page.relative_to(REPOSITORY))


def pages_with(*languages: str) -> list[Path]:
    return [page for page in PAGES if any(block.runs and block.language in languages for block in blocks_of(page))]


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where the files of a page are; modules imported from there are forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]


def test_every_block_that_runs_is_run_by_a_test() -> None:
    """Not one is left out: each is of a page and a language that a test below, or the first hour, goes through."""
    in_process = set(pages_with(*IN_PROCESS))
    in_shells = set(pages_with(*COMMANDS))
    for block in BLOCKS:
        if block.runs:
            assert block.page in (in_shells if block.language in COMMANDS else in_process), block.title


@pytest.mark.parametrize("page", pages_with(*IN_PROCESS), ids=name_of)
def test_python_yaml_and_json_of_a_page(page: Path, directory: Path) -> None:
    names: dict[str, Any] = {"__name__": "__main__"}
    for block in blocks_of(page):
        if not block.runs:
            continue
        if block.file:
            (directory / block.file).write_text(block.text + "\n", encoding="utf-8")
        if block.language == "python":
            exec(compile(block.text, block.title, "exec"), names)
            call_tests(names)
        elif block.language == "yaml":
            use_yaml(block, directory)
        elif block.language == "json":
            json.loads(block.text)


def call_tests(names: dict[str, Any]) -> None:
    """Call the test functions of a block as pytest would, once."""
    for name in [name for name in names if name.startswith("test_")]:
        test = names.pop(name)
        options = {key: value for mark in getattr(test, "pytestmark", ()) for key, value in mark.kwargs.items()}
        if "cluster" in inspect.signature(test).parameters:
            with Harness(**options) as cluster:
                test(cluster)
        else:
            test()


def use_yaml(block: Block, directory: Path) -> None:
    """Load a configuration, or apply objects."""
    file = directory / (block.file or "block.yaml")
    file.write_text(block.text + "\n", encoding="utf-8")
    documents = [one for one in yaml.safe_load_all(block.text) if one is not None]
    first = documents[0]
    if first.get("kind") == "KubeSchedulerConfiguration":
        Harness(config=file)
    elif "actions" in first:
        VolcanoSetup(conf=str(file)).first_config()
    elif "loads" in first:
        for trace in (load["trace"] for load in first["loads"] if "trace" in load):
            (directory / trace["file"]).touch()
        assert read_scenario(file).loads
    elif "nodes" in first and "kind" not in first:
        assert read_fleet_file(file)[0]
    else:
        cluster = Harness()
        for document in documents:
            if cluster.store.registry.by_kind(document["apiVersion"], document["kind"]) is None:
                cluster.apply(definition_of(document))
        cluster.apply(file)


def definition_of(document: dict[str, Any]) -> dict[str, Any]:
    """A definition of a kind that others define (JobSets, RayClusters), which takes any fields."""
    group, _, version = document["apiVersion"].partition("/")
    singular = document["kind"].lower()
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{singular}s.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": document["kind"], "plural": f"{singular}s", "singular": singular},
            "versions": [
                {"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}},
            ],
        },
    }


@pytest.mark.long
@pytest.mark.parametrize("page", [page for page in pages_with(*COMMANDS) if not needs_kubectl(page)], ids=name_of)
def test_commands_of_a_page(page: Path, tmp_path: Path) -> None:
    with PageShell(tmp_path) as shell:
        for block in blocks_of(page):
            if not block.reason:
                shell.run(block)
        shell.check()
