"""A configuration is the same cluster through each door.

| door                   | controllers                     | admission | plugins, quirks    | plugins of Jobs |
|------------------------|---------------------------------|-----------|--------------------|-----------------|
| `fairlead up`          | all                             | all       | all                | all             |
| Harness, fixture       | all                             | all       | all                | all             |
| laboratory             | all                             | all       | all                | all             |
| `schedule`             | all                             | all       | all                | all             |
| recorded story         | those that were recorded, and   | all, with | all                | all             |
|                        | kubelets that the story plays   | the webhooks that are off elsewhere               |
| `fairlead scheduler`   | Volcano's, if asked for; what   | the       | all; gates are off | all             |
|                        | makes first objects             | cluster's | as kube-scheduler's |                |
| `fairlead controllers` | Volcano's                       | the cluster's | no scheduler   | all             |
| LiveScheduler          | what makes first objects        | the cluster's | all            | none            |

A cluster elsewhere has kubelets, node agents and quota controllers of its own, and its API server admits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import chain
from pathlib import Path
from typing import Any

import click
import pytest

from fairlead import LiveScheduler, schedule
from fairlead.assembly.cluster import ClusterAssembly
from fairlead.assembly.loading import presets
from fairlead.assembly.recorded import recorded_cluster
from fairlead.assembly.schedulers import SchedulerAssembly
from fairlead.cli import scheduling, up
from fairlead.cli.embedded import EmbeddedCluster, UpOptions
from fairlead.cli.scheduler import scheduler_command
from fairlead.cluster.controllers.controller_group import ControllerGroup
from fairlead.cluster.housekeeping import housekeepers
from fairlead.cluster.store.store import Store
from fairlead.core.engine.scheduler import Scheduler
from fairlead.core.model.flow import Controller
from fairlead.kube.config.gates import DEFAULT_GATES, OWN_GATES
from fairlead.lab.play.run import LabRun
from fairlead.lab.scenario.records import ClusterSpec, LabScenario, LoadSpec, PolicySpec, ShapeSpec
from fairlead.testing.harness import Harness
from fairlead.volcano.cli import controllers
from fairlead.volcano.jobs.jobs import VolcanoJobs
from fairlead.volcano.replay.forms import RECORDED_SETUP
from fairlead.volcano.replay.story_world import STORY_CONTROLLERS, StoryWorld, story_settings
from tests.support.controllers import Documents
from tests.support.lab import KeptRows

OWN = ",".join(f"{gate}=true" for gate in sorted(OWN_GATES - DEFAULT_GATES))
"""The gates that are on in clusters of fairlead's, and off in kube-scheduler."""


@dataclass(frozen=True)
class Choice:
    """What a user chooses: a configuration of kube profiles, by the name of a preset, and one of Volcano's."""

    config: str = ""
    volcano: str = ""

    def file(self, directory: Path) -> str | None:
        if not self.config:
            return None
        path = directory / "config.yaml"
        path.write_text(presets()[self.config])
        return str(path)


KUBE, KOORDINATOR, VOLCANO = Choice(), Choice("koordinator"), Choice(volcano="shipped")
CHOICES = [pytest.param(KUBE, id="kube"), pytest.param(KOORDINATOR, id="koordinator"),
           pytest.param(VOLCANO, id="volcano")]  # fmt: skip


@dataclass(frozen=True)
class Made:
    """What a door made, by names."""

    controllers: frozenset[str]
    hooks: Mapping[str, frozenset[str]]
    plugins: Mapping[str, object]
    job_plugins: frozenset[str]
    quirks: Mapping[str, object]

    @classmethod
    def of(cls, store: Store | None, controllers: Sequence[Controller]) -> Made:
        """What there is of each; a door without a Store, a scheduler or the controller of Jobs has nothing there."""
        members = [one for group in controllers for one in _members(group)]
        profiles = {
            name: profile for one in members if isinstance(one, Scheduler) for name, profile in one.profiles.items()
        }
        jobs = [one for one in members if isinstance(one, VolcanoJobs)]
        return cls(
            frozenset(one.name for one in members),
            {} if store is None else _hooks(store),
            {name: _plugins(profile) for name, profile in profiles.items()},
            frozenset(name for one in jobs for name in one._beside._plugins),
            {name: (profile.compatible, getattr(profile.mode, "quirks", None)) for name, profile in profiles.items()}
            | dict(chain.from_iterable(map(_of_jobs, jobs))),
        )


def _members(controller: Any) -> list[Any]:
    """The members of a group; the scheduler behind what delays its changes in stories."""
    if isinstance(controller, ControllerGroup):
        return list(controller.members)
    return [getattr(controller, "_scheduler", controller)]


def _of_jobs(jobs: VolcanoJobs) -> Iterator[tuple[str, object]]:
    yield "jobs", jobs._quirks
    yield "keys", bool(jobs._beside._means.make_keys().private)


def _hooks(store: Store) -> dict[str, frozenset[str]]:
    table = store._verbs._admission._hooks
    return {
        kind.path: frozenset(hook.name for hook in fields(hooks) if getattr(hooks, hook.name) is not None)
        for kind, hooks in table.items()
    }


def _plugins(profile: Any) -> object:
    rounds = profile.mode
    tiers = () if rounds is None else [[one.plugin.name for one in tier] for tier in rounds.tiers]
    return {point: [one.name for one in plugins] for point, plugins in profile.points.items()}, tiers


def made_by(harness: Harness) -> Made:
    return Made.of(harness.store, harness.runtime.controllers)


async def made_by_up(choice: Choice, directory: Path, monkeypatch: pytest.MonkeyPatch, *more: str) -> Made:
    """The controllers of `fairlead up` with the flags that say the same, from the flags on."""
    config = choice.file(directory)
    flags = ["--nodes", "0", "--kubeconfig", str(directory / "kubeconfig"), *more]
    flags += [] if config is None else ["--config", config]
    flags += ["--volcano-conf", choice.volcano] if choice.volcano else []
    options: list[UpOptions] = []
    monkeypatch.setattr(up, "_leave_quietly_on_signals", lambda: None)
    monkeypatch.setattr(up, "_up", options.append)
    monkeypatch.setattr(up.asyncio, "run", lambda made: None)
    with click.Context(up.up_command):
        up.up_command.main(flags, standalone_mode=False)
    monkeypatch.undo()
    cluster = EmbeddedCluster(options[0])
    await cluster.start(lambda count: None)
    try:
        return Made.of(cluster.store, [driver.controller for driver in cluster._runtime._drivers])
    finally:
        await cluster.stop()


def harness_of(choice: Choice, directory: Path) -> Harness:
    return Harness(config=choice.file(directory), volcano=choice.volcano or None)


def made_by_lab(choice: Choice, directory: Path) -> Made:
    policy = PolicySpec(config=choice.file(directory), volcano=choice.volcano)
    nodes = ClusterSpec(nodes=[ShapeSpec(count=1, resources={"cpu": "1"})])
    run = LabRun(LabScenario(cluster=nodes), policy, LoadSpec(), 1, KeptRows())
    return made_by(run.cluster)


@pytest.mark.parametrize("choice", CHOICES)
async def test_up_makes_the_cluster_of_a_harness(
    choice: Choice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await made_by_up(choice, tmp_path, monkeypatch) == made_by(harness_of(choice, tmp_path))


@pytest.mark.parametrize("choice", CHOICES)
def test_the_laboratory_makes_the_cluster_of_a_harness(choice: Choice, tmp_path: Path) -> None:
    assert made_by_lab(choice, tmp_path) == made_by(harness_of(choice, tmp_path))


@pytest.mark.parametrize("choice", CHOICES)
def test_the_library_makes_the_cluster_of_a_harness(choice: Choice, tmp_path: Path) -> None:
    placements = schedule(config=choice.file(tmp_path), volcano=choice.volcano or None)
    assert made_by(placements.cluster) == made_by(harness_of(choice, tmp_path))


def test_a_story_has_the_cluster_of_a_harness_with_its_setup() -> None:
    own = recorded_cluster(RECORDED_SETUP, STORY_CONTROLLERS, [story_settings()])
    story = StoryWorld("space", own)
    made = Made.of(story.store, story._runtime.controllers)
    usual = made_by(Harness(schedulers=SchedulerAssembly(setups=[RECORDED_SETUP])))
    assert (made.hooks, made.plugins, made.quirks, made.job_plugins) == (
        usual.hooks,
        usual.plugins,
        usual.quirks,
        usual.job_plugins,
    )
    left_out = {"node-controller", "taint-eviction-controller", "volume-provisioner", "kubelet"}
    assert usual.controllers - made.controllers == left_out
    assert made.controllers - usual.controllers == {"story-kubelet"}


# ---- on a cluster elsewhere ----


def made_by_scheduler(monkeypatch: pytest.MonkeyPatch, *flags: str) -> Made:
    """What `fairlead scheduler` runs with these flags, over the view of an empty cluster."""
    asked: list[ClusterAssembly] = []
    with monkeypatch.context() as patched:
        patched.setattr(scheduling, "run", lambda flags, config: asked.append(scheduling.assembled(flags, config)))
        patched.setattr("asyncio.run", lambda made: None)
        scheduler_command.main([*flags], standalone_mode=False)
    (cluster,) = asked
    view = Documents()
    assert cluster.schedulers is not None
    return Made.of(None, [cluster.schedulers.scheduler(view), *cluster.joining(view)])


def test_the_scheduler_command_brings_what_a_harness_has_of_volcano(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flags = ["--volcano-conf", "shipped", "--volcano-controllers", "--feature-gates", OWN]
    made, usual = made_by_scheduler(monkeypatch, *flags), made_by(harness_of(VOLCANO, tmp_path))
    assert made.controllers == {name for name in usual.controllers if name.startswith("volcano")} | {"scheduler"}
    assert (made.plugins, made.quirks, made.job_plugins) == (usual.plugins, usual.quirks, usual.job_plugins)


def test_the_scheduler_command_brings_no_agents_to_real_nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = KOORDINATOR.file(tmp_path)
    made = made_by_scheduler(monkeypatch, "--config", str(config), "--feature-gates", OWN)
    assert made.controllers == {"scheduler"}
    assert made.plugins == made_by(harness_of(KOORDINATOR, tmp_path)).plugins


def test_the_controllers_command_brings_those_of_a_harness(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(controllers, "_run", lambda *given: asked.append(given))
    monkeypatch.setattr(controllers.asyncio, "run", lambda made: None)
    controllers.controllers_command.main(["--controllers", "*"], standalone_mode=False)
    ((_, names, settings, _),) = asked
    made = Made.of(None, housekeepers(Documents(), names=names, settings=[settings]))
    usual = made_by(harness_of(VOLCANO, tmp_path))
    assert made.controllers | {"volcano-first-queues"} == {
        name for name in usual.controllers if name.startswith("volcano")
    }
    assert made.job_plugins == usual.job_plugins
    assert made.quirks == {name: usual.quirks[name] for name in ("jobs", "keys")}


def test_a_live_scheduler_brings_the_first_objects_of_its_setups(tmp_path: Path) -> None:
    with Harness(schedulers=[]) as cluster, LiveScheduler(cluster.serve(), volcano="shipped") as live:
        made = Made.of(None, [driver.controller for driver in live._runtime._drivers])
    usual = made_by(harness_of(VOLCANO, tmp_path))
    assert made.controllers == {"scheduler", "volcano-first-queues"}
    assert made.plugins == usual.plugins
    assert made.quirks == {name: usual.quirks[name] for name in made.plugins}


@pytest.mark.cluster(volcano="shipped")
def test_the_fixture_makes_the_cluster_of_a_harness(cluster: Harness, tmp_path: Path) -> None:
    assert made_by(cluster) == made_by(harness_of(VOLCANO, tmp_path))


def test_the_comparison_sees_what_a_configuration_changes(tmp_path: Path) -> None:
    kube, koordinator, volcano = (made_by(harness_of(one, tmp_path)) for one in (KUBE, KOORDINATOR, VOLCANO))
    assert {"koordinator-node-agents", "koordinator-built-in-quotas"} <= koordinator.controllers - kube.controllers
    assert volcano.controllers - kube.controllers == {"volcano-first-queues"}
    assert kube.plugins != koordinator.plugins != volcano.plugins
