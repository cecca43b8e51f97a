"""The code blocks of README and docs/, and what is done with each: run, applied, or left alone for a reason beside it.

A block is fenced and names its language. What a block of each language is for:

| language | what a test does with it |
|---|---|
| `python` | runs it, in the page's namespace; its tests are called, with a `cluster` if they ask for one |
| `yaml` | applies its objects to a cluster, or loads it as a configuration |
| `json` | reads it |
| `bash`, `console` | runs its commands in the page's shell; in `console` they follow a `$`, with what they print |
| `text` | nothing: a diagram, a form of output, a request |

A block whose first line is a comment with a file's name is also written to that file, where commands find it. Comments
of the page, which readers do not see, add to the block after them:

    <!-- not run: REASON -->            it cannot run here, and why
    <!-- exit code: 3 -->               what its last command ends with, if not 0
    <!-- setup: COMMAND -->             what its commands need and readers would have; may have several lines
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
PAGES = [
    REPOSITORY / "README.md",
    REPOSITORY / "CONTRIBUTING.md",
    *sorted((REPOSITORY / "docs").glob("*.md")),
    *sorted((REPOSITORY / "docs" / "reference").glob("*.md")),
]
LANGUAGES = ("python", "yaml", "json", "bash", "console", "text")
COMMANDS = ("bash", "console")
_FENCE = re.compile(r"^(?P<indent> *)(`{3,})(?P<language>\S*) *$")
_COMMENT = re.compile(r"<!-- (not run|exit code|setup): (.*?) ?-->", re.DOTALL)
_FILE = re.compile(r"# (?P<name>[\w./-]+\.(?:py|ya?ml|conf))$")


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block. `reason` is why it is not run, `code` the exit code of its last command."""

    page: Path
    line: int
    language: str
    text: str
    reason: str = ""
    code: int = 0
    setup: tuple[str, ...] = ()
    marks: int = 0
    """How many comments were about it."""

    @property
    def title(self) -> str:
        return f"{self.page.relative_to(REPOSITORY)}:{self.line}"

    @property
    def file(self) -> str:
        """The file that it is, if its first line says so."""
        first = _FILE.match(self.text.partition("\n")[0])
        return first["name"] if first else ""

    @property
    def runs(self) -> bool:
        return not self.reason and self.language != "text"

    def commands(self) -> list[tuple[str, str | None]]:
        """Each command and what it shall print; None if the block does not show it."""
        if self.language == "bash":
            return [(command, None) for command in _joined(self.text.splitlines())]
        found: list[tuple[str, str]] = []
        for line in self.text.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], ""))
            else:
                assert found, f"{self.title}: a console block begins with a command after a $"
                found[-1] = (found[-1][0], found[-1][1] + line + "\n")
        return list(found)


def blocks_of(page: Path) -> list[Block]:
    """All fenced blocks of a page."""
    lines = page.read_text(encoding="utf-8").splitlines()
    found: list[Block] = []
    at = after = 0
    while at < len(lines):
        fence = _FENCE.match(lines[at])
        if fence is None:
            at += 1
            continue
        end = next(row for row in range(at + 1, len(lines)) if lines[row].strip() == fence[2])
        indent = len(fence["indent"])
        text = "\n".join(line[indent:] for line in lines[at + 1 : end])
        marks = _marks(lines[after:at])
        setup = tuple(command for key, value in marks if key == "setup" for command in _joined(value.splitlines()))
        said = dict(marks)
        found.append(
            Block(
                page,
                at + 1,
                fence["language"],
                text,
                reason=said.get("not run", ""),
                code=int(said.get("exit code", "0")),
                setup=setup,
                marks=len(marks),
            )
        )
        at = after = end + 1
    return found


def _marks(lines: list[str]) -> list[tuple[str, str]]:
    """The comments that stand directly before a block, blank lines aside."""
    text = "\n".join(lines).rstrip()
    marks: list[tuple[str, str]] = []
    while text.endswith("-->"):
        comment = _COMMENT.fullmatch(text[text.rindex("<!--") :])
        if comment is None:
            break
        marks.insert(0, (comment[1], comment[2]))
        text = text[: text.rindex("<!--")].rstrip()
    return marks


def _joined(lines: list[str]) -> list[str]:
    """Commands, without comments and with continued lines joined."""
    commands: list[str] = []
    begun = ""
    for line in lines:
        text = re.sub(r"(^|\s+)# .*$", "", line).rstrip()
        if text.endswith("\\"):
            begun += text[:-1]
        elif begun + text:
            commands.append((begun + text).strip())
            begun = ""
    return [command for command in commands if command]


def stray_marks(page: Path) -> int:
    """How many comments are meant for a block and do not stand before one, so that nobody would heed them."""
    text = page.read_text(encoding="utf-8")
    return len(re.findall(r"<!-- *(?:not run|exit code|setup)\b", text)) - sum(block.marks for block in blocks_of(page))


def indented_blocks(page: Path) -> list[int]:
    """Lines that begin a block by indentation alone, which has no language and would be skipped."""
    found, fenced, blank, listed = [], False, True, False
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), start=1):
        if _FENCE.match(line):
            fenced = not fenced
        elif not fenced:
            if re.match(r" *([-*]|\d+\.) ", line):
                listed = True
            elif line and not line.startswith(" "):
                listed = False
            if line.startswith("    ") and blank and not listed:
                found.append(number)
            blank = not line.strip()
    return found


def matches(shown: str, printed: str) -> bool:
    """Whether an output is the one shown: `...` stands for anything in a line, and alone for any number of lines. How
    many spaces there are, and blank lines around, do not count. Nothing is compared if nothing is shown."""
    pattern = ""
    for line in shown.strip().splitlines():
        if line.strip() == "...":
            pattern += r"(?:[^\n]*\n)*?"
        else:
            pattern += r"[^\n]*?".join(map(re.escape, " ".join(line.split()).split("..."))) + "\n"
    said = "".join(" ".join(line.split()) + "\n" for line in printed.strip().splitlines())
    return re.fullmatch(pattern, said) is not None if shown.strip() else True
