"""volcano-scheduler.conf: what is read, what it becomes, how it is reloaded, what `fairlead config` says of it."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from fairlead.cli.config_commands import config_group
from fairlead.config.problems import ConfigErrors
from fairlead.config.source import parse_source
from fairlead.config.watcher import ConfigWatcher, ReloadOutcome
from fairlead.volcano.config.arguments import ARGUMENTS
from fairlead.volcano.config.build import profile_of_volcano
from fairlead.volcano.config.options import VolcanoOptions
from fairlead.volcano.config.presets import PRESETS
from fairlead.volcano.config.reading import SWITCHES, is_volcano_config, load_volcano_config
from fairlead.volcano.plugins.catalogue import NAMES
from fairlead.volcano.queues.capacity import HierarchicalCapacity
from fairlead.volcano.records.quirks import FIXED
from fairlead.volcano.rounds.settings import rounds_of
from fairlead.volcano.rounds.tiers import Tiers

FULL = """
actions: "enqueue, allocate,backfill ,reclaim"
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: no
    enableJobStarving: false
- plugins:
  - name: capacity
    enableHierarchy: true
    arguments:
      ancestorReclaimLevel: 2
  - name: predicates
    enabledAllocatable: false
configurations:
- name: allocate
  arguments:
    predicateErrorCacheEnable: false
metrics:
  type: prometheus
  address: http://prometheus:9090
  interval: 30s
  tls.insecureSkipVerify: true
"""


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(config_group, [str(argument) for argument in arguments])


# ---- reading ----


def test_actions_tiers_switches_arguments_configurations_and_metrics_are_read() -> None:
    config = load_volcano_config(FULL)
    assert config.actions == ("enqueue", "allocate", "backfill", "reclaim")
    assert [[plugin.name for plugin in tier] for tier in config.tiers] == [
        ["priority", "gang"],
        ["capacity", "predicates"],
    ]
    gang, capacity = config.find("gang"), config.find("capacity")
    assert gang is not None
    assert gang.switches == {"enablePreemptable": False, "enableJobStarving": False}
    assert capacity is not None
    assert capacity.arguments == {"ancestorReclaimLevel": 2}
    assert config.configurations == {"allocate": {"predicateErrorCacheEnable": False}}
    assert config.metrics["tls.insecureSkipVerify"] == "true"


@pytest.mark.parametrize("switch", SWITCHES)
def test_every_switch_is_accepted_in_its_own_spelling(switch: str) -> None:
    text = f"actions: allocate\ntiers:\n- plugins:\n  - name: capacity\n    {switch}: true\n"
    (plugin,) = load_volcano_config(text).plugins()
    assert plugin.switches == {switch: True}


def test_the_default_and_the_shipped_configuration_are_volcanos() -> None:
    default, shipped = load_volcano_config(PRESETS["default"]), load_volcano_config(PRESETS["shipped"])
    assert default.actions == shipped.actions == ("enqueue", "allocate", "backfill")
    names = ["overcommit", "drf", "predicates", "proportion", "nodeorder"]
    assert [plugin.name for plugin in default.tiers[1]] == names
    assert [plugin.name for plugin in shipped.tiers[1]] == [*names, "binpack"]
    switches = {plugin.name: dict(plugin.switches) for plugin in shipped.plugins() if plugin.switches}
    assert switches == {"gang": {"enablePreemptable": False}, "drf": {"enablePreemptable": False}}


def test_kube_batch_is_four_actions_and_seven_plugins() -> None:
    config = load_volcano_config(PRESETS["kube-batch"])
    assert sorted(config.actions) == ["allocate", "backfill", "preempt", "reclaim"]
    assert len(config.plugins()) == 7


def test_a_config_map_carries_the_file() -> None:
    document = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"volcano-scheduler.conf": PRESETS["shipped"]}}
    text = yaml.safe_dump(document)
    assert is_volcano_config(parse_source(text))
    assert load_volcano_config(text) == load_volcano_config(PRESETS["shipped"])


@pytest.mark.parametrize(
    ("text", "volcano"),
    [
        ("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n", False),
        ("kind: Policy\napiVersion: v1\npredicates: []\n", False),
        ("action: allocate\n", True),
        ("tiers: []\n", True),
        ("[]\n", False),
        ("profiles: []\n", False),
    ],
)
def test_the_dialect_is_seen_from_the_keys(text: str, volcano: bool) -> None:
    assert is_volcano_config(parse_source(text)) is volcano


def test_a_misspelt_hierarchy_counts_for_nothing_when_compatible() -> None:
    text = "actions: allocate\ntiers:\n- plugins:\n  - name: capacity\n    enabledHierarchy: true\n"
    profile = profile_of_volcano(load_volcano_config(text, compatible=True))
    assert not isinstance(rounds_of(profile).tiers[0][0].plugin, HierarchicalCapacity)


# ---- what it becomes ----


def test_a_profile_has_the_tiers_the_actions_and_the_flags() -> None:
    options = VolcanoOptions(scheduler_names=("vc", "vc2"), period=0.5, default_queue="main", percentage_of_nodes=30)
    profile = profile_of_volcano(load_volcano_config(FULL), options)
    rounds = rounds_of(profile)
    assert profile.name == "vc"
    assert (rounds.period, rounds.default_queue, rounds.percentage) == (0.5, "main", 30)
    assert rounds.scheduler_names == ("vc", "vc2")
    assert rounds.actions == ("enqueue", "allocate", "backfill", "reclaim")
    assert rounds.quirks == FIXED
    tiers = Tiers(rounds.tiers)
    assert isinstance(tiers.plugins["capacity"], HierarchicalCapacity)
    assert not next(one for one in rounds.tiers[0] if one.plugin.name == "gang").speaks_at("preemptable")


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_can_be_run(name: str) -> None:
    assert rounds_of(profile_of_volcano(load_volcano_config(PRESETS[name]))).tiers


def test_the_arguments_of_every_plugin_that_is_built_are_known() -> None:
    assert set(ARGUMENTS) >= NAMES


def test_a_plugin_of_the_users_own_is_named_by_module() -> None:
    text = "actions: allocate\ntiers:\n- plugins:\n  - name: fairlead.volcano.plugins.priority:Priority\n"
    profile = profile_of_volcano(load_volcano_config(text))
    assert rounds_of(profile).tiers[0][0].plugin.name == "priority"


@pytest.mark.parametrize("name", ["nowhere:Plugin", "fairlead.errors:ConfigError", "fairlead.errors:Nothing"])
def test_a_module_that_has_no_such_plugin_is_reported_with_its_line(name: str) -> None:
    config = load_volcano_config(f"actions: allocate\ntiers:\n- plugins:\n  - name: {name}\n", file="f")
    with pytest.raises(ConfigErrors, match=r"f:4: tiers\[0\]\.plugins\[0\]\.name: plugin"):
        profile_of_volcano(config)


# ---- reloading ----


def test_an_invalid_file_keeps_the_last_good_one_and_says_so(tmp_path: Path) -> None:
    file, told = tmp_path / "volcano-scheduler.conf", list[str]()
    file.write_text(PRESETS["default"])
    watcher = ConfigWatcher(file, lambda text: load_volcano_config(text, file=file.name), told.append)
    file.write_text(PRESETS["default"].replace("allocate", "alocate"))
    assert watcher.look() is ReloadOutcome.INVALID
    assert watcher.current == load_volcano_config(PRESETS["default"])
    assert 'there is no action "alocate" (did you mean "allocate"?)' in told[-1]
    assert "the last good configuration stays in force" in told[-1]
    file.write_text(PRESETS["shipped"] + "# repaired\n")
    assert watcher.look() is ReloadOutcome.CHANGED
    assert watcher.current == load_volcano_config(PRESETS["shipped"])


# ---- fairlead config ----


def test_check_recognises_the_dialect_and_names_actions_and_plugins() -> None:
    result = run("check", "default")
    assert result.exit_code == 0
    assert result.stdout.startswith("default: fine, no traps; actions: enqueue, allocate, backfill; plugins: priority")


def test_check_of_a_wrong_file_is_code_2_and_the_problem_on_standard_error(tmp_path: Path) -> None:
    file = tmp_path / "v.conf"
    file.write_text("actions: alocate\ntiers:\n- plugins:\n  - name: gang\n")
    result = run("check", file)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == f'{file}:1: actions: there is no action "alocate" (did you mean "allocate"?)\n'


def test_check_compatible_says_what_was_overlooked(tmp_path: Path) -> None:
    file = tmp_path / "v.conf"
    file.write_text(PRESETS["default"] + "extra: 1\n")
    assert run("check", file).exit_code == 2
    result = run("check", file, "--compatible")
    assert result.exit_code == 0
    assert result.stderr == f'overlooked: {file}:13: extra: unknown field "extra"\n'


def test_check_strict_ends_with_code_1_for_traps() -> None:
    assert run("check", "shipped").exit_code == 0
    assert run("check", "shipped", "--strict").exit_code == 1
    assert run("check", "default", "--strict").exit_code == 0


def test_effective_is_the_file_in_one_spelling(tmp_path: Path) -> None:
    file = tmp_path / "v.conf"
    file.write_text(FULL)
    shown = run("effective", file)
    assert load_volcano_config(shown.stdout) == load_volcano_config(FULL)


def test_effective_points_show_who_is_asked_tier_by_tier() -> None:
    lines = run("effective", "shipped", "-o", "points").stdout.splitlines()
    assert lines[0] == "actions enqueue, allocate, backfill"
    asked = {line.split()[0]: " ".join(line.split()[1:]) for line in lines[1:]}
    assert asked["preemptable"] == "priority, conformance | -"
    assert asked["queue_order"] == "- | proportion"


def test_diff_names_what_changed_and_nothing_else() -> None:
    lines = run("diff", "default", "shipped").stdout.splitlines()
    assert lines == [
        'tiers[1]: "overcommit, drf, predicates, proportion, nodeorder" -> '
        '"overcommit, drf, predicates, proportion, nodeorder, binpack"',
        "gang.enablePreemptable: null -> false",
        "drf.enablePreemptable: null -> false",
    ]
