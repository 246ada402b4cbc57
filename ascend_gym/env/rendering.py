"""Rendering of an episode, as text or as a plot of its evaluations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ascend_gym.core.errors import MisuseError
from ascend_gym.env.episode import Episode, PastEvaluation

RENDER_MODES = ("ansi", "rgb_array")
"""``ansi`` is a text, ``rgb_array`` a picture as uint8 of shape ``(HEIGHT, WIDTH, 3)``."""

WIDTH, HEIGHT = 480, 300

Picture = np.ndarray[Any, np.dtype[np.uint8]]
_Colour = tuple[int, int, int]

_WHITE, _INK, _GREY = (255, 255, 255), (40, 40, 40), (170, 170, 170)
_FASTER, _CORRECT, _FAILED = (0, 130, 60), (60, 100, 200), (200, 40, 40)

# Letters of 3 x 5 dots: one octal digit per row.
_CHARACTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789./:-_,"
_ROWS = (
    "25755 65656 34443 65556 74647 74644 34553 55755 72227 11152 55655 44447 57755 65555 25552 65644 25563 "
    "65655 34216 72222 55557 55552 55775 55255 55222 71247 75557 26227 71747 71717 55711 74717 74757 71111 "
    "75757 75717 00002 11244 02020 00700 00007 00024"
)
_GLYPHS = {
    character: np.array([[digit >> bit & 1 for bit in (2, 1, 0)] for digit in map(int, rows)], np.bool_)
    for character, rows in zip(_CHARACTERS, _ROWS.split(), strict=True)
}
_DOT = 2  # pixels
_LEFT, _TOP, _RIGHT, _BOTTOM = 12, 66, WIDTH - 12, HEIGHT - 34  # of the chart


def require_render_mode(mode: str | None) -> None:
    """Check a render mode.

    Raises:
        MisuseError: the mode does not exist.
    """
    if mode is not None and mode not in RENDER_MODES:
        raise MisuseError(f"render_mode must be None or one of {', '.join(RENDER_MODES)}, got {mode!r}")


def rendered(mode: str | None, episode: Episode | None, operators: Sequence[str]) -> str | Picture | None:
    """Render an episode; without one, the names of the operators."""
    if mode is None:
        return None
    if episode is None:
        words = f"{', '.join(operators)}: no episode yet"
        return words if mode == "ansi" else _written(_blank(), [words])
    return _summary(episode) if mode == "ansi" else _picture(episode)


def _headings(episode: Episode) -> list[str]:
    return [
        f"{episode.spec.op_id}: {episode.spent} of {episode.budget} evaluations",
        f"baseline {episode.baseline_latency_us:.2f} us, best {episode.best_latency_us:.2f} us, "
        f"speedup {episode.speedup:.3f}x",
    ]


def _last(episode: Episode) -> str:
    last = episode.last_result
    return f"last: {last.status.value}" + (f" {last.latency_us:.2f} us" if last.latency_us else "")


def _summary(episode: Episode) -> str:
    diagnostics = [f"  {diagnostic}" for diagnostic in episode.last_result.all_diagnostics]
    return "\n".join([*_headings(episode), _last(episode), *diagnostics])


def _picture(episode: Episode) -> Picture:
    """Plot the latencies of an episode over its evaluations.

    Squares are correct candidates, green if they became the incumbent; red marks at the bottom are failures.
    The grey line is the baseline, the green one the incumbent. The latency axis is logarithmic.
    """
    picture = _written(_blank(), [*_headings(episode), _last(episode)])
    known_us = [attempt.latency_us for attempt in episode.attempts if attempt.latency_us]
    slowest_us = max([episode.baseline_latency_us, *known_us])
    fastest_us = min([episode.baseline_latency_us, *known_us])
    span = math.log(slowest_us / fastest_us) or 1.0

    def height(latency_us: float) -> int:
        return _BOTTOM - 16 - int((_BOTTOM - _TOP - 24) * math.log(latency_us / fastest_us) / span)

    column = (_RIGHT - _LEFT) / (episode.budget + 1)
    _box(picture, _LEFT, _BOTTOM, _RIGHT - _LEFT, 1, _INK)
    _box(picture, _LEFT, height(episode.baseline_latency_us), _RIGHT - _LEFT, 1, _GREY)
    for number, attempt in enumerate(episode.attempts, 1):
        _draw(picture, attempt, int(_LEFT + column * number), math.ceil(column), height)
    axis = f"{fastest_us:.2f} us to {slowest_us:.2f} us, evaluations 1 to {episode.budget}"
    return _write(picture, axis, _LEFT, _BOTTOM + 12)


def _draw(picture: Picture, attempt: PastEvaluation, left: int, width: int, height: Any) -> None:
    best_us = attempt.incumbent_latency_us
    if attempt.improved and attempt.latency_us:
        best_us = attempt.latency_us
    _box(picture, left, height(best_us), width, 1, _FASTER)
    if attempt.latency_us is None:
        _box(picture, left - 2, _BOTTOM - 8, 4, 8, _FAILED)
    else:
        colour = _FASTER if attempt.improved else _CORRECT
        _box(picture, left - 2, height(attempt.latency_us) - 2, 5, 5, colour)


def _blank() -> Picture:
    return np.full((HEIGHT, WIDTH, 3), _WHITE, np.uint8)


def _box(picture: Picture, left: int, top: int, width: int, height: int, colour: _Colour) -> None:
    picture[max(0, top) : top + height, max(0, left) : min(left + width, _RIGHT)] = colour


def _written(picture: Picture, lines: Sequence[str]) -> Picture:
    for number, line in enumerate(lines):
        _write(picture, line, _LEFT, 10 + 16 * number)
    return picture


def _write(picture: Picture, words: str, left: int, top: int) -> Picture:
    """Draw text in capital letters, as much as fits the width; characters without a glyph are left blank."""
    advance = 4 * _DOT
    for number, character in enumerate(words.upper()[: (WIDTH - left) // advance]):
        glyph = _GLYPHS.get(character)
        if glyph is not None:
            dots = np.kron(glyph, np.ones((_DOT, _DOT), np.bool_))
            at = left + advance * number
            picture[top : top + dots.shape[0], at : at + dots.shape[1]][dots] = _INK
    return picture
