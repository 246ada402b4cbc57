"""Calls the functions of a golden.py: a program of its own, confined, with numpy alone.

Arguments: the golden.py, the name of the operator, and a JSON file with a list of calls. Each call has
``inputs`` (a file, a list of files, or null), ``dtypes`` of them, ``attributes``, ``context`` (what the
function gets as further keywords) and ``target``, a folder for what it answers. For each call a line of JSON
is printed: the files of its outputs, or why there are none.
"""

from __future__ import annotations

import importlib.util
import inspect
import json
import os
import sys
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np


def loaded(file: str, dtype: str) -> Any:
    """Return the array of a file; bfloat16 is stored as uint16."""
    array = np.load(file)
    if dtype == "bfloat16":
        import ml_dtypes

        return array.view(ml_dtypes.bfloat16)
    return array


def stored(path: Path, value: Any) -> dict[str, Any]:
    """Write an output; return its file, type and shape."""
    if hasattr(value, "detach"):  # of torch
        value = value.detach().cpu()
        value = value.float().numpy() if "bfloat16" in str(value.dtype) else value.numpy()
    array = np.asarray(value)
    name = array.dtype.name
    if name in ("bfloat16", "float16"):
        array = array.astype(np.float32)
    if name in ("int4", "uint4"):  # of ml_dtypes
        array = array.astype(np.int8)
    if array.dtype.isbuiltin != 1 or array.dtype.kind not in "biufc":  # such as floats of eight bits
        raise TypeError(f"an output of type {name}")
    np.save(path, array)
    return {"file": str(path), "dtype": name, "shape": list(array.shape)}


def function_of(module: ModuleType, table: str, operator: str) -> Any:
    """Return the function that a table of the module names for the operator, ``None`` without one."""
    named = getattr(module, table, {})
    for kind in ("kernel", "aclnn", *named):
        entries = named.get(kind, {})
        if not isinstance(entries, dict):
            continue
        chosen = entries.get(operator) or (next(iter(entries.values())) if len(entries) == 1 else None)
        if chosen is not None:
            return chosen if callable(chosen) else getattr(module, chosen)
    return None


def called(function: Any, inputs: list[Any], attributes: dict[str, Any], context: dict[str, Any]) -> Any:
    """Call a function with inputs by position and attributes and context by name, as far as it takes them."""
    parameters = inspect.signature(function).parameters.values()
    takes_all = any(each.kind is each.VAR_KEYWORD for each in parameters)
    names = {each.name for each in parameters if each.kind in (each.KEYWORD_ONLY, each.POSITIONAL_OR_KEYWORD)}
    places = [each for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    if not any(each.kind is each.VAR_POSITIONAL for each in parameters):
        inputs = inputs[: len(places)]
    positional = {each.name for each in places[: len(inputs)]}
    keywords = {**context, **attributes}
    keywords = {
        name: value
        for name, value in keywords.items()
        if (takes_all or name in names) and name not in positional
    }
    return function(*inputs, **keywords)


def stored_input(path: Path, value: Any) -> Any:
    """Write an input, or each of a list of them; return the files."""
    if value is None:
        return None
    if isinstance(value, (list, tuple)):
        return [stored(path.with_name(f"{path.name}_{i}.npy"), each)["file"] for i, each in enumerate(value)]
    return stored(path.with_name(f"{path.name}.npy"), value)["file"]


def answer(golden: Any, drawn: Any, call: dict[str, Any]) -> dict[str, Any]:
    """Return what one call gives."""
    inputs = [
        None
        if file is None
        else [loaded(each, dtype) for each in file]
        if isinstance(file, list)
        else loaded(file, dtype)
        for file, dtype in zip(call["inputs"], call["dtypes"], strict=True)
    ]
    target = Path(call["target"])
    changed = None
    if drawn is not None:
        given = called(drawn, inputs, call["attributes"], call["context"])
        inputs = list(given) if isinstance(given, (list, tuple)) else [given]
        changed = [stored_input(target / f"in{i}", each) for i, each in enumerate(inputs)]
    kept = [
        None if each is None else [one.copy() for one in each] if isinstance(each, list) else each.copy()
        for each in inputs
    ]
    with np.errstate(all="ignore"):
        result = called(golden, kept, call["attributes"], call["context"])
    outputs = list(result) if isinstance(result, (list, tuple)) else [result]
    rows: list[Any] = []
    for number, output in enumerate(outputs):
        if output is None:
            rows.append(None)
        elif isinstance(output, (list, tuple)):
            rows.append([stored(target / f"out{number}_{i}.npy", each) for i, each in enumerate(output)])
        else:
            rows.append([stored(target / f"out{number}.npy", output)])
    return {"outputs": rows, "inputs": changed}


def attempted(step: Callable[[], dict[str, Any]], script: str) -> dict[str, Any]:
    """Return what a step gives, or what the author's code raised, and file and line beside the script."""
    try:
        return step()
    except BaseException as error:  # noqa: BLE001 - the edge to an author's code
        folder = Path(script).parent
        frames = traceback.extract_tb(error.__traceback__)
        own = [each for each in frames if Path(each.filename).parent == folder]
        place = {"file": Path(own[-1].filename).name, "line": own[-1].lineno} if own else {}
        return {"error": f"{type(error).__name__}: {error}", **place}


def imported(script: str, operator: str) -> dict[str, Any]:
    """Import a golden.py; return its function and that which draws inputs, its own or of an input.py."""
    sys.path.insert(0, str(Path(script).parent))
    module = module_of(script)
    golden, drawn = (function_of(module, table, operator) for table in ("__golden__", "__input__"))
    if golden is None:
        raise LookupError(f"__golden__ names no function for {operator}")
    beside = Path(script).with_name("input.py")
    if drawn is None and beside.is_file():
        drawn = function_of(module_of(str(beside)), "__input__", operator)
    return {"golden": golden, "drawn": drawn}


def module_of(script: str) -> ModuleType:
    """Import a file."""
    specification = importlib.util.spec_from_file_location(Path(script).stem, script)
    if specification is None or specification.loader is None:
        raise ImportError(f"{script} is no Python module")
    module = importlib.util.module_from_spec(specification)
    # a decorator that the authors' test framework puts beside their names; the table says the same
    vars(module)["register_golden"] = lambda _operators: lambda function: function
    specification.loader.exec_module(module)
    return module


def main() -> None:
    """Answer each call on a line of standard output; what golden.py prints goes to standard error."""
    script, operator, calls = sys.argv[1], sys.argv[2], sys.argv[3]
    lines = os.dup(1)
    os.dup2(2, 1)

    def say(row: dict[str, Any]) -> None:
        os.write(lines, (json.dumps(row) + "\n").encode())

    begun = attempted(lambda: imported(script, operator), script)
    if "error" in begun:
        say({"fatal": begun["error"]})
        return
    for call in json.loads(Path(calls).read_text()):
        np.random.seed(0)
        say(attempted(partial(answer, begun["golden"], begun["drawn"], call), script))


if __name__ == "__main__":
    main()
