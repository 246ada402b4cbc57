"""Benchmarks as modules, for tests of their parts."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

FIDELITY = Path(__file__).parents[1] / "benchmarks" / "fidelity"


def fidelity_benchmark(name: str) -> ModuleType:
    """Return a benchmark of fidelity as a module."""
    spec = importlib.util.spec_from_file_location(name, FIDELITY / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
