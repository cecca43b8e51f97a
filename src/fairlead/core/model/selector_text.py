"""Label selectors as users type them: `tier in (web,api),!legacy,env!=dev,gen>3`.

The grammar, its oddities (`x in (,a)` has an empty value, `in` may be a key) and the error texts are the original's,
because they are shown to the author of a wrong selector. Text and document forms of the same selector are equal.
"""

from __future__ import annotations

import re
from functools import lru_cache

from fairlead.core.model.requirements import LabelSelector, Op, Requirement, SelectorError, conjunction, requirement
from fairlead.core.model.syntax import label_key_complaints, quoted

_TOKEN = re.compile(r"[ \t\r\n]*(?:(==|!=|[=!(),<>])|([^=!(),<> \t\r\n]+))")
_SYMBOL, _WORD, _END = "symbol", "word", "end"
_OPERATORS = {
    "in": Op.IN, "=": Op.IN, "==": Op.IN, "notin": Op.NOT_IN, "!=": Op.NOT_IN, ">": Op.GT, "<": Op.LT
}  # fmt: skip


@lru_cache(maxsize=1024)
def parse_label_selector(text: str) -> LabelSelector:
    """The selector that a text denotes; the empty text selects everything. Raises SelectorError."""
    return conjunction(_Parser(text).requirements())


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens = [
            (_SYMBOL, found[1]) if found[1] else (_WORD, found[2]) for found in _TOKEN.finditer(text.rstrip(" \t\r\n"))
        ]
        self._tokens.append((_END, ""))
        self._at = 0

    def requirements(self) -> list[Requirement]:
        found: list[Requirement] = []
        while True:
            token = self._peek()
            if token[0] == _END:
                return found
            if not _begins_requirement(token):
                raise SelectorError(f"found '{token[1]}', expected: !, identifier, or 'end of string'")
            try:
                found.append(self._requirement())
            except SelectorError as error:
                raise SelectorError(f"unable to parse requirement: {error}") from None
            self._separator()

    def _separator(self) -> None:
        kind, text = self._take()
        if kind == _END:
            self._at -= 1
        elif text != ",":
            raise SelectorError(f"found '{text}', expected: ',' or 'end of string'")
        elif not _begins_requirement(self._peek()):
            raise SelectorError(f"found '{self._peek()[1]}', expected: identifier after ','")

    def _requirement(self) -> Requirement:
        kind, key = self._take()
        negated = (kind, key) == (_SYMBOL, "!")
        if negated:
            kind, key = self._take()
        if kind != _WORD:
            raise SelectorError(f"found '{key}', expected: identifier")
        if wrong := label_key_complaints(key):
            raise SelectorError(f"<nil>: Invalid value: {quoted(key)}: {'; '.join(wrong)}")
        if negated:
            return requirement(key, Op.DOES_NOT_EXIST, ())
        if self._peek()[0] == _END or self._peek()[1] == ",":
            return requirement(key, Op.EXISTS, ())
        operator = self._take()[1]
        if operator not in _OPERATORS:
            raise SelectorError(f"found '{operator}', expected: in, notin, =, ==, !=, gt, lt")
        values = self._value_list() if operator in ("in", "notin") else [self._single_value()]
        return requirement(key, _OPERATORS[operator], sorted(set(values)))

    def _single_value(self) -> str:
        if self._peek()[0] == _END or self._peek()[1] == ",":
            return ""
        kind, text = self._take()
        if kind != _WORD:
            raise SelectorError(f"found '{text}', expected: identifier")
        return text

    def _value_list(self) -> list[str]:
        """Values in parentheses; what stands between two commas, even nothing, is a value."""
        kind, text = self._take()
        if text != "(":
            raise SelectorError(f"found '{text}' expected: '('")
        kind, text = self._peek()
        if kind != _WORD and text not in (",", ")"):
            raise SelectorError(f"found '{text}', expected: ',', ')' or identifier")
        values = [""]
        after_word = False
        while True:
            kind, text = self._take()
            if text == ")":
                return values
            if text == ",":
                values.append("")
                after_word = False
            elif kind == _WORD and not after_word:
                values[-1] = text
                after_word = True
            else:
                expected = "',' or ')'" if after_word else "',', or identifier"
                raise SelectorError(f"found '{text}', expected: {expected}")

    def _peek(self) -> tuple[str, str]:
        return self._tokens[self._at]

    def _take(self) -> tuple[str, str]:
        token = self._tokens[self._at]
        self._at += 1
        return token


def _begins_requirement(token: tuple[str, str]) -> bool:
    return token[0] == _WORD or token == (_SYMBOL, "!")
