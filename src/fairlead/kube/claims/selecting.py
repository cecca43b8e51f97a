"""Selecting: which devices a class and a request accept, asked once per expression and kind of device."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

from fairlead.core.model.devices import (
    CompileSelector,
    OutOfSelectorSteps,
    SelectorFailed,
    SelectorInvalid,
    SelectorSteps,
)

if TYPE_CHECKING:
    from fairlead.core.model.device_claims import DeviceRequest
    from fairlead.core.model.devices import Device, DeviceClass, Selector

_LIMIT = 1 << 16
STEPS_PER_ATTEMPT = 2_000_000
"""About a second."""


class SelectorTrouble(Exception):
    """A selector that cannot be compiled or evaluated; the text ends the attempt."""


class CostsTooMuch(SelectorTrouble):
    """The selectors of one attempt cost too much: the pod waits, and what is known by then is kept."""


class Selecting:
    """Answers of selectors, kept for as long as the process lives. `begin` starts an attempt or a question, in which
    selectors that have to be evaluated may take so many steps together."""

    def __init__(self, compile_selector: CompileSelector) -> None:
        self._compile = compile_selector
        self._compiled: dict[str, Selector | SelectorInvalid] = {}
        self._known: dict[tuple[str, Hashable], bool | SelectorFailed] = {}
        self._steps = SelectorSteps(STEPS_PER_ATTEMPT)
        self.evaluations = 0

    def begin(self) -> None:
        self._steps.left = STEPS_PER_ATTEMPT

    def selects(self, device: Device, device_class: DeviceClass, request: DeviceRequest, claim: str) -> bool:
        """Whether the selectors of the class, then those of the request, all accept the device."""
        for at, expression in enumerate(device_class.selectors):
            if not self._accepts(expression, device, f"class {device_class.name}", at):
                return False
        for at, program in enumerate(request.selectors):
            if program is not None and not self._accepts(program, device, f"claim {claim}", at):
                return False
        return True

    def is_sure(self, device: Device, device_class: DeviceClass, request: DeviceRequest) -> bool:
        """Whether they come to an answer."""
        try:
            self.selects(device, device_class, request, "")
        except SelectorTrouble:
            return False
        return True

    def accepts(self, expression: str, device: Device) -> bool:
        """What one expression says of a device."""
        return self._accepts(expression, device, "", 0)

    def _accepts(self, expression: str, device: Device, whose: str, at: int) -> bool:
        key = (expression, device.kind)
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= _LIMIT:
                self._known.clear()
            known = self._known[key] = self._evaluate(expression, device, whose, at)
        if isinstance(known, SelectorFailed):
            raise SelectorTrouble(f"{whose}: selector #{at}: CEL runtime error: {known}")
        return known

    def _evaluate(self, expression: str, device: Device, whose: str, at: int) -> bool | SelectorFailed:
        compiled = self._compiled.get(expression)
        if compiled is None:
            try:
                compiled = self._compile(expression)
            except SelectorInvalid as error:
                compiled = error
            self._compiled[expression] = compiled
        if isinstance(compiled, SelectorInvalid):
            raise SelectorTrouble(f"{whose}: selector #{at}: CEL compile error: {compiled}")
        if self._steps.left > 0:
            self.evaluations += 1
            try:
                return compiled(device, self._steps)
            except SelectorFailed as failed:
                return failed
            except OutOfSelectorSteps:
                self._steps.left = 0
        said = f"CEL evaluations of one attempt cost more than {STEPS_PER_ATTEMPT}"
        raise CostsTooMuch(f"{whose}: selector #{at}: {said}")
