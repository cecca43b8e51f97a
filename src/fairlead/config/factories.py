"""What a configuration file may name as a factory: only what says by itself that it makes the thing.

A name in a file is looked up and called. A check of a file must not call `os:abort`, so what is called is a class of
the right kind, or a function whose annotation says that it returns one.
"""

from __future__ import annotations

import inspect
from typing import Any, get_type_hints


def makes(found: Any, wanted: type) -> bool:
    """Whether calling `found` gives a `wanted`, as far as it says itself."""
    if isinstance(found, type):
        return issubclass(found, wanted)
    if not inspect.isfunction(found):
        return False
    try:
        returned = get_type_hints(found).get("return")
    except Exception:  # whatever a user's annotation names
        returned = found.__annotations__.get("return")
    if isinstance(returned, str):  # a name that only type checkers know
        return returned.rpartition(".")[2] == wanted.__name__
    return isinstance(returned, type) and issubclass(returned, wanted)
