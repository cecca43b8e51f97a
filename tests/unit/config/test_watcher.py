"""Reload on change: what is taken over, what is kept, and what is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairlead.assembly.loading import load_config
from fairlead.config.problems import ConfigErrors
from fairlead.config.watcher import ConfigWatcher, ReloadOutcome
from fairlead.kube.config.records import KubeConfig

HEADER = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


class Watched:
    """A file, its watcher and what the watcher said."""

    def __init__(self, directory: Path) -> None:
        self.file = directory / "scheduler.yaml"
        self.said: list[str] = []
        self.loads = 0
        self.file.write_text(HEADER + "parallelism: 1\n")
        self.watcher: ConfigWatcher[KubeConfig] = ConfigWatcher(self.file, self._load, self.said.append)

    def _load(self, text: str) -> KubeConfig:
        self.loads += 1
        return load_config(text, file=self.file.name)

    def write(self, text: str) -> None:
        """Replace the file, as editors and ConfigMap mounts do: a new inode, so a new stamp whatever the clock."""
        fresh = self.file.with_suffix(".new")
        fresh.write_text(text)
        fresh.replace(self.file)


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    return Watched(tmp_path)


def test_an_untouched_file_is_not_read_again(watched: Watched) -> None:
    assert [watched.watcher.look() for _ in range(3)] == [ReloadOutcome.SAME] * 3
    assert watched.loads == 1
    assert watched.said == []


def test_a_changed_file_is_taken_over_and_said_aloud(watched: Watched) -> None:
    watched.write(HEADER + "parallelism: 2\n")
    assert watched.watcher.look() is ReloadOutcome.CHANGED
    assert watched.watcher.current.parallelism == 2
    assert watched.said == [f"{watched.file}: configuration reloaded"]
    assert watched.watcher.look() is ReloadOutcome.SAME


def test_a_comment_changes_nothing(watched: Watched) -> None:
    watched.write(HEADER + "# a remark\nparallelism: 1\n")
    assert watched.watcher.look() is ReloadOutcome.SAME


def test_a_broken_file_keeps_the_last_good_configuration_and_is_reported_once(watched: Watched) -> None:
    watched.write(HEADER + "paralelism: 2\n")
    assert watched.watcher.look() is ReloadOutcome.INVALID
    assert watched.watcher.look() is ReloadOutcome.SAME
    assert watched.watcher.current.parallelism == 1
    assert watched.said == [
        'scheduler.yaml:3: paralelism: unknown field "paralelism" (did you mean "parallelism"?)\n'
        f"{watched.file}: the last good configuration stays in force"
    ]


def test_a_repaired_file_is_taken_over(watched: Watched) -> None:
    watched.write("nonsense")
    assert watched.watcher.look() is ReloadOutcome.INVALID
    watched.write(HEADER + "parallelism: 3\n")
    assert watched.watcher.look() is ReloadOutcome.CHANGED
    assert watched.watcher.current.parallelism == 3


def test_a_broken_file_put_back_as_it_was_is_the_same_and_said_aloud(watched: Watched) -> None:
    watched.write("nonsense")
    watched.watcher.look()
    watched.write(HEADER + "parallelism: 1\n")
    assert watched.watcher.look() is ReloadOutcome.SAME
    assert watched.said[-1] == f"{watched.file}: the file is again as it was when it was loaded"


def test_a_file_that_vanished_keeps_the_last_good_configuration_until_it_is_back(watched: Watched) -> None:
    watched.file.unlink()
    assert watched.watcher.look() is ReloadOutcome.INVALID
    assert watched.watcher.look() is ReloadOutcome.SAME
    watched.write(HEADER + "parallelism: 4\n")
    assert watched.watcher.look() is ReloadOutcome.CHANGED
    assert len(watched.said) == 2


def test_the_first_load_has_nothing_to_fall_back_to_and_raises(tmp_path: Path) -> None:
    file = tmp_path / "scheduler.yaml"
    file.write_text("nonsense")
    with pytest.raises(ConfigErrors):
        ConfigWatcher(file, load_config, print)
