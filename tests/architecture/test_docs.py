"""What the documentation names exists: files, functions, decision records and the form of the records."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tests.support.sources import at_least

REPOSITORY = Path(__file__).parents[2]
SOURCE = REPOSITORY / "src" / "fairlead"
DOCS = REPOSITORY / "docs"
INDEX = DOCS / "decisions" / "README.md"
RECORDS = at_least(70, sorted((DOCS / "decisions").glob("[0-9]*.md")))
OTHERS = [REPOSITORY / name for name in ("CONTRIBUTING.md", "README.md", "CHANGELOG.md", "SECURITY.md")]
PAGES = at_least(30, [*OTHERS, INDEX, *sorted(DOCS.glob("*.md"))])
FORM = ["Problem", "Alternatives", "Choice", "Consequences"]
WALKS = {
    "A pod of a kube profile": ("core", "kube", "cluster", "runtime"),
    "A Volcano Job": ("core", "volcano"),
    "A pod with Koordinator's quota and a shared GPU": ("core", "koordinator"),
}
"""Walks through the code, each with the directories that it stays in: one family and the core; the first one also
shows how an object gets to the scheduler and back."""
QUESTIONS = 9
"""Walks through the code that docs/architecture.md promises."""


@cache
def defined(path: Path) -> frozenset[str]:
    """Functions and classes of a module, methods as `Class.method`."""
    names = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            inside = (one for one in node.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef))
            names |= {f"{node.name}.{method.name}" for method in inside}
    return frozenset(names)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_functions_that_a_page_names_exist(page: Path) -> None:
    for file, name in re.findall(r"`([\w/]+\.py)::([\w.]+)`", page.read_text(encoding="utf-8")):
        assert name in defined(SOURCE / file), f"{page.name} names {file}::{name}"


@pytest.mark.parametrize("page", [*PAGES, *RECORDS], ids=lambda page: page.name)
def test_files_that_a_page_names_exist(page: Path) -> None:
    named = re.findall(r"`((?:[\w.]+/)+\w+\.(?:py|md|sh|json\.gz))(?:::[\w.]+)?`", page.read_text(encoding="utf-8"))
    missing = [file for file in named if not any((at / file).exists() for at in (SOURCE, REPOSITORY, DOCS))]
    assert not missing


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.name)
def test_modules_that_a_record_names_exist(record: Path) -> None:
    """Also those that are named without their directory."""
    named = re.findall(r"`(\w+\.py)`", record.read_text(encoding="utf-8"))
    assert not [name for name in named if not any((*SOURCE.rglob(name), *REPOSITORY.glob(f"tools/**/{name}")))]


@pytest.mark.parametrize("page", [*PAGES, *RECORDS], ids=lambda page: page.name)
def test_links_of_a_page_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)(?:#[\w-]+)?\)", page.read_text(encoding="utf-8"))
    missing = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    assert not missing


def anchors(page: Path) -> set[str]:
    """What links may name in a page, as GitHub and mkdocs derive it from headings."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower()) for heading in headings}


@pytest.mark.parametrize("page", [*PAGES, *RECORDS], ids=lambda page: page.name)
def test_anchors_of_links_are_headings(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]*\.md)?#([\w-]+)\)", page.read_text(encoding="utf-8"))
    missing = [anchor for link, anchor in links if anchor not in anchors(page.parent / link if link else page)]
    assert not missing


def test_the_site_has_every_page() -> None:
    site = (REPOSITORY / "mkdocs.yml").read_text(encoding="utf-8")
    missing = [page.name for page in DOCS.glob("*.md") if f": {page.name}\n" not in site]
    assert not missing, "name the page under nav in mkdocs.yml"


def test_every_walk_names_a_function() -> None:
    text = (DOCS / "architecture.md").read_text(encoding="utf-8")
    walks = [line for line in text.splitlines() if re.match(r"\| (where|what) .*\?", line)]
    assert len(walks) == QUESTIONS
    assert all("::" in walk for walk in walks)


def test_the_table_of_directories_has_all_of_the_tree() -> None:
    text = (DOCS / "architecture.md").read_text(encoding="utf-8")
    packages = at_least(15, [one.parent.name for one in SOURCE.glob("*/__init__.py")])
    assert not [name for name in (*packages, "papers") if not re.search(rf"^\| `{name}/`", text, re.MULTILINE)]


@pytest.mark.parametrize("walk", WALKS)
def test_a_walk_stays_in_one_family_and_the_core(walk: str) -> None:
    text = (DOCS / "architecture.md").read_text(encoding="utf-8")
    steps = text.partition(f"\n### {walk}\n")[2].partition("\n##")[0]
    named = re.findall(r"`(\w+)/[\w/]+\.py(?:::[\w.]+)?`", steps)
    assert len(named) >= 10
    assert set(named) <= set(WALKS[walk])


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.stem)
def test_decision_records_have_one_form_and_are_in_the_index(record: Path) -> None:
    text = record.read_text(encoding="utf-8")
    number = record.name[:4]
    assert text.startswith(f"# {number} ")
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == FORM
    assert f"- [{number}]({record.name}) " in INDEX.read_text(encoding="utf-8")


def test_the_map_of_the_documentation_leads_to_every_page() -> None:
    text = (DOCS / "README.md").read_text(encoding="utf-8")
    missing = [page.name for page in DOCS.glob("*.md") if f"]({page.name}" not in text and page.name != "README.md"]
    assert not missing, "name the page under one of the readers in docs/README.md"


def test_readme_is_short() -> None:
    """So that a newcomer reads it to the end."""
    assert len((REPOSITORY / "README.md").read_text(encoding="utf-8").splitlines()) <= 200
