"""Gates and fields that change nothing: all others are read somewhere, and these are named to who moves them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest
from click.testing import CliRunner

from fairlead.assembly.loading import load_config
from fairlead.cli.config_commands import config_group
from fairlead.core.family import families
from fairlead.kube.config import plugin_args, plugin_sets
from fairlead.kube.config.gates import DEFAULT_GATES, KNOWN_GATES, OWN_GATES, parse_feature_gates
from fairlead.kube.config.kube import default_kube_config
from fairlead.kube.config.records import ClientConnection, ExtenderConfig, ExtenderTls, KubeConfig, LeaderElection
from fairlead.kube.config.without_effect import FIELDS_WITHOUT_EFFECT, gates_without_effect
from tests.support.sources import Source, all_sources

HEADER = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
CARRIES = ("draft", "document", "kube", "records", "validation", "plugin_args", "plugin_args_validation", "policy")
"""Modules of kube/config that carry fields from the file to the records and back, and act on none."""
PLUGIN_ARGS = (
    plugin_args.DefaultPreemptionArgs, plugin_args.DynamicResourcesArgs, plugin_args.InterPodAffinityArgs,
    plugin_args.NodeAffinityArgs, plugin_args.NodeResourcesBalancedAllocationArgs, plugin_args.NodeResourcesFitArgs,
    plugin_args.ScoringStrategy, plugin_args.DefaultSpreadConstraint, plugin_args.PodTopologySpreadArgs,
    plugin_args.VolumeBindingArgs,
)  # fmt: skip
REFUSED = {"resource_lock", "has_selector"}
"""Fields of which every value but the default is refused."""


def constants(source: Source) -> dict[str, str]:
    """Names that a module gives to texts."""
    return {
        target.id: node.value.value
        for node in source.tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def asked_for(source: Source) -> Iterator[str]:
    """Gates that a module looks for in a set that is called gates."""
    named = constants(source)
    for node in ast.walk(source.tree):
        if not isinstance(node, ast.Compare) or not isinstance(node.ops[0], ast.In | ast.NotIn | ast.LtE):
            continue
        looked_into = node.comparators[0]
        if "gates" not in (getattr(looked_into, "attr", ""), getattr(looked_into, "id", "")):
            continue
        for element in node.left.elts if isinstance(node.left, ast.Set) else [node.left]:
            if isinstance(element, ast.Constant):
                yield str(element.value)
            elif isinstance(element, ast.Name):
                yield named.get(element.id, "")


def read_gates() -> set[str]:
    in_sources = {gate for source in all_sources() for gate in asked_for(source)}
    return in_sources | set(plugin_sets._GATED.values())


def read_fields() -> set[str]:
    """Attributes that are read outside of what only carries a configuration."""
    carriers = {f"kube/config/{name}.py" for name in CARRIES}
    return {
        node.attr
        for source in all_sources()
        if source.name not in carriers
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
    }


def spelt(name: str) -> str:
    """As the file spells a field."""
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def test_every_gate_that_can_be_moved_is_read_or_listed_and_not_both() -> None:
    movable = {name for name, gate in KNOWN_GATES.items() if not gate.locked}
    movable |= {gate for family in families() for gate in family.gates}
    read = read_gates() & movable
    assert read | gates_without_effect().keys() == movable
    assert read & gates_without_effect().keys() == set()


def test_every_field_of_a_configuration_is_read_or_listed_or_refused() -> None:
    listed = {path.rpartition(".")[2] for path in FIELDS_WITHOUT_EFFECT}
    records = (KubeConfig, LeaderElection, ClientConnection, ExtenderConfig, ExtenderTls, *PLUGIN_ARGS)
    known = {field.name for record in records for field in fields(record)}
    assert {spelt(name) for name in known - read_fields() - REFUSED} == listed


def test_what_was_moved_in_vain_is_named_with_what_happens_instead() -> None:
    text = HEADER + "parallelism: 4\nclientConnection: {contentType: application/json}\nenableProfiling: false\n"
    assert load_config(text, gates=parse_feature_gates("DRADeviceTaints=false,AllAlpha=false")).notices == (
        "--feature-gates: DRADeviceTaints=false has no effect: it is always on",
        "parallelism: 4 has no effect: all nodes are judged at once, in one thread",
        "enableProfiling: false has no effect: no profiling endpoints are served",
        "enableContentionProfiling: false has no effect: no profiling endpoints are served",
        'clientConnection.contentType: "application/json" has no effect: requests and answers are JSON',
    )


@pytest.mark.parametrize("gates", [DEFAULT_GATES, OWN_GATES, parse_feature_gates("StorageCapacityScoring=true")])
def test_defaults_and_switches_that_do_something_are_not_remarked_upon(gates: frozenset[str]) -> None:
    assert default_kube_config(gates=gates).notices == ()


def test_config_check_names_them_on_standard_error(tmp_path: Path) -> None:
    file = tmp_path / "scheduler.yaml"
    file.write_text(HEADER + "parallelism: 4\n")
    result = CliRunner().invoke(config_group, ["check", str(file), "--feature-gates", "ComponentFlagz=false"])
    assert result.exit_code == 0
    assert f"{file}: note: parallelism: 4 has no effect: all nodes are judged at once" in result.stderr
    assert f"{file}: note: --feature-gates: ComponentFlagz=false has no effect: /flagz is not served" in result.stderr


def test_effective_gates_lists_each_gate_with_its_state_and_whether_anything_reads_it() -> None:
    result = CliRunner().invoke(
        config_group, ["effective", "-o", "gates", "--feature-gates", "SchedulerPopFromBackoffQ=false"]
    )
    rows = {line.split()[0]: line.split(maxsplit=3)[1:] for line in result.stdout.splitlines()}
    assert rows.keys() >= KNOWN_GATES.keys()
    assert rows["SchedulerPopFromBackoffQ"] == ["off", "beta", "obeyed"]
    assert rows["DRADeviceTaints"] == ["on", "beta", "no effect: it is always on"]
    assert rows["DynamicResourceAllocation"] == ["on", "GA", "locked"]
    assert rows["MultiQuotaTree"] == ["off", "koordinator", "obeyed"]
