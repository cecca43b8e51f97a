"""Pages of the site that are not in docs/: files of the repository that people read outside of the site as well.

A hook of mkdocs (mkdocs.yml names it). The files are copied into the site, and links between them and docs/ are turned
so that they lead to pages of the site. A link to any other file of the repository stays as it is, and fails the build.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

REPOSITORY = Path(__file__).parents[2]
PAGES = {
    "README.md": "introduction.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
    "examples/family/README.md": "example-family.md",
    "tests/parity/data/README.md": "recording-format.md",
}
"""A file of the repository, and the page that it becomes."""
LINK = re.compile(r"(\]\()([^)\s#]+)(#[\w-]+)?(\))")


def on_files(files: Any, config: Any) -> Any:
    """Add the pages."""
    for source, page in PAGES.items():
        files.append(File.generated(config, page, content=(REPOSITORY / source).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Turn the links of a page."""
    sources = {target: source for source, target in PAGES.items()}
    home = sources.get(page.file.src_uri, f"docs/{page.file.src_uri}")

    def turned(match: re.Match[str]) -> str:
        before, link, anchor, after = match.groups()
        if "://" in link:
            return match.group()
        meant = posixpath.normpath(posixpath.join(posixpath.dirname(home), link))
        target = PAGES.get(meant, meant.removeprefix("docs/") if meant.startswith("docs/") else "")
        if not target:
            return match.group()
        here = posixpath.relpath(target, posixpath.dirname(page.file.src_uri) or ".")
        return f"{before}{here}{anchor or ''}{after}"

    return LINK.sub(turned, markdown)
