"""Draws docs/architecture.svg: ``python docs/site/architecture_picture.py``."""

from __future__ import annotations

from pathlib import Path
from xml.sax.saxutils import escape

TARGET = Path(__file__).resolve().parents[1] / "architecture.svg"
WIDTH, HEIGHT = 880, 400
BOXES = {  # name: x, y, width, height, colour, title, lines
    "you": (
        20,
        30,
        250,
        90,
        "#dbe7ff",
        "Methods",
        ("agent, search, language model,", "policy: propose sources"),
    ),
    "env": (20, 165, 250, 90, "#dbe7ff", "Environment or driver", ("episodes or runs, budget,", "journal")),
    "client": (20, 300, 250, 70, "#dbe7ff", "Client", ("one daemon or several",)),
    "broker": (350, 300, 220, 70, "#e3f3e1", "Broker", ("tenants, queue, leases",)),
    "worker": (350, 165, 220, 90, "#e3f3e1", "Worker", ("builds, runs, judges, prices;", "keeps results")),
    "oracle": (350, 30, 220, 90, "#e3f3e1", "Operator", ("cases, numpy reference,", "domain, tolerance")),
    "sandbox": (650, 165, 210, 90, "#ffe6d6", "Sandbox", ("compiler, tiling program,", "kernel: untrusted")),
    "price": (650, 30, 210, 90, "#e3f3e1", "Chip model", ("trace to cycles;", "knows no data")),
    "npu": (650, 300, 210, 70, "#eeeeee", "NPU (CANN)", ("in place of the simulator",)),
}
ARROWS = (  # from x, y, to x, y, label, label x, y
    (145, 120, 145, 165, "candidate", 152, 147),
    (145, 255, 145, 300, "request", 152, 282),
    (270, 335, 350, 335, "ZeroMQ", 284, 328),
    (460, 300, 460, 255, "job", 467, 282),
    (460, 120, 460, 165, "inputs, expected", 467, 147),
    (570, 210, 650, 210, "sources", 584, 203),
    (755, 165, 755, 120, "trace", 762, 147),
    (650, 75, 560, 165, "latency", 560, 112),
    (570, 235, 650, 315, "or", 618, 268),
)


def picture() -> str:
    """Return the picture as SVG."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="sans-serif" role="img">',
        "<title>Methods propose sources; the daemon builds, runs, judges and prices them</title>",
        '<defs><marker id="head" markerWidth="8" markerHeight="8" refX="7" refY="4" orient="auto">'
        '<path d="M0,0 L8,4 L0,8 z" fill="#555"/></marker></defs>',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
    ]
    for x, y, width, height, colour, title, lines in BOXES.values():
        parts.append(
            f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="8" fill="{colour}" stroke="#555"/>'
        )
        parts.append(
            f'<text x="{x + 12}" y="{y + 26}" font-size="17" font-weight="bold">{escape(title)}</text>'
        )
        for number, line in enumerate(lines):
            parts.append(
                f'<text x="{x + 12}" y="{y + 49 + 20 * number}" font-size="14">{escape(line)}</text>'
            )
    for x, y, to_x, to_y, label, label_x, label_y in ARROWS:
        parts.append(
            f'<line x1="{x}" y1="{y}" x2="{to_x}" y2="{to_y}" stroke="#555" stroke-width="2" '
            'marker-end="url(#head)"/>'
        )
        parts.append(f'<text x="{label_x}" y="{label_y}" font-size="12" fill="#333">{escape(label)}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


if __name__ == "__main__":
    TARGET.write_text(picture(), encoding="utf-8")
