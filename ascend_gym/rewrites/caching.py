"""Rules about the shared L2 cache."""

from __future__ import annotations

from collections.abc import Iterator

from ascend_gym.rewrites.rule import (
    Choice,
    Effect,
    Family,
    File,
    Pipe,
    Rule,
    Side,
    Site,
    View,
    one_and_all,
    rule,
)
from ascend_gym.rewrites.syntax import Call, Edit

_BYPASS = "SetL2CacheHint(AscendC::CacheMode::CACHE_MODE_DISABLE)"


@rule(
    Family.DATA_MOVEMENT,
    Side.KERNEL,
    Effect((Pipe.MTE2, Pipe.MTE3), "data used once leaves L2 to what is used again; no write-back later"),
    inverse="l2_bypass",
)
def l2_bypass(view: View) -> Iterator[Site]:
    """``SetGlobalBuffer`` is a statement in a block, and the file sets no cache hint for that tensor.

    It helps if tensors are larger than L2 and used once. An existing hint can be removed.
    """
    for file in view.kernel:
        hints = [call for call in file.source.calls if call.name == "SetL2CacheHint"]
        hinted = {_tensor(call) for call in hints}
        sites = [
            _bypassing(file, call)
            for call in file.source.calls
            if call.name == "SetGlobalBuffer" and _tensor(call) not in hinted and _in_block(call)
        ]
        drops = [_dropping(file, call) for call in hints if _in_block(call)]
        if sites and drops:
            yield from (*sites, *drops)
        else:
            yield from one_and_all(sites or drops, f"tensors of {file.path}")


RULES: tuple[Rule, ...] = (l2_bypass,)
REWINDS: tuple[Rule, ...] = ()


def _tensor(call: Call) -> str:
    return call.callee.removesuffix(f".{call.name}").removeprefix("this->")


def _in_block(call: Call) -> bool:
    block = call.statement.parent if call.statement is not None else None
    return block is not None and block.type == "compound_statement" and call.is_method


def _bypassing(file: File, call: Call) -> Site:
    statement = call.statement if call.statement is not None else call.node
    text = f"\n{file.source.indent_of(statement)}{call.named(_BYPASS)};"
    edit = file.edit(Edit(statement.end_byte, statement.end_byte, text))
    label = file.label(call.node.start_byte, f"{_tensor(call)} by way of L2")
    return Site(label, (Choice("past L2", (edit,)),))


def _dropping(file: File, call: Call) -> Site:
    statement = call.statement if call.statement is not None else call.node
    label = file.label(call.node.start_byte, f"{_tensor(call)} has a cache hint")
    edit = file.edit(file.source.removal(statement))
    return Site(label, (Choice("no hint", (edit,), forward=False),))
