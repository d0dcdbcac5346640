"""Draws docs/figures/soar.svg, the picture of the README. A schematic: the words and numbers are made up."""

from __future__ import annotations

from pathlib import Path

INK, FAINT, PAPER = "#1f2933", "#9aa5b1", "#ffffff"
SEARCH, PARALLEL, DONE, OPEN = "#2f6fde", "#2e9d63", "#e8edf3", "#f7f8fa"
WORDS = ["So", "she", "has", "7", "-", "3", "=", "4"]
CELL, GAP, HEIGHT = 46, 5, 30

parts: list[str] = []


def text(
    x: float, y: float, content: str, size: int = 13, fill: str = INK, anchor: str = "start", bold: bool = False
) -> None:
    weight = ' font-weight="600"' if bold else ""
    parts.append(
        f'<text x="{x}" y="{y}" font-size="{size}" fill="{fill}" text-anchor="{anchor}"{weight}>{content}</text>'
    )


def canvas(x: float, y: float, filled: set[int], new: set[int], colour: str, rank: str, faded: bool = False) -> None:
    """One candidate: filled words grey, words of this step coloured, masks as empty cells."""
    parts.append(f'<g opacity="{0.35 if faded else 1}">')
    for place, word in enumerate(WORDS):
        left = x + place * (CELL + GAP)
        known = place in filled or place in new
        fill = colour if place in new else DONE if known else OPEN
        parts.append(
            f'<rect x="{left}" y="{y}" width="{CELL}" height="{HEIGHT}" rx="5" fill="{fill}" stroke="{FAINT}" '
            f'stroke-width="{0 if known else 1}" stroke-dasharray="3 3"/>'
        )
        if known:
            text(left + CELL / 2, y + 20, word, fill=PAPER if place in new else INK, anchor="middle")
    text(x + len(WORDS) * (CELL + GAP) + 4, y + 20, rank, 12, FAINT)
    parts.append("</g>")


def arrow(x1: float, y1: float, x2: float, y2: float, colour: str) -> None:
    middle = (y1 + y2) / 2
    parts.append(
        f'<path d="M{x1} {y1} C{x1} {middle} {x2} {middle} {x2} {y2}" fill="none" stroke="{colour}" stroke-width="2" '
        f'marker-end="url(#tip-{colour[1:]})"/>'
    )


def main() -> None:
    width, left = 830, 270
    heads = "".join(
        f'<marker id="tip-{c[1:]}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        f'<path d="M0 0L8 4L0 8z" fill="{c}"/></marker>'
        for c in (SEARCH, PARALLEL)
    )
    text(24, 42, "Unsure: search", 17, SEARCH, bold=True)
    text(24, 64, "No position is above the threshold,", 12)
    text(24, 81, "so the K best positions are tried", 12)
    text(24, 98, "and the K best orders are kept.", 12)
    canvas(left, 24, {6}, set(), SEARCH, "start")
    arrow(left + 120, 58, left + 74, 92, SEARCH)
    arrow(left + 260, 58, left + 278, 132, SEARCH)
    canvas(left, 96, {6}, {1}, SEARCH, "rank 0.71")
    canvas(left, 136, {6}, {5}, SEARCH, "rank 0.68")
    text(24, 216, "Sure: accelerate", 17, PARALLEL, bold=True)
    text(24, 238, "Every position above the threshold", 12)
    text(24, 255, "is committed at once, and only the", 12)
    text(24, 272, "best candidate continues.", 12)
    arrow(left + 278, 170, left + 200, 206, PARALLEL)
    canvas(left, 210, {5, 6}, {3, 4, 7}, PARALLEL, "rank 0.83")
    canvas(left, 250, {1, 6}, {0}, SEARCH, "rank 0.66, dropped", faded=True)
    arrow(left + 200, 244, left + 120, 306, PARALLEL)
    canvas(left, 310, {3, 4, 5, 6, 7}, {0, 1, 2}, PARALLEL, "rank 0.89")
    body = "\n".join(parts)
    picture = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} 364" '
        f'font-family="Inter, Helvetica, Arial, sans-serif" role="img" '
        f'aria-label="SOAR: search over the order of commits when unsure, parallel commits when sure">\n'
        f'<defs>{heads}</defs>\n<rect width="{width}" height="364" rx="10" fill="{PAPER}"/>\n{body}\n</svg>\n'
    )
    (Path(__file__).parent / "soar.svg").write_text(picture)


if __name__ == "__main__":
    main()
