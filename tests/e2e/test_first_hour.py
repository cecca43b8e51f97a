"""A new user's first hour: README and docs/ from top to bottom, command by command, with a stock kubectl.

There is no terminal, and there are 80 columns. Pages without kubectl are in test_doc_blocks.py. `make test-kube` builds
the kubectl; its share of that suite's time is three minutes.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.doc_blocks import COMMANDS, PAGES, REPOSITORY, blocks_of
from tests.support.doc_shell import PageShell, needs_kubectl
from tests.support.real.control_plane import real_binary

PAGES_OF_THE_HOUR = [
    page
    for page in PAGES
    if needs_kubectl(page) and any(block.runs and block.language in COMMANDS for block in blocks_of(page))
]


@pytest.mark.kube
@pytest.mark.takes(seconds=120)
@pytest.mark.parametrize("page", PAGES_OF_THE_HOUR, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_a_reader_does_what_the_page_says(page: Path, tmp_path: Path) -> None:
    with PageShell(tmp_path, str(Path(real_binary("kubectl")).parent)) as shell:
        for block in blocks_of(page):
            if not block.reason:
                shell.run(block)
        shell.check()
        assert any("kubectl " in command for command, _ in shell.said)
