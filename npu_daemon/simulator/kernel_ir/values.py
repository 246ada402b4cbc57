"""Operands that are constants: the symbols in them are the module's own."""

from __future__ import annotations

from npu_daemon.simulator.kernel_ir.checked import CheckedModule
from npu_daemon.simulator.kernel_ir.intrinsics import NEVER_REACHED
from npu_daemon.simulator.kernel_ir.ir_constants import ConstantReader
from npu_daemon.simulator.kernel_ir.ir_types import TypeTable
from npu_daemon.simulator.kernel_ir.refusal import RefusedIr, readable_name
from npu_daemon.simulator.kernel_ir.symbols import Symbols


class ValueChecker:
    """Checks operands, each text once, and notes which functions are used as values."""

    def __init__(self, checked: CheckedModule, types: TypeTable, symbols: Symbols) -> None:
        self._checked = checked
        self._constants = ConstantReader(types)
        self._symbols = symbols
        self._known: set[str] = set()

    def check(self, value: str) -> None:
        """Raise ``RefusedIr`` unless an operand is local, or a constant that kernels may use."""
        if value[0] == "%" or value in self._known:
            return
        for symbol in self._constants.symbols_of(value):
            self._use(symbol[1:])
        self._known.add(value)

    def _use(self, name: str) -> None:
        if name in self._symbols.functions:
            self._checked.address_taken.add(name)
        elif name in NEVER_REACHED and name in self._symbols.declared:
            self._checked.stubs[name] = self._symbols.declared[name]
        elif name not in self._symbols.variables:
            raise RefusedIr(
                f"the kernel takes the address of {readable_name(name)}, which is not its own: "
                "call it directly"
            )
