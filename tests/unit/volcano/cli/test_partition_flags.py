"""The flags and variables that give a Volcano scheduler a part of a cluster, and those about volumes and gates."""

from __future__ import annotations

from typing import Any

import click
import pytest
from click.testing import CliRunner

from fairlead.cli import up
from fairlead.cli.embedded import UpOptions
from fairlead.errors import ConfigError
from fairlead.kube.config.gates import parse_feature_gates
from fairlead.testing.harness import Harness
from fairlead.volcano.cli.flags import volcano_options, volcano_setup
from fairlead.volcano.rounds.partition import WHOLE, Partition, Sharding
from fairlead.volcano.rounds.settings import rounds_of
from tests.support.volcano_flags import flags

KUBE_CONFIG = "tests/parity/data/kube/scheduler-config.yaml"


def partition(*arguments: str) -> Partition:
    asked = flags("--volcano-conf", "default", *arguments)
    assert asked is not None
    rounds = rounds_of(asked.profile(asked.first_config()))
    return rounds.partition


def test_by_default_it_is_the_whole_cluster() -> None:
    assert partition() == WHOLE


def test_labels_are_listed_with_commas_or_one_by_one() -> None:
    given = partition("--node-selector", "role:train,role:serve", "--node-selector", "pool:a")
    assert given.labels == {"role:train", "role:serve", "pool:a"}
    assert not given.whole


def test_the_mode_and_the_name_of_a_shard() -> None:
    given = partition("--scheduler-sharding-mode", "soft", "--scheduler-sharding-name", "east")
    assert (given.sharding, given.shard) == (Sharding.SOFT, "east")


def test_another_mode_is_an_error() -> None:
    with pytest.raises(click.BadParameter, match="'none', 'soft', 'hard'"):
        partition("--scheduler-sharding-mode", "medium")


def test_volumes_and_gates() -> None:
    asked = flags("--volcano-conf", "default", "--ignored-provisioners", "a,b", "--csi-storage", "false")
    assert asked is not None
    assert asked.options.csi_storage is False
    rounds = rounds_of(asked.profile(asked.first_config()))
    assert {"a", "b", "rancher.io/local-path"} <= rounds.ignored_provisioners
    assert not rounds.opens_queue_gates


def test_the_gates_of_the_command_reach_the_profile() -> None:
    given = {**_defaults(), "volcano_conf": "default", "gates": parse_feature_gates("SchedulingGatesQueueAdmission=1")}
    asked = volcano_setup(given)
    assert asked is not None
    rounds = rounds_of(asked.profile(asked.first_config()))
    assert rounds.opens_queue_gates


def brought_up(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> UpOptions:
    """What `fairlead up` would start."""
    wishes: list[UpOptions] = []

    async def note(wish: UpOptions) -> None:
        wishes.append(wish)

    monkeypatch.setattr(up, "_up", note)
    monkeypatch.setattr(up, "_leave_quietly_on_signals", lambda: None)
    result = CliRunner().invoke(up.up_command, ["--nodes", "0", *arguments], standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return wishes[0]


@pytest.mark.parametrize("gates", [(), ("--feature-gates", "SchedulingGatesQueueAdmission=true")])
def test_up_takes_the_same_gates_for_volcano(monkeypatch: pytest.MonkeyPatch, gates: tuple[str, ...]) -> None:
    wish = brought_up(monkeypatch, "--volcano-conf", "default", *gates)
    assert wish.assembly is not None
    rounds = rounds_of(wish.assembly.scheduler(Harness().store).profiles["volcano"])
    assert rounds.opens_queue_gates == bool(gates)


@pytest.mark.parametrize("config", [(), ("--volcano-conf", "default"), ("--config", KUBE_CONFIG)])
def test_up_takes_gates_over_those_that_gangs_need(monkeypatch: pytest.MonkeyPatch, config: tuple[str, ...]) -> None:
    found = []
    for gates in ("", "StorageCapacityScoring=true", "AllAlpha=false"):
        assembly = brought_up(monkeypatch, *config, "--feature-gates", gates).assembly
        assert assembly is not None
        plugins = assembly.scheduler(Harness().store).profiles["default-scheduler"].plugins()
        found.append("GangScheduling" in [plugin.name for plugin in plugins])
    assert found == [True, True, False]


def test_up_refuses_gates_nobody_knows_or_would_heed(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(click.BadParameter, match="unrecognized feature gate: NoSuchGate"):
        brought_up(monkeypatch, "--feature-gates", "NoSuchGate=true")
    with pytest.raises(click.UsageError, match="--feature-gates is for the scheduler"):
        brought_up(monkeypatch, "--scheduler", "none", "--feature-gates", "StorageCapacityScoring=true")


def _defaults() -> dict[str, Any]:
    """What the command line says if nobody says anything."""
    found: list[dict[str, Any]] = []

    @click.command()
    @volcano_options
    def command(**given: Any) -> None:
        found.append(given)

    command.main([], standalone_mode=False)
    return found[0]


class TestReplicas:
    @pytest.fixture(autouse=True)
    def _enabled(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("MULTI_SCHEDULER_ENABLE", "true")
        monkeypatch.setenv("SCHEDULER_POD_NAME", "volcano-scheduler-1")
        monkeypatch.setenv("SCHEDULER_NUM", "3")

    def test_the_ring_is_that_of_the_stateful_set(self) -> None:
        given = partition()
        assert given.ring is not None
        assert given.ring.members == ("volcano-scheduler-0", "volcano-scheduler-1", "volcano-scheduler-2")
        assert given.replica == "volcano-scheduler-1"

    def test_a_number_that_is_none_is_one(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SCHEDULER_NUM", "some")
        given = partition()
        assert given.ring is not None
        assert len(given.ring.members) == 1

    @pytest.mark.parametrize(("name", "value"), [("SCHEDULER_POD_NAME", "alone"), ("SCHEDULER_NUM", "0")])
    def test_what_cannot_be_a_replica_is_an_error(self, monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
        monkeypatch.setenv(name, value)
        with pytest.raises(ConfigError, match=name):
            partition()

    def test_without_volcano_nobody_looks(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SCHEDULER_POD_NAME", "alone")
        assert flags() is None

    def test_off_unless_it_is_true(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("MULTI_SCHEDULER_ENABLE", "1")
        assert partition() == WHOLE


def test_both_commands_have_them() -> None:
    assert {"node_selector", "scheduler_sharding_mode", "scheduler_sharding_name"} <= _parameters()


def _parameters() -> set[str]:
    from fairlead.cli.main import cli

    named: list[set[str]] = []
    for name in ("scheduler", "up"):
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        named.append({parameter.name or "" for parameter in command.params})
    return named[0] & named[1]
