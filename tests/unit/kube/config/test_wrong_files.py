"""Every file in wrong/ is refused with the words in the .txt beside it: ours above the line, kube-scheduler's below."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairlead.assembly.loading import load_config
from fairlead.config.problems import ConfigErrors

WRONG = sorted((Path(__file__).parent / "wrong").glob("*.yaml"))


def refusal(file: Path) -> ConfigErrors:
    with pytest.raises(ConfigErrors) as caught:
        load_config(file.read_text(), file=file.name)
    return caught.value


def test_there_are_at_least_twenty_wrong_files() -> None:
    assert len(WRONG) >= 20


@pytest.mark.parametrize("file", WRONG, ids=lambda file: file.stem)
def test_a_wrong_file_is_refused_with_file_line_path_and_suggestion(file: Path) -> None:
    ours, _, _ = file.with_suffix(".txt").read_text().partition("\n---\n")
    assert str(refusal(file)) == ours


@pytest.mark.parametrize("file", WRONG, ids=lambda file: file.stem)
def test_a_wrong_file_is_refused_with_the_words_of_the_original(file: Path) -> None:
    _, _, original = file.with_suffix(".txt").read_text().partition("\n---\n")
    assert refusal(file).original == original.removesuffix("\n")


@pytest.mark.parametrize("file", WRONG, ids=lambda file: file.stem)
def test_every_problem_of_a_wrong_file_names_the_file_and_a_line_of_it(file: Path) -> None:
    lines = len(file.read_text().splitlines())
    for problem in refusal(file).problems:
        assert problem.file == file.name
        assert problem.line is not None
        assert 1 <= problem.line <= lines
