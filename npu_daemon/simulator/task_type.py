"""Which kinds of core a kernel is built for, read from its sources: one build for each kind it can run on."""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import Enum
from functools import lru_cache

from ascend_gym.core.cpp_text import without_comments
from ascend_gym.core.records import Sources

_NAMED = re.compile(
    r"\b(?:KERNEL_TYPE|ASCENDC_TPL)_(AIV_ONLY|AIC_ONLY|MIX_AI[CV]_1_[012]|MIX_VECTOR_CORE|AICORE)\b"
)
_QUALIFIED = re.compile(r"__mix__\s*\(\s*([01])\s*,\s*([012])\s*\)|__cube__|__vector__")
# Words of the Matmul object, of the cube unit's own instructions, and of code that needs a vector core.
_MATMUL = re.compile(r"\bREGIST_MATMUL_OBJ\b|\bMatmulImpl\b|\bMatmul\s*<")
_CUBE = re.compile(
    r"\bMmad\s*\(|\bLoadData(?:WithTranspose)?\s*(?:<[^;]{0,200}?>)?\s*\("
    r"|\bFixpipe\s*(?:<[^;]{0,200}?>)?\s*\("
)
_VECTOR = re.compile(r"\bVECIN\b|\bVECOUT\b|\bVECCALC\b|\bASCEND_IS_AIV\b")


class CoreKind(str, Enum):
    """A kind of core; the value names the build."""

    VECTOR = "vector"
    CUBE = "cube"


class TaskType(str, Enum):
    """The cores of a group, as the run program reads them."""

    AIV_ONLY = "aiv_only"
    AIC_ONLY = "aic_only"
    MIX_1_1 = "mix_1_1"
    MIX_1_2 = "mix_1_2"

    @property
    def kinds(self) -> frozenset[CoreKind]:
        """The kinds of core that run."""
        return _KINDS[self]


_KINDS = {
    TaskType.AIV_ONLY: frozenset({CoreKind.VECTOR}),
    TaskType.AIC_ONLY: frozenset({CoreKind.CUBE}),
    TaskType.MIX_1_1: frozenset(CoreKind),
    TaskType.MIX_1_2: frozenset(CoreKind),
}
_BY_NAME = {
    "AIC_ONLY": TaskType.AIC_ONLY,
    "MIX_AIC_1_0": TaskType.AIC_ONLY,
    "MIX_AIC_1_1": TaskType.MIX_1_1,
    "MIX_AIC_1_2": TaskType.MIX_1_2,
}
_BY_RATIO = {
    (0, 1): TaskType.AIV_ONLY,
    (1, 0): TaskType.AIC_ONLY,
    (1, 1): TaskType.MIX_1_1,
    (1, 2): TaskType.MIX_1_2,
}


def task_types(main_text: str, texts: Iterable[str] = ()) -> list[TaskType]:
    """Return every task type that a kernel may have, the one to take where it names none first.

    Args:
        main_text: the file with the kernel entry.
        texts: further files of the kernel.

    Types that the sources name (``KERNEL_TASK_TYPE``, ``__mix__``, ...) are settled by the built kernel and
    its tiling key. Without any, the type follows from the instructions used, as in the device's compiler.
    """
    main = without_comments(main_text)
    text = "\n".join([main, *map(without_comments, texts)])
    return named_task_types(main, text) or [_inferred(text)]


def named_task_types(qualified_text: str, text: str) -> list[TaskType]:
    """Return the types that qualifiers of the first text and ``KERNEL_TYPE_`` words of the second name.

    Combinations of template parameters name them with ``ASCENDC_TPL_``.
    """
    qualified = [_of_qualifier(match) for match in _QUALIFIED.finditer(qualified_text)]
    named = [_BY_NAME.get(match[1], TaskType.AIV_ONLY) for match in _NAMED.finditer(text)]
    return list(dict.fromkeys([*qualified, *named]))


def used_task_types(text: str) -> list[TaskType]:
    """Return the type that follows from the instructions of a text, or none if it has none that tell."""
    tells = any(words.search(text) for words in (_MATMUL, _CUBE, _VECTOR))
    return [_inferred(text)] if tells else []


def kernel_task_types(sources: Sources) -> list[TaskType]:
    """Return ``task_types`` of the kernel files of an operator."""
    return list(_noted_task_types(sources.main_text, tuple(file.text for file in sources.files)))


@lru_cache(maxsize=16)
def _noted_task_types(main_text: str, texts: tuple[str, ...]) -> tuple[TaskType, ...]:
    """Return ``task_types``, which each build asks for several times."""
    return tuple(task_types(main_text, texts))


def core_kinds(types: list[TaskType]) -> list[CoreKind]:
    """Return the kinds of core to build for, vector first."""
    return [kind for kind in CoreKind if any(kind in type_.kinds for type_ in types)]


def _of_qualifier(match: re.Match[str]) -> TaskType:
    if match[1] is None:
        return TaskType.AIC_ONLY if match[0] == "__cube__" else TaskType.AIV_ONLY
    return _BY_RATIO.get((int(match[1]), int(match[2])), TaskType.AIV_ONLY)


def _inferred(text: str) -> TaskType:
    if _MATMUL.search(text):
        return TaskType.MIX_1_2
    if _CUBE.search(text):
        return TaskType.MIX_1_2 if _VECTOR.search(text) else TaskType.AIC_ONLY
    return TaskType.AIV_ONLY
