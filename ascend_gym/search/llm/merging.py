"""Partial gains: attempts that win in some cases and lose in others, offered to be combined."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from ascend_gym.core.records import Candidate, EvalResult
from ascend_gym.search.llm.attempts import applied_diff, diff_block

_TELLING_GAIN = 0.02


@dataclass(frozen=True)
class Version:
    """What was evaluated under a number, and how that ended."""

    candidate: Candidate
    result: EvalResult


def fastest_by_case(
    best: EvalResult, versions: Mapping[int, EvalResult]
) -> dict[str, tuple[int | None, float]]:
    """Return who is fastest in each case, and its latency in microseconds; ``None`` stands for ``best``.

    A case goes to another version only where that gains two percent; failed versions win nothing, as one that
    is wrong in some case may be so in others.
    """
    winners: dict[str, tuple[int | None, float]] = {
        case.case_id: (None, case.latency_us) for case in best.cases if case.latency_us is not None
    }
    least = {case_id: us * (1 - _TELLING_GAIN) for case_id, (_, us) in winners.items()}
    for number, result in sorted(versions.items()):
        for case in result.cases if result.latency_us is not None else ():
            us = case.latency_us
            if us is not None and us <= least.get(case.case_id, 0.0) and us < winners[case.case_id][1]:
                winners[case.case_id] = (number, us)
    return winners


def told_merge(best: Version, versions: Mapping[int, Version]) -> str:
    """Return the winner of each case and what the most promising attempt has otherwise; empty without any."""
    winners = fastest_by_case(best.result, {number: each.result for number, each in versions.items()})
    others = [number for number, _ in winners.values() if number is not None]
    if not others or best.result.latency_us is None:
        return ""
    own_us = {case.case_id: case.latency_us or 0.0 for case in best.result.cases}
    cases = "; ".join(
        f"{case_id} {'this version' if number is None else f'attempt {number}'} ({us:.2f} us"
        + (")" if number is None else f", this version {own_us[case_id]:.2f})")
        for case_id, (number, us) in winners.items()
    )
    merged_us = math.exp(math.fsum(math.log(us) for _, us in winners.values()) / len(winners))
    gains = {
        number: math.fsum(
            math.log(own_us[case_id] / us) for case_id, (who, us) in winners.items() if who == number
        )
        for number in others
    }
    chosen = max(sorted(gains), key=lambda number: gains[number])
    diff = diff_block(applied_diff(best.candidate, versions[chosen].candidate))
    return (
        f"\n## Partial gains\n\nFastest by case: {cases}. A version that is as fast as the winner in each "
        f"case would take {merged_us:.2f} us, this one takes {best.result.latency_us:.2f}. Choose in the "
        "tiling program by shape: by a value of the tiling data, or by a tiling key where the code differs. "
        f"What attempt {chosen} has otherwise than this version:\n{diff}\n"
    )
