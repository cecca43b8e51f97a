"""Words that a newcomer would have to learn do not come back, and help says what a command does.

Machines emit, log, notify, request, count and delete: a sentence in which one tells, hears or wishes leaves open which
of these it is. Each word below has a plain one, so a failure says what to write instead. Text that follows an original
to the letter has its file in EXCEPTIONS, with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from fairlead.cli.main import COMMANDS, cli
from tests.support.sources import all_sources, at_least, defined_names

REPOSITORY = Path(__file__).parents[2]
DEFINED_TEST = re.compile(r"^\s*(?:async )?(?:def|class) ([Tt]est\w*)", re.MULTILINE)

PLAIN = {
    r"manners?": "profile, or scheduling mode where the concept is meant",
    r"whoever|whomever|nobody in particular": "name what acts: the caller, the plugin, the client",
    r"tells?|telling|told|untold": "emit, log, notify, show, write; distinguish",
    r"hears?|heard|hearing|unheard": "receive, get, be called with, count",
    r"wish|wishes|wished|wishing": "request, demand, preference; want",
    r"lends?|lent|lending": "share, offer",
    r"minds?|minded": "matter",
    r"shelf|shelves|keepers?|farewell|doomed": "index, writer, last state, being deleted",
    r"less than nothing": "must not be negative",
    r"whom (?:it|they) would cost": "which pods would be evicted",
    r"none of [\w' ]+ business|business of": "ignored by",
    r"(?:did not|never|how [\w ]+) come about|came about": "condition not met",
    r"too dear": "costs more than the limit",
    r"asked for too often": "local alias: enum member access is slow",
    r"goes with nothing else": "cannot be combined with other names",
}
"""A pattern of words, in any case, and what to write instead."""

NAMES = re.compile(r"(?:[a-z0-9]|^|_)(?:Shelf|Book|Keeper|Wish(?:es)?)(?:$|[A-Z])|^_?(?:tell|send_away|tend)$")
"""Names of classes and functions in CamelCase, or whole names, that PLAIN does not see."""

EXCEPTIONS = {
    "README.md": "output of `fairlead quota explain`, in Koordinator's word",
    "docs/koordinator.md": "Koordinator's word: allow-lent-resource",
    "src/fairlead/koordinator/quotas": "Koordinator's word: allow-lent-resource",
    "src/fairlead/koordinator/records/quotas.py": "Koordinator's word: allow-lent-resource",
}
"""Where the pattern of lending may stand, and why."""
LENDING = r"lends?|lent|lending"


def places_of(text: str, pattern: str) -> Iterator[tuple[int, str]]:
    for found in re.finditer(rf"(?<![\w-])(?:{pattern})(?![\w-])", text, re.IGNORECASE):
        yield text.count("\n", 0, found.start()) + 1, found.group()


def complaints(name: str, text: str) -> list[str]:
    """What the text of a file says in words of which each has a plain one."""
    return [
        f"{name}:{line}: {word!r}: {instead}"
        for pattern, instead in PLAIN.items()
        if not (pattern == LENDING and name.startswith(tuple(EXCEPTIONS)))
        for line, word in places_of(text, pattern)
    ]


def spoken(name: str) -> str:
    """The words of a name: `test_told_twice` and `toldTwice` alike."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name).replace("_", " ")


def test_words_are_found_and_others_are_not() -> None:
    text = "In Volcano's manner\nwhoever asks is told; untouched, behold, wishbone, volcano-tell-x"
    assert [one.split(": ")[:2] for one in complaints("a.py", text)] == [
        ["a.py:1", "'manner'"],
        ["a.py:2", "'whoever'"],
        ["a.py:2", "'told'"],
    ]
    assert spoken("test_toldTwice_again") == "test told Twice again"
    assert all(map(NAMES.search, ("GangBook", "DeviceWish", "BookRules", "Shelf", "_tell")))
    assert not any(map(NAMES.search, ("Bookmark", "Notebook", "asked_for", "tell_apart", "Workbook")))


def test_sources_use_plain_words() -> None:
    found = [one for source in all_sources() for one in complaints(f"src/fairlead/{source.name}", source.text)]
    assert not found, "\n".join(found)


def test_names_in_sources_use_plain_words() -> None:
    found = [
        f"{source.name}:{line}: {name}"
        for source in all_sources()
        for name, line in defined_names(source)
        if NAMES.search(name) or complaints(f"src/fairlead/{source.name}", spoken(name))
    ]
    assert not found, "\n".join(found)


def test_documentation_uses_plain_words() -> None:
    pages = [*REPOSITORY.glob("*.md"), *REPOSITORY.glob("docs/**/*.md"), *REPOSITORY.glob("examples/**/*.md")]
    pages += [REPOSITORY / "mkdocs.yml", REPOSITORY / "Makefile", *REPOSITORY.glob("deploy/**/*.yaml")]
    found = []
    for page in at_least(90, pages):
        name = page.relative_to(REPOSITORY).as_posix()
        found += complaints(name, page.read_text(encoding="utf-8"))
    assert not found, "\n".join(found)


def test_names_of_tests_use_plain_words() -> None:
    files = at_least(430, sorted((REPOSITORY / "tests").rglob("*.py")))
    found = []
    for file in files:
        for name in re.findall(
            r"^\s*(?:async )?(?:def|class) ([Tt]est\w*)", file.read_text(encoding="utf-8"), re.MULTILINE
        ):
            found += complaints(file.name, spoken(name))
    assert not found, "\n".join(found)


# ---- help ----

NO_VERBS = re.compile(
    r"(a|an|the|this|that|these|all|any|each|one|two|some|it|its|there|what|who|which|where|when|how|why|whether|of|on|in"
    r"|for|with|if|no|not|\w+ing|\w+ed|\w+s)$",
    re.IGNORECASE,
)
"""What an imperative does not look like: articles, questions, participles, plurals and third persons."""
AS_THE_ORIGINAL = ("vcctl",)
"""Commands whose help is the original's, to the letter."""


def commands(command: click.Command, context: click.Context, path: str) -> Iterator[tuple[str, str]]:
    yield path, (command.help or "").strip()
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from commands(inner, click.Context(inner, parent=context, info_name=name), f"{path} {name}")


def every_command() -> list[tuple[str, str]]:
    return list(commands(cli, click.Context(cli, info_name="fairlead"), "fairlead"))


@pytest.mark.parametrize(("path", "text"), every_command())
def test_help_begins_with_a_verb(path: str, text: str) -> None:
    first = text.split()[0] if text else ""
    assert first[:1].isupper(), f"{path} has no help"
    assert not NO_VERBS.match(first.rstrip(":,.")), f"{path}: {text.splitlines()[0]}"


def test_the_list_of_commands_begins_each_line_with_a_verb() -> None:
    assert not [entry.help for entry in COMMANDS.values() if NO_VERBS.match(entry.help.split()[0].rstrip(":,."))]
