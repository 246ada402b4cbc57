"""Benchmarks as modules, for tests of their parts."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
FIDELITY = BENCHMARKS / "fidelity"


def fidelity_benchmark(name: str) -> ModuleType:
    """Return a benchmark of fidelity as a module."""
    return _module(FIDELITY / f"{name}.py")


def methods_benchmark(name: str) -> ModuleType:
    """Return a benchmark of methods as a module."""
    return _module(BENCHMARKS / "methods" / f"{name}.py")


def _module(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
