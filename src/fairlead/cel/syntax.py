"""The grammar: from the text of an expression to a tree of nodes.

The parser is a hand-written one by precedence. It knows no functions and no types; operators become calls with the
names that cel-go gives them (`_+_`, `!_`), so that everything behind it handles calls only. A node remembers where it
began, because a complaint shows the place.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from math import isinf
from typing import Any, NamedTuple

from fairlead.cel.values import Uint


class SyntaxFault(Exception):
    """The text is no expression; `at` is where that shows."""

    def __init__(self, message: str, at: int) -> None:
        super().__init__(message)
        self.at = at


@dataclass(frozen=True, slots=True)
class Expression:
    at: int


@dataclass(frozen=True, slots=True)
class Literal(Expression):
    value: Any


@dataclass(frozen=True, slots=True)
class Ident(Expression):
    name: str


@dataclass(frozen=True, slots=True)
class Select(Expression):
    """`operand.field`, or `operand.?field` if optional."""

    operand: Expression
    field: str
    optional: bool = False


@dataclass(frozen=True, slots=True)
class IndexExpression(Expression):
    """`operand[key]`, or `operand[?key]` if optional."""

    operand: Expression
    key: Expression
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Call(Expression):
    """A function of its arguments; with a target it is a method of that."""

    function: str
    target: Expression | None
    args: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class ListOf(Expression):
    items: tuple[Expression, ...]
    optional: frozenset[int] = field(default_factory=frozenset)


@dataclass(frozen=True, slots=True)
class MapOf(Expression):
    entries: tuple[tuple[Expression, Expression, bool], ...]


class Token(NamedTuple):
    kind: str
    text: str
    at: int


_TOKENS = re.compile(
    r"""
    (?P<space>[ \t\r\n\f]+|//[^\n]*)
  | (?P<float>(?:\d+\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\.\d+(?:[eE][+-]?\d+)?))
  | (?P<int>0x[0-9a-fA-F]+[uU]?|\d+[uU]?)
  | (?P<string>(?:[bB][rR]|[rR][bB]|[bB]|[rR])?(?:
        \"\"\"(?:\\.|[^\\])*?\"\"\" | \'\'\'(?:\\.|[^\\])*?\'\'\' | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*'
    ))
  | (?P<name>[_a-zA-Z][_a-zA-Z0-9]*)
  | (?P<op>\|\||&&|==|!=|<=|>=|[-+*/%<>!?:.,(){}\[\]=])
    """,
    re.VERBOSE | re.DOTALL,
)
_RESERVED = frozenset({
    "as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop", "package",
    "namespace", "return", "var", "void", "while",
})  # fmt: skip
_RELATIONS = {"<": "_<_", "<=": "_<=_", ">": "_>_", ">=": "_>=_", "==": "_==_", "!=": "_!=_", "in": "@in"}
_SUMS = {"+": "_+_", "-": "_-_"}
_PRODUCTS = {"*": "_*_", "/": "_/_", "%": "_%_"}
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|[xX]([0-9a-fA-F]{2})|([0-3][0-7]{2})|(.))", re.DOTALL)
_SIMPLE_ESCAPES = {
    "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "\\": "\\", "'": "'", '"': '"',
    "`": "`", "?": "?",
}  # fmt: skip
_MAX_INT, _MAX_UINT = 2**63, 2**64


def parse(text: str) -> Expression:
    """The tree of an expression; raises SyntaxFault."""
    return _Parser(text).whole()


def _tokens(text: str) -> list[Token]:
    found: list[Token] = []
    at = 0
    while at < len(text):
        match = _TOKENS.match(text, at)
        if match is None:
            raise SyntaxFault(f"Syntax error: token recognition error at: '{text[at]}'", at)
        kind = match.lastgroup or ""
        if kind == "float" and match.group().startswith(".") and found and _ends_operand(found[-1]):
            found.append(Token("op", ".", at))
            at += 1
            continue
        if kind != "space":
            found.append(Token(kind, match.group(), at))
        at = match.end()
    found.append(Token("end", "<EOF>", len(text)))
    return found


def _message(node: Expression) -> str:
    """The name that may stand before the fields of a message."""
    if isinstance(node, Select) and (prefix := _message(node.operand)):
        return f"{prefix}.{node.field}"
    return node.name if isinstance(node, Ident) else ""


def _ends_operand(token: Token) -> bool:
    return token.kind == "name" or (token.kind == "op" and token.text in ")]}")


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self._next = 0

    def whole(self) -> Expression:
        node = self._expression()
        if self._peek.kind != "end":
            raise self._unexpected()
        return node

    # ---- tokens ----

    @property
    def _peek(self) -> Token:
        return self._tokens[self._next]

    def _take(self) -> Token:
        token = self._tokens[self._next]
        self._next += 1
        return token

    def _taken(self, text: str) -> bool:
        token = self._peek
        if token.kind in ("op", "name") and token.text == text:
            self._next += 1
            return True
        return False

    def _expect(self, text: str) -> Token:
        token = self._peek
        if not self._taken(text):
            raise self._unexpected(f", expecting '{text}'")
        return token

    def _unexpected(self, more: str = "") -> SyntaxFault:
        token = self._peek
        return SyntaxFault(f"Syntax error: mismatched input '{token.text}'{more}", token.at)

    # ---- operators, weakest first ----

    def _expression(self) -> Expression:
        condition = self._joined("||", "_||_", self._conjunction)
        at = self._peek.at
        if self._taken("?"):
            yes = self._joined("||", "_||_", self._conjunction)
            self._expect(":")
            condition = Call(at, "_?_:_", None, (condition, yes, self._expression()))
        return condition

    def _joined(self, sign: str, function: str, part: Any) -> Expression:
        left: Expression = part()
        while self._peek.text == sign and self._peek.kind == "op":
            at = self._take().at
            left = Call(at, function, None, (left, part()))
        return left

    def _conjunction(self) -> Expression:
        return self._joined("&&", "_&&_", self._relation)

    def _binary(self, signs: dict[str, str], part: Any) -> Expression:
        left: Expression = part()
        while self._peek.kind in ("op", "name") and self._peek.text in signs:
            sign = self._take()
            left = Call(sign.at, signs[sign.text], None, (left, part()))
        return left

    def _relation(self) -> Expression:
        return self._binary(_RELATIONS, self._sum)

    def _sum(self) -> Expression:
        return self._binary(_SUMS, self._product)

    def _product(self) -> Expression:
        return self._binary(_PRODUCTS, self._unary)

    def _unary(self) -> Expression:
        token = self._peek
        if token.kind == "op" and token.text in ("!", "-"):
            count = 0
            while self._peek.kind == "op" and self._peek.text == token.text:
                self._take()
                count += 1
            if token.text == "-" and count == 1 and self._peek.kind in ("int", "float"):
                return self._members(self._number(self._take(), token.at, "-"))
            operand = self._member()
            return Call(token.at, "!_" if token.text == "!" else "-_", None, (operand,)) if count % 2 else operand
        return self._member()

    # ---- members ----

    def _member(self) -> Expression:
        return self._members(self._primary())

    def _members(self, node: Expression) -> Expression:
        while True:
            token = self._peek
            if self._taken("."):
                node = self._dotted(node, token.at)
            elif self._taken("["):
                optional = self._taken("?")
                node = IndexExpression(token.at, node, self._expression(), optional)
                self._expect("]")
            elif token.kind == "op" and token.text == "{" and (name := _message(node)):
                # No messages can be made: the name of a type has no field behind it.
                raise SyntaxFault(f"undeclared reference to '{name}' (in container '')", token.at)
            else:
                return node

    def _dotted(self, node: Expression, at: int) -> Expression:
        optional = self._taken("?")
        name = self._take()
        if name.kind != "name" or name.text in ("in", "true", "false", "null"):
            self._next -= 1
            raise self._unexpected(", expecting IDENTIFIER")
        if not optional and self._taken("("):
            return Call(self._tokens[self._next - 1].at, name.text, node, self._arguments(")"))
        return Select(at, node, name.text, optional)

    def _arguments(self, closing: str) -> tuple[Expression, ...]:
        found: list[Expression] = []
        while not self._taken(closing):
            found.append(self._expression())
            if not self._taken(","):
                self._expect(closing)
                break
        return tuple(found)

    def _primary(self) -> Expression:
        token = self._take()
        match token.kind:
            case "int" | "float":
                return self._number(token, token.at)
            case "string":
                return Literal(token.at, _unquoted(token))
            case "name":
                return self._named(token, token.text)
            case "op" if token.text == "(":
                inner = self._expression()
                self._expect(")")
                return inner
            case "op" if token.text == "-" and self._peek.kind in ("int", "float"):
                return self._number(self._take(), token.at, "-")
            case "op" if token.text == "[":
                return self._list(token.at)
            case "op" if token.text == "{":
                return self._map(token.at)
            case "op" if token.text == "." and self._peek.kind == "name":
                return self._named(token, self._take().text)
        self._next -= 1
        raise self._unexpected()

    def _named(self, token: Token, name: str) -> Expression:
        if name in ("true", "false", "null"):
            return Literal(token.at, {"true": True, "false": False, "null": None}[name])
        if name in _RESERVED:
            raise SyntaxFault(f"reserved identifier: {name}", token.at)
        if self._peek.text == "(" and self._peek.kind == "op":
            at = self._take().at
            return Call(at, name, None, self._arguments(")"))
        return Ident(token.at, name)

    def _list(self, at: int) -> Expression:
        items: list[Expression] = []
        optional: set[int] = set()
        while not self._taken("]"):
            if self._taken("?"):
                optional.add(len(items))
            items.append(self._expression())
            if not self._taken(","):
                self._expect("]")
                break
        return ListOf(at, tuple(items), frozenset(optional))

    def _map(self, at: int) -> Expression:
        entries: list[tuple[Expression, Expression, bool]] = []
        while not self._taken("}"):
            optional = self._taken("?")
            key = self._expression()
            self._expect(":")
            entries.append((key, self._expression(), optional))
            if not self._taken(","):
                self._expect("}")
                break
        return MapOf(at, tuple(entries))

    def _number(self, token: Token, at: int, sign: str = "") -> Literal:
        if token.kind == "float":
            number = float(sign + token.text)
            if isinf(number):
                raise SyntaxFault("invalid double literal", at)
            return Literal(at, number)
        unsigned = token.text[-1] in "uU"
        digits = token.text.rstrip("uU")
        value = int(sign + digits, 16 if digits.lower().startswith("0x") else 10)
        if unsigned:
            if not 0 <= value < _MAX_UINT:
                raise SyntaxFault("invalid uint literal", at)
            return Literal(at, Uint(value))
        if not -_MAX_INT <= value < _MAX_INT:
            raise SyntaxFault("invalid int literal", at)
        return Literal(at, value)


def _unquoted(token: Token) -> str | bytes:
    text = token.text
    quote = min(at for at in (text.find('"'), text.find("'")) if at >= 0)
    prefix, body = text[:quote].lower(), text[quote:]
    width = 3 if body.startswith(('"""', "'''")) and len(body) >= 6 else 1
    body = body[width:-width]
    as_bytes = "b" in prefix
    if "r" not in prefix:
        if as_bytes and any(found[1] or found[2] for found in _ESCAPE.finditer(body)):
            raise SyntaxFault("unable to unescape string", token.at)
        body = _ESCAPE.sub(lambda found: _unescaped(found, token), body)
    return body.encode("latin-1" if as_bytes and "\\" in token.text else "utf-8") if as_bytes else body


def _unescaped(found: re.Match[str], token: Token) -> str:
    for group, base in ((1, 16), (2, 16), (3, 16), (4, 8)):
        if found[group]:
            return chr(int(found[group], base))
    if found[5] not in _SIMPLE_ESCAPES:
        raise SyntaxFault(f"Syntax error: token recognition error at: '{token.text}'", token.at)
    return _SIMPLE_ESCAPES[found[5]]
