"""Selectors of devices: the core's port, implemented with the expression language.

An expression sees one variable, `device`. Names of attributes and capacities without a domain are the driver's.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from fairlead.cel.checking import Checked
from fairlead.cel.cost import CostEstimate
from fairlead.cel.environment import DEVICES
from fairlead.cel.literals import literal_faults, program_fault
from fairlead.cel.loops import written_out
from fairlead.cel.program import CompileFault, Program, located
from fairlead.cel.steps import PER_CALL, CostExceeded, Steps
from fairlead.cel.syntax import SyntaxFault, parse
from fairlead.cel.types import ANY, BOOL
from fairlead.cel.values import CelError, DefaultMap, parse_version, type_name
from fairlead.core.model.devices import OutOfSelectorSteps, SelectorFailed, SelectorInvalid

if TYPE_CHECKING:
    from fairlead.core.model.devices import Device, SelectorSteps

MAX_LENGTH = 10 * 1024
_VARIABLES = frozenset({"device"})
_NATIVE = frozenset({"string"})
"""Types whose conversion cel-go refuses in other words than that of the rest."""


class DeviceSelector:
    """A compiled expression about a device."""

    def __init__(self, expression: str) -> None:
        if len(expression.encode()) > MAX_LENGTH:
            raise SelectorInvalid(f"Too long: may not be more than {MAX_LENGTH} bytes")
        try:
            self._program = Program(expression, _VARIABLES)
        except CompileFault as fault:
            raise SelectorInvalid(str(fault)) from None
        if said := selector_fault(expression):
            raise SelectorInvalid(said)

    def __call__(self, device: Device, steps: SelectorSteps) -> bool:
        allowed = min(PER_CALL, steps.left)
        own = Steps(allowed)
        try:
            value = self._program({"device": _seen(device.kind, device)}, own)
        except CelError as error:
            raise SelectorFailed(str(error)) from None
        except CostExceeded as error:
            if allowed < PER_CALL:
                raise OutOfSelectorSteps from None
            raise SelectorFailed(str(error)) from None
        finally:
            steps.left -= allowed - max(0, own.left)
        if isinstance(value, bool):
            return value
        kind = type_name(value)
        detail = f"unsupported type conversion from '{kind}' to bool"
        if kind in _NATIVE:
            detail = f"unsupported native conversion from {kind} to 'bool'"
        raise SelectorFailed(f"CEL result of type {kind} could not be converted to bool: {detail}")


def _checked(expression: str) -> Checked:
    return Checked(written_out(parse(expression), bindings=True), DEVICES)


@lru_cache(maxsize=1024)
def selector_fault(expression: str) -> str:
    """Why the API server does not compile a selector; empty if it does. Types are checked, as far as they are known
    before an expression runs."""
    try:
        checked = _checked(expression)
    except SyntaxFault as fault:
        return f"compilation failed: {located(expression, [(str(fault), fault.at)])}"
    except RecursionError:
        return "compilation failed: the expression is nested too deeply"
    if faults := checked.faults or literal_faults(checked):
        return f"compilation failed: {located(expression, faults)}"
    kind = checked.type_of(checked.tree)
    if kind not in (BOOL, ANY):
        return f"must evaluate to bool or the unknown type, not {kind.full_name}"
    return ""


@lru_cache(maxsize=1024)
def selector_program_fault(expression: str) -> str:
    """Why the API server cannot build the program of a selector that compiles; empty if it can."""
    return program_fault(_checked(expression))


@lru_cache(maxsize=1024)
def is_too_complex(expression: str) -> bool:
    """Whether the estimated cost of a selector that compiles is above what the API server allows."""
    return CostEstimate(_checked(expression)).most > PER_CALL


@lru_cache(maxsize=1024)
def compile_selector(expression: str) -> DeviceSelector:
    """The Selector of an expression; raises SelectorInvalid."""
    return DeviceSelector(expression)


class _Views(dict[Hashable, dict[str, Any]]):
    """Devices as expressions see them, by what they can see."""


_views = _Views()
_LIMIT = 4096


def _seen(kind: Hashable, device: Device) -> dict[str, Any]:
    view = _views.get(kind)
    if view is None:
        if len(_views) >= _LIMIT:
            _views.clear()
        view = _views[kind] = {
            "driver": device.id.driver,
            "attributes": _by_domain(device, {name: _value(*value) for name, value in device.attributes.items()}),
            "capacity": _by_domain(device, {name: amount.value for name, amount in device.capacity.items()}),
            "allowMultipleAllocations": device.shared,
        }
    return view


def _value(kind: str, value: Any) -> Any:
    if kind == "version":
        return parse_version(value)
    if not kind:
        raise CelError("unsupported attribute value")
    return value


def _by_domain(device: Device, values: dict[str, Any]) -> DefaultMap:
    found = DefaultMap()
    for name, value in values.items():
        domain, slash, bare = name.partition("/")
        if not slash:
            domain, bare = device.id.driver, name
        found.setdefault(domain, {})[bare] = value
    return found
