"""Our reading of configuration files against the real kube-scheduler's, file by file."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from fairlead.assembly.loading import load_config
from fairlead.config.problems import ConfigErrors
from tests.support.real.real_config import ask_kube_scheduler

FILES = Path(__file__).parents[1] / "unit" / "kube" / "config"
RIGHT = [*sorted((FILES / "right").glob("*.yaml")), Path(__file__).parent / "data" / "kube" / "scheduler-config.yaml"]
WRONG = sorted((FILES / "wrong").glob("*.yaml"))


@pytest.mark.kube
@pytest.mark.parametrize("file", RIGHT, ids=lambda file: file.stem)
def test_the_stored_answers_are_what_kube_scheduler_says_today(file: Path, tmp_path: Path) -> None:
    answer = ask_kube_scheduler(file, tmp_path)
    stored = yaml.safe_load((FILES / "effective" / file.name).read_text())
    assert {"document": answer.document, "points": answer.points} == stored


@pytest.mark.kube
@pytest.mark.parametrize("file", WRONG, ids=lambda file: file.stem)
def test_a_wrong_file_is_refused_in_the_words_that_kube_scheduler_uses(file: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigErrors) as caught:
        load_config(file.read_text(), file=file.name)
    assert caught.value.original == ask_kube_scheduler(file, tmp_path).error
