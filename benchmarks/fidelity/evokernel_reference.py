"""Runs a reference task of EvoKernel and writes what its operator is called with, and what it may return.

A process of its own, which evokernel.py confines, runs this file: the references are foreign Python. The
arguments of a binding are values of the reference: inputs, parameters and buffers of the model, and local
variables of its functions, chosen by name; what the binding checks decides between them. Expected are all
tensors of the reference that have as many elements as the operator's output: an operator may compute a part
of its model.
"""

from __future__ import annotations

import ast
import heapq
import inspect
import json
import math
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

import torch
from evokernel_binding import Binding, NotUnderstoodError, Parameter, read_binding
from evokernel_tensors import CalledError, Missing, RefusedError, Tensor, names_of_bindings
from torch.utils._python_dispatch import TorchDispatchMode

SEED = 0
TRIALS = 2000
MOST_CANDIDATES = 12
BATCH_NAMES = ("batch_size", "batch", "num_tokens", "bs", "B", "N")
_SYNONYMS = {"w": "weight", "b": "bias", "gamma": "weight", "beta": "bias", "queries": "q", "query": "q"}
_SYNONYMS |= {"keys": "k", "key": "k", "values": "v", "value": "v", "wt": "weight", "s": "scalar"}
_DROPPED = {
    "npu",
    "opt",
    "f32",
    "fp32",
    "fp16",
    "flat",
    "c",
    "contig",
    "u8",
    "32",
    "1d",
    "attr",
    "t",
    "optional",
}
_CASTS = (None, torch.float16, torch.bfloat16, torch.float32)


@dataclass
class Known:
    """Values of a reference by name: ``tensors`` in the order in which they are preferred."""

    tensors: list[tuple[str, torch.Tensor]] = field(default_factory=list)
    numbers: list[tuple[str, float]] = field(default_factory=list)


class Reference:
    """A model of a reference file with its inputs."""

    def __init__(self, path: Path, smaller: dict[str, int]) -> None:
        torch.manual_seed(SEED)
        self.path = str(path)
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in tree.body:
            name = node.targets[0] if isinstance(node, ast.Assign) else None
            if isinstance(name, ast.Name) and name.id in smaller:
                node.value = ast.copy_location(ast.Constant(smaller[name.id]), node.value)
        module = ModuleType("reference")
        sys.modules["reference"] = module
        exec(compile(tree, self.path, "exec"), module.__dict__)
        self.module = module
        self.arguments = module.get_init_inputs()
        named = isinstance(self.arguments, dict)
        self.model = module.Model(**self.arguments) if named else module.Model(*self.arguments)
        self.model.eval()
        torch.manual_seed(SEED)
        self.inputs = [
            one.contiguous() if isinstance(one, torch.Tensor) else one for one in module.get_inputs()
        ]

    def known(self) -> Known:
        """Run the model and return its values by name."""
        known = Known()
        names = list(inspect.signature(self.model.forward).parameters)
        for name, value in zip(names, self.inputs, strict=False):
            self._note(known, name, value)
        known.tensors += [(name, value.detach()) for name, value in self.model.state_dict().items()]
        for name, value in self._plain_values():
            self._note(known, name, value)
        seen: set[tuple[str, int]] = set()
        kept: list[Any] = []

        def look(frame: FrameType, event: str, _: Any) -> Any:
            if frame.f_code.co_filename != self.path:
                return None
            for name, value in list(frame.f_locals.items()):
                if (name, id(value)) not in seen and isinstance(value, torch.Tensor | int | float):
                    seen.add((name, id(value)))
                    kept.append(value)
                    self._note(known, name, value)
            return look

        sys.settrace(look)
        try:
            with torch.no_grad():
                self.model(*self.inputs)
        finally:
            sys.settrace(None)
        return known

    def _note(self, known: Known, name: str, value: Any) -> None:
        if isinstance(value, torch.Tensor):
            known.tensors.append((name, value.detach()))
        elif isinstance(value, bool | int | float):
            known.numbers.append((name, value))

    def _plain_values(self) -> Iterator[tuple[str, Any]]:
        if not isinstance(self.arguments, dict):
            names = list(inspect.signature(self.module.Model.__init__).parameters)[1:]
            yield from zip(names, self.arguments, strict=False)
        for module in self.model.modules():
            for name, value in vars(module).items():
                if not name.startswith("_") and name != "training":
                    yield name, value
        yield from ((name, value) for name, value in vars(self.module).items() if not name.startswith("_"))

    def tensors_of(self, counts: set[int], training: bool) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        """Return the tensors with given numbers of elements that the model computes, and those it returns."""
        found: list[torch.Tensor] = []

        class Keep(TorchDispatchMode):
            def __torch_dispatch__(
                self, function: Any, types: Any, args: Any = (), kwargs: Any = None
            ) -> Any:
                result = function(*args, **(kwargs or {}))
                for one in result if isinstance(result, tuple | list) else (result,):
                    if isinstance(one, torch.Tensor) and one.numel() in counts:
                        found.append(one.detach().clone().contiguous())
                return result

        torch.manual_seed(SEED + 1)
        self.model.train(training)
        with Keep(), torch.no_grad():
            result = self.model(*self.inputs)
        results = result if isinstance(result, tuple | list) else (result,)
        return found, [one for one in results if isinstance(one, torch.Tensor) and one.numel() in counts]


def _tokens(name: str) -> set[str]:
    spread = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name)
    words = [word for word in re.split(r"[._]+", spread.lower()) if word]
    kept = [word for word in words if word not in _DROPPED] or words
    return {_SYNONYMS.get(word, word) for word in kept}


def likeness(first: str, second: str) -> float:
    """Return how alike two names are, 0 to 1."""
    if first.lower() == second.lower():
        return 1.0
    one, other = _tokens(first), _tokens(second)
    return 0.9 * len(one & other) / len(one | other)


def _shapes_of(name: str, value: torch.Tensor) -> Iterator[torch.Tensor]:
    """Yield a value in the layouts that a binding may ask for."""
    layouts = [value]
    if value.dim() >= 2:
        turned = value.transpose(-1, -2)
        layouts = [turned, value] if re.search(r"_t$|transposed", name) else [value, turned]
    if value.dim() != 1 and value.numel() == max(value.shape, default=1):
        layouts.append(value.reshape(-1))
    yield from (one.contiguous() for one in layouts)


def _candidates(parameter: Parameter, place: int, known: Known) -> list[tuple[float, Any]]:
    """Return values for a parameter, the most likely first, each once."""
    scored: list[tuple[float, Any, Any]] = []  # with what tells values apart
    for name, number in known.numbers:
        alike = likeness(parameter.name, name)
        if parameter.kind == "number" and alike >= 0.4:
            scored.append((alike, number, number))
        elif alike >= 0.8:
            scored.append((alike - 0.5, torch.tensor([float(number)]), number))
    if parameter.kind == "tensor":
        for index, (name, value) in enumerate(known.tensors):
            score = likeness(parameter.name, name) + (0.2 if index == place else 0.0) - 1e-4 * index
            for layout, one in enumerate(_shapes_of(parameter.name, value)):
                scored.append(
                    (score - 0.1 * layout, one, (value.data_ptr(), value.shape, value.stride(), layout))
                )
        if parameter.optional:
            scored.append((0.15, Missing(), None))
    chosen: dict[Any, tuple[float, Any]] = {}
    for score, value, key in sorted(scored, key=lambda each: -each[0]):
        chosen.setdefault(key, (score, value))
    return list(chosen.values())[:MOST_CANDIDATES]


def bound(binding: Binding, known: Known) -> tuple[list[Any], float]:
    """Return the arguments with which a binding calls its operator, and how alike the least alike name is.

    Raises:
        RefusedError: whatever was tried, the binding refuses.
    """
    choices = []
    for place, parameter in enumerate(binding.parameters):
        found = _candidates(parameter, place, known)
        if parameter.name in binding.defaults and parameter.kind == "number":
            found.append((0.3, binding.defaults[parameter.name]))
        if not found:
            raise RefusedError(f"no value for {parameter.name}")
        choices.append(found)
    names = names_of_bindings()
    exec(compile(binding.python, "binding", "exec"), names)
    refused, order = "", count()
    queue = [(0.0, next(order), (0,) * len(choices))]
    seen = {queue[0][2]}
    for _ in range(TRIALS):
        if not queue:
            break
        _, _, picks = heapq.heappop(queue)
        picked = [choice[pick] for choice, pick in zip(choices, picks, strict=True)]
        for cast in _CASTS:
            try:
                names[binding.entry](*(_as_argument(value, cast) for _, value in picked))
            except CalledError as called:
                return called.arguments, min(score for score, _ in picked)
            except RefusedError as error:
                refused = refused or str(error)
                if "scalar_type" not in str(error) and "dtype" not in str(error):
                    break
        for place, pick in enumerate(picks):
            following = (*picks[:place], pick + 1, *picks[place + 1 :])
            if pick + 1 < len(choices[place]) and following not in seen:
                seen.add(following)
                loss = sum(
                    choice[0][0] - choice[at][0] for choice, at in zip(choices, following, strict=True)
                )
                heapq.heappush(queue, (loss, next(order), following))
    raise RefusedError(refused)


def _as_argument(value: Any, cast: torch.dtype | None) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    if cast is not None and value.is_floating_point():
        value = value.to(cast)
    elif cast is not None:
        value = value.to(torch.uint8 if value.dtype is torch.bool else torch.int32)
    return Tensor(value)


def _bytes(value: torch.Tensor, path: Path) -> None:
    value.contiguous().reshape(-1).view(torch.uint8).numpy().tofile(path)


def write_case(job: dict[str, Any], folder: Path) -> None:
    """Write arguments and expected tensors of one operator, and ``case.json``, which says what they are."""
    text = Path(job["binding"]).read_text(encoding="utf-8")
    binding = read_binding(text)
    reference = Reference(Path(job["reference"]), job["smaller"])
    arguments, alike = bound(binding, reference.known())
    written, counts = [], set()
    for place, one in enumerate(arguments):
        if isinstance(one, Tensor):
            kind = str(one.torch.dtype).removeprefix("torch.")
            written.append({"shape": one.sizes(), "dtype": kind, "empty": one.empty, "file": f"{place}.bin"})
            _bytes(one.torch.cpu(), folder / f"{place}.bin")
            if one.empty:
                counts.add(one.torch.numel())
        else:
            written.append({"number": None if isinstance(one, Missing) else one})
    inputs = [one.torch for one in arguments if isinstance(one, Tensor) and not one.empty]
    expected, seen = [], set()
    for training in (False, True):
        computed, returned = reference.tensors_of(counts, training)
        for number, value in enumerate([*returned, *computed]):
            flat = value.contiguous().reshape(-1).to(torch.float32)
            key = (flat.numel(), float(flat.double().sum()), float(flat[:97].double().sum()))
            same = any(
                one.numel() == flat.numel() and torch.equal(one.reshape(-1).float(), flat) for one in inputs
            )
            known = key in seen or (same and number >= len(returned))
            if not known and bool((flat != flat[0]).any()):
                seen.add(key)
                expected.append(f"expected{len(expected)}.bin")
                _bytes(flat, folder / expected[-1])
    result = {"arguments": written, "expected": expected, "alike": alike}
    (folder / "case.json").write_text(json.dumps(result), encoding="utf-8")


def elements(job: dict[str, Any]) -> tuple[int, int]:
    """Return the elements of inputs and parameters of a reference, without making them."""
    with torch.device("meta"):
        reference = Reference(Path(job["reference"]), job["smaller"])
    inputs = [one for one in reference.inputs if isinstance(one, torch.Tensor)]
    return sum(one.numel() for one in inputs), sum(
        one.numel() for one in reference.model.state_dict().values()
    )


def smaller_sizes(path: Path, share: float) -> dict[str, int]:
    """Return constants of a reference that are its batch, made smaller: those of its top level, by name.

    Each is halved until its share is left: blocks of the case then begin where data blocks and lines of the
    cache do, as in the whole case.
    """
    halvings = math.ceil(-math.log2(share))
    found = {}
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            value = node.value.value if isinstance(node.value, ast.Constant) else None
            if node.targets[0].id in BATCH_NAMES and isinstance(value, int):
                found[node.targets[0].id] = max(1, value >> halvings)
    return found


def _try(job: dict[str, Any], folder: Path) -> None:
    """Write a case: with a smaller batch where the whole is too large, if the binding takes it."""
    size, parameters = elements(job)
    share = min(1.0, job["most_ms"] / job["device_ms"], job["most_elements"] / max(1, size))
    whole_fits = job["device_ms"] <= job["whole_ms"] and size + parameters <= job["whole_elements"]
    smaller = smaller_sizes(Path(job["reference"]), share) if share < 1 else {}
    for sizes in [smaller, {}] if smaller else [{}]:
        if not sizes and not whole_fits:
            raise RefusedError("too large, and no smaller batch is possible")
        try:
            write_case(job | {"smaller": sizes}, folder)
        except RefusedError as error:
            if not sizes or not whole_fits:
                raise RefusedError(f"{error} (batch {sizes})" if sizes else str(error)) from error
            continue
        (folder / "sizes.json").write_text(json.dumps(sizes), encoding="utf-8")
        return


def _warm_up() -> None:
    """Load what PyTorch loads at the first use of meta tensors and dispatch modes, once for all children."""

    class Pass(TorchDispatchMode):
        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return function(*args, **(kwargs or {}))

    with torch.device("meta"):
        torch.nn.Linear(2, 2)
    with Pass(), torch.no_grad():
        torch.nn.Linear(2, 2)(torch.zeros(2, 2))


def main() -> None:
    """Write a case for each job of a file into a folder each; a failed one leaves ``error.txt``."""
    torch.set_num_threads(1)
    _warm_up()
    for job in json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")):
        Path(job["name"]).mkdir()
        child = os.fork()
        if child == 0:
            folder = Path(job["name"])
            try:
                _try({"smaller": {}} | job, folder)
            except (RefusedError, NotUnderstoodError) as error:
                (folder / "error.txt").write_text(f"not bound: {error}", encoding="utf-8")
            except Exception as error:  # noqa: BLE001  # whatever foreign code raises is its row's reason
                (folder / "error.txt").write_text(f"{type(error).__name__}: {error}", encoding="utf-8")
            os._exit(0)
        os.waitpid(child, 0)


if __name__ == "__main__":
    main()
