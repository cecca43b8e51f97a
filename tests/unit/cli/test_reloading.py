"""A configuration file that changes while a scheduler runs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path

import pytest

from fairlead.assembly.loading import load_config
from fairlead.assembly.schedulers import Look, Reload, SchedulerAssembly
from fairlead.cli import reloading
from fairlead.cli.reloading import follow_files, log_config_change
from fairlead.config.watcher import ConfigWatcher
from fairlead.core.engine.scheduler import Scheduler
from fairlead.runtime.metrics import about_process
from fairlead.testing.builders import pod
from fairlead.testing.harness import Harness

CONFIG = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reloading, "LOOK_EVERY", 0.001)


async def followed(scheduler: Scheduler, look: Look, times: int) -> None:
    """Look so many times, and reload as a runtime would."""
    looks = 0
    enough = asyncio.Event()
    loop = asyncio.get_running_loop()

    def counted() -> Reload | None:
        nonlocal looks
        looks += 1
        if looks > times:
            loop.call_soon_threadsafe(enough.set)
        return look()

    def ask(reload: Reload) -> Future[Mapping[str, str]]:
        future: Future[Mapping[str, str]] = Future()
        future.set_result(reload(scheduler))
        return future

    following = asyncio.create_task(follow_files([counted], ask))
    async with asyncio.timeout(10):
        await enough.wait()
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)


def assembled(file: Path) -> tuple[SchedulerAssembly, Callable[[], Reload | None]]:
    assembly = SchedulerAssembly(load_config(file.read_text()))
    watcher = ConfigWatcher(file, lambda text: assembly.load(text, file=file.name), log_config_change)
    return assembly, lambda: assembly.look_at(watcher)


async def test_a_changed_file_is_in_force_and_pods_keep_their_places(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "scheduler.yaml"
    file.write_text(CONFIG)
    assembly, look = assembled(file)
    scheduler = assembly.scheduler()
    cluster = Harness(nodes=1, schedulers=[lambda _: scheduler])
    cluster.apply(pod("huge").asks(cpu="99"))
    cluster.run(1)
    file.write_text(CONFIG + "podMaxBackoffSeconds: 7\nprofiles: [{schedulerName: other}]\n")
    with caplog.at_level(logging.INFO, logger="fairlead.scheduler"):
        await followed(scheduler, look, 2)
    assert list(scheduler.profiles) == ["other"]
    assert assembly.current.pod_max_backoff_seconds == 7
    assert cluster.explain("huge") is not None
    assert [record.getMessage() for record in caplog.records][-1] == "the new configuration is in force"


@pytest.mark.parametrize("text", ["profiles: [", "profiles: [{plugins: {score: {enabled: [{name: Nobody}]}}}]"])
async def test_a_file_that_cannot_be_used_changes_nothing(
    text: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "scheduler.yaml"
    file.write_text(CONFIG)
    assembly, look = assembled(file)
    scheduler = assembly.scheduler()
    before = scheduler.profiles
    file.write_text(CONFIG + text)
    with caplog.at_level(logging.WARNING, logger="fairlead.scheduler"):
        await followed(scheduler, look, 3)
    assert scheduler.profiles is before
    assert caplog.text.count("the last good configuration stays in force") == 1, "told once"


async def test_a_look_that_fails_does_not_end_the_following(caplog: pytest.LogCaptureFixture) -> None:
    def look() -> Reload | None:
        raise ValueError("surprise")

    with caplog.at_level(logging.ERROR, logger="fairlead.scheduler"):
        await followed(SchedulerAssembly().scheduler(), look, 2)
    assert caplog.text.count("the last good one stays in force") >= 2


async def test_a_refused_file_shows_until_it_is_mended(tmp_path: Path) -> None:
    file = tmp_path / "scheduler.yaml"
    file.write_text(CONFIG)
    assembly = SchedulerAssembly(load_config(file.read_text()))
    watcher = ConfigWatcher(file, lambda text: assembly.load(text, file=file.name), log_config_change)
    assembly.follow(watcher)

    def successful() -> list[float]:
        served = [sample for metric in about_process(assembly.refused, {"api": True}) for sample in metric.samples]
        return [sample.value for sample in served if sample.name == "fairlead_config_last_reload_successful"]

    assert successful() == [1.0]
    file.write_text(CONFIG + "profiles: [")
    assert assembly.look_at(watcher) is None
    assert successful() == [0.0]
    assert "scheduler.yaml" in assembly.refused[0]
    file.write_text(CONFIG)
    assembly.look_at(watcher)
    assert successful() == [1.0]
