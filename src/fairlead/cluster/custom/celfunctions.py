"""The functions that Kubernetes adds to the expression language, in terms of strings, numbers and lists.

Quantities, addresses and networks are their canonical texts here, so that equality means what it should; the
functions that the original has on its types are functions of these texts. `indexOf` of lists is missing: the library
has the name for strings and lets nobody add to it.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from fairlead.cluster.store.quantities import NotAQuantity, amount, canonical

if TYPE_CHECKING:
    from cel_expr_python import cel

Overload = tuple[str, str, tuple[str, ...], Callable[..., Any]]
"""Name, result, parameters (the first is the receiver unless the name begins with a dot), and what it does."""


def _spelled(value: Fraction) -> str:
    """One spelling for equal amounts, whatever suffix they came with."""
    return canonical(f"{int(value * 10**9)}n")


def _is_quantity(text: str) -> bool:
    try:
        canonical(text)
    except NotAQuantity:
        return False
    return True


def _sorted(items: Sequence[Any]) -> bool:
    return all(first <= second for first, second in pairwise(items))


def _compare(first: str, second: str) -> int:
    left, right = amount(first), amount(second)
    return (left > right) - (left < right)


def _is_url(text: str) -> bool:
    parts = urlsplit(text)
    return bool(parts.scheme and (parts.netloc or parts.path.startswith("/"))) or text.startswith("/")


def _parses(parse: Callable[[str], object]) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        try:
            parse(text)
        except ValueError:
            return False
        return True

    return check


def _find(text: str, pattern: str) -> str:
    found = re.search(pattern, text)
    return found.group(0) if found else ""


def _find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    found = [match.group(0) for match in re.finditer(pattern, text)]
    return found if limit < 0 else found[:limit]


FUNCTIONS: tuple[Overload, ...] = (
    ("isSorted", "bool", ("list",), _sorted),
    ("sum", "dyn", ("list",), lambda items: sum(items) if items else 0),
    ("min", "dyn", ("list",), min),
    ("max", "dyn", ("list",), max),
    ("find", "string", ("string", "string"), _find),
    ("findAll", "list", ("string", "string"), _find_all),
    ("findAll", "list", ("string", "string", "int"), _find_all),
    (".isQuantity", "bool", ("string",), _is_quantity),
    (".quantity", "string", ("string",), lambda text: _spelled(amount(text))),
    ("isLessThan", "bool", ("string", "string"), lambda a, b: amount(a) < amount(b)),
    ("isGreaterThan", "bool", ("string", "string"), lambda a, b: amount(a) > amount(b)),
    ("compareTo", "int", ("string", "string"), _compare),
    ("sign", "int", ("string",), lambda a: _compare(a, "0")),
    ("isInteger", "bool", ("string",), lambda a: amount(a) % 1 == 0),
    ("asInteger", "int", ("string",), lambda a: int(amount(a))),
    ("asApproximateFloat", "double", ("string",), lambda a: float(amount(a))),
    ("add", "string", ("string", "string"), lambda a, b: _spelled(amount(a) + amount(b))),
    ("sub", "string", ("string", "string"), lambda a, b: _spelled(amount(a) - amount(b))),
    (".isURL", "bool", ("string",), _is_url),
    (".url", "string", ("string",), lambda text: text),
    ("getScheme", "string", ("string",), lambda text: urlsplit(text).scheme),
    ("getHost", "string", ("string",), lambda text: urlsplit(text).netloc),
    ("getHostname", "string", ("string",), lambda text: urlsplit(text).hostname or ""),
    ("getPort", "string", ("string",), lambda text: str(urlsplit(text).port or "")),
    ("getEscapedPath", "string", ("string",), lambda text: urlsplit(text).path),
    (".isIP", "bool", ("string",), _parses(ipaddress.ip_address)),
    (".ip", "string", ("string",), lambda text: str(ipaddress.ip_address(text))),
    ("family", "int", ("string",), lambda text: ipaddress.ip_address(text).version),
    ("isLoopback", "bool", ("string",), lambda text: ipaddress.ip_address(text).is_loopback),
    ("isUnspecified", "bool", ("string",), lambda text: ipaddress.ip_address(text).is_unspecified),
    (".isCIDR", "bool", ("string",), _parses(lambda text: ipaddress.ip_network(text, strict=False))),
    (".cidr", "string", ("string",), lambda text: str(ipaddress.ip_network(text, strict=False))),
    ("containsIP", "bool", ("string", "string"),
     lambda net, address: ipaddress.ip_address(address) in ipaddress.ip_network(net, strict=False)),
    ("prefixLength", "int", ("string",), lambda net: ipaddress.ip_network(net, strict=False).prefixlen),
)  # fmt: skip


def declarations(language: Any) -> list[cel.FunctionDecl]:
    """The functions as the expression library wants them."""
    types = {
        "bool": language.Type.BOOL, "int": language.Type.INT, "double": language.Type.DOUBLE,
        "string": language.Type.STRING, "dyn": language.Type.DYN, "list": language.Type.List(language.Type.DYN),
    }  # fmt: skip
    overloads: dict[str, list[Any]] = {}
    for name, result, parameters, function in FUNCTIONS:
        bare = name.removeprefix(".")
        overload = language.Overload(
            f"k8s_{bare}_{'_'.join(parameters)}", return_type=types[result],
            parameters=[types[one] for one in parameters], is_member=bare == name, impl=function,
        )  # fmt: skip
        overloads.setdefault(bare, []).append(overload)
    return [language.FunctionDecl(name, found) for name, found in overloads.items()]
