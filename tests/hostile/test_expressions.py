"""Expressions that would produce or compare more than there is memory or time for: each ends as too dear."""

from __future__ import annotations

import pytest

from fairlead.cel.program import Program
from fairlead.cel.steps import CostExceeded, Steps

MANY = list(range(50_000))
LONG = "a" * 1_000_000


@pytest.mark.parametrize(
    "expression",
    [
        "self.text.replace('', self.text).size() > 0",
        "self.many.map(x, self.text).join().size() > 0",
        "self.many.map(x, self.many + self.many).size() > 0",
        "'%s'.format([self.many.map(x, self.text)]).size() > 0",
        "self.many.map(x, self.text.upperAscii()).size() > 0",
        "self.many.all(x, {'a': self.many} == {'a': self.many})",
        "self.many.all(x, x in self.many)",
        "self.many.all(x, [self.many] == [self.many])",
        "self.many.distinct().size() > 0",
        "self.many.sort().size() > 0",
        "self.many.all(x, self.many.all(y, x + y >= 0)) || true",
        "lists.range(1000000000000).size() > 0",
        "self.many.exists(x, self.many.all(y, y >= 0) && false) || true",
    ],
)
def test_an_expression_ends(expression: str) -> None:
    with pytest.raises(CostExceeded):
        Program(expression, frozenset({"self"}))({"self": {"many": MANY, "text": LONG}}, Steps())
