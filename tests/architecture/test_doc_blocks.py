"""The form of the code blocks of README and docs/: nobody can skip one unnoticed. tests/e2e runs them.

`tests/support/doc_blocks.py` says what is done with a block of each language, and how one that cannot run is marked.
"""

from __future__ import annotations

import re
from pathlib import Path

from tests.support.doc_blocks import LANGUAGES, PAGES, REPOSITORY, blocks_of, indented_blocks, matches, stray_marks
from tests.support.sources import at_least

BLOCKS = [block for page in at_least(33, PAGES) for block in blocks_of(page)]


def name_of(page: Path) -> str:
    return str(page.relative_to(REPOSITORY))


def test_every_block_names_its_language() -> None:
    nameless = [block.title for block in BLOCKS if block.language not in LANGUAGES]
    assert not nameless, f"one of {', '.join(LANGUAGES)} is to stand after the fence"


def test_no_block_is_hidden_by_indentation() -> None:
    hidden = [f"{name_of(page)}:{line}" for page in PAGES for line in indented_blocks(page)]
    assert not hidden, "write a fence with a language"


def test_what_is_not_run_has_a_reason() -> None:
    for block in BLOCKS:
        if block.reason:
            assert len(block.reason.split()) >= 4, f"{block.title}: say why it cannot run"
            for file in re.findall(r"\btests/\S+\.py\b", block.reason):
                assert (REPOSITORY / file).exists(), f"{block.title}: there is no {file}"


def test_no_mark_stands_alone() -> None:
    stray = {name_of(page): stray_marks(page) for page in PAGES if stray_marks(page)}
    assert not stray, "a comment about a block stands directly before it"


def test_text_holds_no_commands() -> None:
    for block in BLOCKS:
        if block.language == "text":
            assert not re.search(r"^(\$ |fairlead |kubectl |make )", block.text, re.MULTILINE), block.title


def test_shown_output_is_compared_but_for_what_varies() -> None:
    printed = "\nNAME    AGE\nweb-x1  3s\nweb-x2  4s\n"
    assert matches("NAME AGE\nweb-... ...\nweb-x2 4s\n", printed)
    assert matches("NAME AGE\n...\n", printed)
    assert matches("", printed)
    assert not matches("NAME AGE\nweb-... ...\n", printed)
    assert not matches("NAME AGE\ndb-... ...\n...\n", printed)


def test_marks_and_commands_of_a_block_are_read(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "<!-- setup: first\nsecond -->\n<!-- exit code: 3 -->\n\n```bash\nls \\\n  -l   # all\n\n# alone\npwd\n```\n"
        "```console\n$ pwd\n/tmp\n```\n<!-- not run: there is no such program -->\ntext\n"
    )
    one, two = blocks_of(page)
    assert (one.setup, one.code, one.commands()) == (("first", "second"), 3, [("ls   -l", None), ("pwd", None)])
    assert two.commands() == [("pwd", "/tmp\n")]
    assert stray_marks(page) == 1
