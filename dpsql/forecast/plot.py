"""A report as a picture in SVG: a panel for each key of the policy, a line for each question."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from dpsql.forecast.records import error_of, finite, first_column
from dpsql.forecast.report import Comparison, Forecast, Report

WIDTH, HEIGHT, COLUMNS = 460, 300, 2
"""The size of a panel, and how many stand side by side."""
TOP, LEFT, RIGHT, BOTTOM = 40, 62, 16, 44
LINE = 16
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000", "#8a6d3b")
"""Colours that also people with colour blindness tell apart."""
DASHES = ("", "6 3", "2 3")
"""More questions than colours have dashed lines."""


@dataclass(frozen=True, slots=True)
class _Line:
    """The errors of a question, from left to right; None where there is none."""

    question: int
    errors: tuple[float | None, ...]


def draw(report: Report, size: int, notice: str) -> str:
    """The picture. Errors are in percent: of noise alone, and also of cuts if they are known."""
    drawn = ((c, list(_lines(c, size, looked=report.looked))) for c in report.comparisons)
    panels = [(comparison, lines) for comparison, lines in drawn if lines]
    rows = -(-len(panels) // COLUMNS)
    legend = [f"{i}. {_label(report, i - 1)}" for i in _numbers([lines for _, lines in panels])]
    wide, head = WIDTH * COLUMNS, 2 * LINE + 12
    high = head + HEIGHT * rows + LINE * (len(legend) + 1)
    frame = f'width="{wide}" height="{high}" viewBox="0 0 {wide} {high}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {frame} font-family="sans-serif" font-size="12">',
        f'<rect width="{wide}" height="{high}" fill="white"/>',
        _text(12, 20, _title(report, size), size=14),
        _text(12, 20 + LINE, notice),
    ]
    for place, (comparison, lines) in enumerate(panels):
        x, y = WIDTH * (place % COLUMNS), head + HEIGHT * (place // COLUMNS)
        parts += _panel(comparison, lines, x, y)
    for row, text in enumerate(legend):
        number, y = int(text.partition(".")[0]), head + HEIGHT * rows + LINE * (row + 1)
        parts += [_stroke([(12, y - 4), (40, y - 4)], number), _text(48, y, text)]
    return "\n".join((*parts, "</svg>")) + "\n"


def _title(report: Report, size: int) -> str:
    if report.looked:
        return "Error of the median group in percent: noise 19 times in 20, and what is cut"
    return f"Noise in percent, 19 times in 20, of groups with {size:,} rows"


def _label(report: Report, place: int) -> str:
    text = " ".join(report.questions[place].text.split())
    return text if len(text) <= 120 else f"{text[:119]}…"


def _numbers(panels: Sequence[Sequence[_Line]]) -> list[int]:
    """The numbers of all questions that have a line, from 1."""
    return sorted({line.question for lines in panels for line in lines})


def _lines(comparison: Comparison, size: int, *, looked: bool) -> Iterator[_Line]:
    for place, found in comparison.forecasts.items():
        errors = tuple(error_of(forecast, size, looked=looked) for forecast in found)
        if comparison.knob.column and not looked:
            errors = _of_one_value(comparison, found, size) or errors
        if any(errors):
            yield _Line(place + 1, errors)


def _of_one_value(
    comparison: Comparison, found: Sequence[Forecast], size: int
) -> tuple[float | None, ...] | None:
    """Errors as shares of the value under the policy's own range; None if that one is not tried.

    The made-up values of another range are others, and their shares cannot be compared.
    """
    pairs = zip(comparison.knob.variants, found, strict=True)
    own = next((forecast for variant, forecast in pairs if variant.own), None)
    share = None if own is None else error_of(own, size, looked=False)
    widths = [_width(forecast, size) for forecast in found]
    width = None if own is None else _width(own, size)
    if not share or not width:
        return None
    return tuple(None if each is None else share * each / width for each in widths)


def _width(forecast: Forecast, size: int) -> float | None:
    """The width of the first column that has one."""
    column = first_column(forecast)
    return None if column is None else finite(column.width(size))


def _panel(comparison: Comparison, lines: Sequence[_Line], x: int, y: int) -> list[str]:
    known = [e for line in lines for e in line.errors if e]
    low, high = math.floor(math.log10(min(known))), math.ceil(math.log10(max(known)))
    high = max(high, low + 1)
    right, bottom = x + WIDTH - RIGHT, y + HEIGHT - BOTTOM
    left, top = x + LEFT, y + TOP

    def down(error: float) -> float:
        return bottom - (math.log10(error) - low) / (high - low) * (bottom - top)

    values = comparison.knob.variants
    across = [
        left + 20 + (right - left - 40) * i / max(1, len(values) - 1) for i in range(len(values))
    ]
    parts = [_text(left, y + TOP - 14, comparison.knob.key, size=13)]
    for power in range(low, high + 1):
        at = down(10.0**power)
        parts.append(f'<line x1="{left}" y1="{at:.1f}" x2="{right}" y2="{at:.1f}" stroke="#ddd"/>')
        parts.append(_text(left - 6, at + 4, f"{100 * 10.0**power:,g} %", anchor="end"))
    for place, (at, variant) in enumerate(zip(across, values, strict=True)):
        text = f"{variant.value} (now)" if variant.own else variant.value
        parts.append(_text(at, bottom + LINE * (1 + place % 2), text, anchor="middle"))
    for line in lines:
        points = [(at, down(e)) for at, e in zip(across, line.errors, strict=True) if e]
        parts.append(_stroke(points, line.question))
        parts += [
            f'<circle cx="{a:.1f}" cy="{b:.1f}" r="2.5" fill="{_colour(line.question)}"/>'
            for a, b in points
        ]
    return parts


def _colour(number: int) -> str:
    return COLOURS[(number - 1) % len(COLOURS)]


def _stroke(points: Sequence[tuple[float, float]], number: int) -> str:
    dash = DASHES[(number - 1) // len(COLOURS) % len(DASHES)]
    path = " ".join(f"{a:.1f},{b:.1f}" for a, b in points)
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    return f'<polyline points="{path}" fill="none" stroke="{_colour(number)}"{dashed}/>'


def _text(x: float, y: float, text: str, *, anchor: str = "start", size: int = 11) -> str:
    shown = escape("".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text))
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}">{shown}</text>'
