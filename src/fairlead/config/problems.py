"""ConfigProblems: the errors of a configuration file, with place, text and suggestion.

Every check appends to one Problems list instead of raising, so that a file is reported whole. A problem keeps the
original's words apart from ours: `message` stands next to file, line and path of the field, `original` is what
kube-scheduler itself prints for it, which tools that read logs rely on.

Invariant: `Problems.raise_if_any` raises if and only if something was noted.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING

from fairlead.core.model.syntax import joined
from fairlead.errors import ConfigError

if TYPE_CHECKING:
    from fairlead.config.source import Source

Path = tuple[str | int, ...]


class CheckStage(IntEnum):
    """When kube-scheduler finds a problem. It stops after the first stage with problems; we report all stages."""

    SYNTAX = 0
    TYPES = 1
    STRICT = 2
    VALIDATION = 3
    BUILDING = 4


def dotted(path: Path) -> str:
    """`("profiles", 0, "plugins")` as `profiles[0].plugins`."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            text += f".{step}" if text else step
    return text


class ConfigErrors(ConfigError):
    """All that is wrong with one file; as text, one problem per line."""

    def __init__(self, problems: Sequence[ConfigError], original: str) -> None:
        first = problems[0]
        super().__init__(first.message, file=first.file, path=first.path, line=first.line, hint=first.hint)
        self.problems = tuple(problems)
        self.original = original
        """The words of kube-scheduler for the same file; empty where it would accept it."""

    def __str__(self) -> str:
        return "\n".join(str(problem) for problem in self.problems)


class ConfigProblems:
    """The problems found so far in one source."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._found: list[tuple[CheckStage, Path, ConfigError, str]] = []

    def note(
        self,
        stage: CheckStage,
        path: Path,
        message: str,
        *,
        hint: str = "",
        line: int | None = None,
        original: str | None = None,
    ) -> None:
        """Without `original`, the original's words are the path and the message; the empty string means that it says
        nothing here, or that an earlier problem already carries its words."""
        where = dotted(path)
        error = ConfigError(
            message, file=self._source.file, path=where, line=line or self._source.line(path), hint=hint
        )
        if original is None:
            original = f"{where}: {message}" if where else message
        self._found.append((stage, path, error, original))

    def __len__(self) -> int:
        return len(self._found)

    def errors(self) -> list[ConfigError]:
        """The problems as errors, in the order of the file, without raising them."""
        found = [error for _, _, error, _ in self._distinct()]
        return sorted(found, key=lambda error: sys.maxsize if error.line is None else error.line)

    def raise_if_any(self, *, before: CheckStage | None = None) -> None:
        """Raise with all that was noted, in the order of the file; with `before`, only if something was found in an
        earlier stage: a file with an unknown field can still be validated, one that is not a mapping cannot."""
        if any(before is None or stage < before for stage, *_ in self._found):
            raise ConfigErrors(self.errors(), self._original())

    def _distinct(self) -> Iterable[tuple[CheckStage, Path, ConfigError, str]]:
        """Without problems of building about fields that validation has refused already, and without the absence of
        a field that is there misspelt."""
        refused = [path for stage, path, _, _ in self._found if stage is CheckStage.VALIDATION]
        misspelt = {(path[:-1], error.hint) for stage, path, error, _ in self._found if stage is CheckStage.STRICT}
        for entry in self._found:
            stage, path = entry[:2]
            if stage is CheckStage.BUILDING and any(path[: len(known)] == known for known in refused):
                continue
            if stage >= CheckStage.VALIDATION and path and (path[:-1], meant(str(path[-1]))) in misspelt:
                continue
            yield entry

    def _original(self) -> str:
        first = min((stage for stage, _, _, text in self._found if text), default=CheckStage.BUILDING)
        texts = [text for stage, _, _, text in self._found if stage is first and text]
        if not texts:
            return ""
        if first is CheckStage.STRICT:
            return f"strict decoding error: {', '.join(texts)}"
        return joined(texts) if first is CheckStage.VALIDATION else texts[0]


def suggestion(word: str, known: Iterable[str]) -> str:
    """`did you mean "parallelism"?`, or nothing if no known word is near."""
    nearest = nearest_word(word, known)
    return meant(nearest) if nearest else ""


def meant(word: str) -> str:
    return f'did you mean "{word}"?'


def nearest_word(word: str, known: Iterable[str]) -> str:
    """The known word that is fewest edits away, if that is few for its length; else the shortest that begins with it;
    the empty string if there is neither."""
    words = sorted(set(known))
    ranked = sorted((_edits(word.lower(), candidate.lower()), candidate) for candidate in words)
    for edits, best in ranked[:1]:
        if edits <= max(1, max(len(word), len(best)) // 3) and edits < len(best):
            return best
    longer = [candidate for candidate in words if len(word) >= 4 and candidate.lower().startswith(word.lower())]
    return min(longer, key=len, default="")


def _edits(left: str, right: str) -> int:
    """Insertions, deletions, replacements and swaps of neighbours between two words."""
    before: list[int] = []
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, start=1):
        earlier, before, row = before, row, [i]
        for j, b in enumerate(right, start=1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == right[j - 2] and left[i - 2] == b:
                cost = min(cost, earlier[j - 2] + 1)
            row.append(cost)
    return row[-1]
