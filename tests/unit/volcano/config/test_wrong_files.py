"""Every file in wrong/ is refused with the words in the .txt beside it: ours above the line, and below it the
original's, where it refuses the file too."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairlead.config.problems import ConfigErrors
from fairlead.volcano.config.reading import load_volcano_config

WRONG = sorted((Path(__file__).parent / "wrong").glob("*.yaml"))
REFUSED_BY_THE_ORIGINAL = {
    "01-misspelt-action", "07-quoted-switch", "08-actions-as-a-list", "09-proportion-with-hierarchical-drf",
    "10-misspelt-top-key", "11-plugins-without-list", "13-tab", "17-empty", "22-arguments-as-a-list",
}  # fmt: skip


def refusal(file: Path) -> ConfigErrors:
    with pytest.raises(ConfigErrors) as caught:
        load_volcano_config(file.read_text(), file=file.name)
    return caught.value


def test_there_are_at_least_twenty_wrong_files() -> None:
    assert len(WRONG) >= 20


@pytest.mark.parametrize("file", WRONG, ids=lambda file: file.stem)
def test_a_wrong_file_is_refused_with_file_line_path_and_suggestion(file: Path) -> None:
    ours, _, _ = file.with_suffix(".txt").read_text().partition("\n---\n")
    assert str(refusal(file)) == ours


@pytest.mark.parametrize("file", WRONG, ids=lambda file: file.stem)
def test_every_problem_of_a_wrong_file_names_the_file_and_a_line_of_it(file: Path) -> None:
    lines = len(file.read_text().splitlines())
    for problem in refusal(file).problems:
        assert problem.file == file.name
        assert problem.line is not None
        assert 1 <= problem.line <= lines


@pytest.mark.parametrize("file", WRONG, ids=lambda file: file.stem)
def test_compatible_overlooks_what_the_original_overlooks_and_says_so(file: Path) -> None:
    if file.stem in REFUSED_BY_THE_ORIGINAL:
        with pytest.raises(ConfigErrors):
            load_volcano_config(file.read_text(), file=file.name, compatible=True)
        return
    config = load_volcano_config(file.read_text(), file=file.name, compatible=True)
    assert config.notices == tuple(file.with_suffix(".txt").read_text().partition("\n---\n")[0].splitlines())


@pytest.mark.parametrize("file", WRONG, ids=lambda file: file.stem)
def test_the_words_of_the_original_are_known_where_it_refuses(file: Path) -> None:
    _, _, original = file.with_suffix(".txt").read_text().partition("\n---\n")
    if original:
        assert refusal(file).original == original.removesuffix("\n")
