"""The strongest implementation known of an operator: what earlier searches found, else its own sources."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ascend_gym.core.errors import MisuseError
from ascend_gym.core.records import Candidate, OpSpec
from ascend_gym.rewrites.candidate_files import with_texts


@dataclass(frozen=True)
class _Found:
    latency_us: float
    digest: str
    folder: Path


def strongest_known(spec: OpSpec, runs: Sequence[Path]) -> Candidate:
    """Return the fastest candidate that the searches in ``runs`` and below found for the operator.

    Raises:
        MisuseError: a run's files are missing, or not those of the candidate that its summary tells of.
    """
    found = [each for root in runs for each in _found_below(spec, root)]
    if not found:
        return spec.baseline
    best = min(found, key=lambda each: (each.latency_us, each.digest))
    try:
        texts = {path: (best.folder / "best" / path).read_bytes().decode() for path in spec.baseline.texts}
    except (OSError, UnicodeDecodeError) as error:
        raise MisuseError(
            f"the best candidate of the run in {best.folder} cannot be read: {error}"
        ) from error
    candidate = with_texts(spec.baseline, texts)
    if candidate.digest != best.digest:
        raise MisuseError(f"{best.folder / 'best'} does not hold the candidate that summary.json tells of")
    return candidate


def _found_below(spec: OpSpec, root: Path) -> Iterator[_Found]:
    for path in sorted(root.rglob("summary.json")):
        summary = _summary_in(path)
        latency_us, digest = summary.get("best_latency_us"), summary.get("best_digest")
        if summary.get("operator") == spec.op_id and isinstance(latency_us, float) and digest:
            yield _Found(latency_us, str(digest), path.parent)


def _summary_in(path: Path) -> dict[str, Any]:
    try:
        summary = json.loads(path.read_bytes())
    except ValueError as error:
        raise MisuseError(f"{path} is not the summary of a run: {error}") from error
    return summary if isinstance(summary, dict) else {}
