"""What bindings of EvoKernel (evokernel_binding.py) use of PyTorch: real tensors on the host."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import torch

_TYPES = {"kFloat": torch.float32, "kHalf": torch.float16, "kBFloat16": torch.bfloat16, "kInt": torch.int32}
_TYPES |= {"kLong": torch.int64, "kByte": torch.uint8, "kBool": torch.bool, "kDouble": torch.float64}


class RefusedError(Exception):
    """A binding refuses its arguments; the message is the condition."""


class CalledError(Exception):
    """A binding calls its operator: ends its run."""

    def __init__(self, arguments: list[Any]) -> None:
        super().__init__()
        self.arguments = arguments


class Tensor:
    """A tensor of PyTorch as a binding sees it."""

    def __init__(self, value: torch.Tensor, empty: bool = False) -> None:
        self.torch, self.empty = value, empty

    def size(self, axis: int) -> int:
        """Return an extent."""
        return self.torch.shape[axis]

    def sizes(self) -> list[int]:
        """Return the shape."""
        return list(self.torch.shape)

    def scalar_type(self) -> torch.dtype:
        """Return the element type."""
        return self.torch.dtype

    dtype = scalar_type

    def defined(self) -> bool:
        """Return whether there is a tensor."""
        return True

    has_value = defined

    def value(self) -> Tensor:
        """Return what an optional holds."""
        return self

    def options(self) -> Options:
        """Return what new tensors of this kind have."""
        return Options(self.torch.dtype)

    def device(self) -> None:
        """Return a device: there is one."""

    def to(self, *arguments: Any) -> Tensor:
        """Return the tensor in another type."""
        wanted = [one.type if isinstance(one, Options) else one for one in arguments]
        types = [one for one in wanted if isinstance(one, torch.dtype)]
        return Tensor(self.torch.to(types[0])) if types else self

    def contiguous(self) -> Tensor:
        """Return the tensor with its elements in order."""
        return self if self.torch.is_contiguous() else Tensor(self.torch.contiguous())

    def fill_(self, value: float) -> Tensor:
        """Fill the tensor, which is no output then."""
        self.torch.fill_(value)
        self.empty = False
        return self

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def called(*arguments: Any) -> Any:
            plain = [one.torch if isinstance(one, Tensor) else one for one in arguments]
            result = getattr(self.torch, name)(*plain)
            return Tensor(result) if isinstance(result, torch.Tensor) else result

        return called


class Missing:
    """An optional tensor that is left out."""

    def has_value(self) -> bool:
        """Return that there is none."""
        return False

    defined = has_value


class Options:
    """Options of new tensors: their type."""

    def __init__(self, of_type: torch.dtype = torch.float32) -> None:
        self.type = of_type

    def dtype(self, of_type: torch.dtype) -> Options:
        """Return the options with another type."""
        return Options(of_type)

    def device(self, *_: Any) -> Options:
        """Return the options: there is one device."""
        return self


def _empty(sizes: Sequence[int], options: Options | torch.dtype | None = None) -> Tensor:
    of_type = options.type if isinstance(options, Options) else options or torch.float32
    return Tensor(torch.zeros(list(sizes), dtype=of_type), empty=True)


def _filled(value: float) -> Callable[..., Tensor]:
    return lambda sizes, options=None: _empty(sizes, options).fill_(value)


def _empty_like(tensor: Tensor, options: Options | None = None) -> Tensor:
    return _empty(tensor.sizes(), options or tensor.options())


def _divide(left: Any, right: Any) -> Any:
    if isinstance(left, int) and isinstance(right, int):
        return int(left / right)
    return left / right


def _check(condition: Any, text: str) -> None:
    if not condition:
        raise RefusedError(text)


def _execute(_: str, arguments: list[Any]) -> None:
    raise CalledError(arguments)


def names_of_bindings() -> dict[str, Any]:
    """Return what the Python of a binding uses."""
    at = SimpleNamespace(
        **_TYPES, empty=_empty, zeros=_empty, empty_like=_empty_like, zeros_like=_empty_like, ones=_filled(1)
    )
    at.full = lambda sizes, value, options=None: _empty(sizes, options).fill_(value)
    at.TensorOptions = Options
    at.Tensor = lambda: None
    torch_names = SimpleNamespace(**vars(at))
    c10 = SimpleNamespace(DeviceType=SimpleNamespace(PrivateUse1=None), nullopt=None, **_TYPES)
    std = SimpleNamespace(
        **{name: getattr(math, name) for name in ("sqrt", "log", "exp", "floor", "ceil", "isfinite")},
        max=max,
        min=min,
        abs=abs,
        llround=round,
        move=lambda value: value,
    )
    return {
        "at": at,
        "torch": torch_names,
        "c10": c10,
        "std": std,
        "check": _check,
        "execute": _execute,
        "divide": _divide,
    }
