"""The report: what was measured, as Markdown."""

import platform
import statistics
from dataclasses import dataclass, field
from datetime import date


@dataclass
class Figure:
    """A column: what is measured, in which unit, and which direction is better."""

    title: str
    unit: str
    is_rate: bool


FIGURES: dict[str, Figure] = {
    "loop": Figure("one loop", "iterations/s", True),
    "loops": Figure("many loops", "iterations/s", True),
    "polls": Figure("polls", "polls/s", True),
    "pages": Figure("pages", "pages/s", True),
    "restart": Figure("restart", "ms", False),
    "starts": Figure("sleepers: starts", "runs/s", True),
    "memory": Figure("sleepers: memory", "KB/run", False),
    "disk": Figure("sleepers: disk", "KB/run", False),
}


@dataclass
class Row:
    """What is known about a peer."""

    name: str
    version: str = ""
    setting: str = ""
    syncs: str = "not counted"
    failure: str = ""
    """Why the peer could not be measured at all."""
    figures: dict[str, list[float]] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    """Why a figure is missing."""

    def median(self, figure: str) -> float | None:
        values = self.figures.get(figure)
        return statistics.median(values) if values else None


def number(value: float) -> str:
    """Three digits are enough for figures of a shared machine."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def line(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def table(head: list[str], rows: list[list[str]]) -> list[str]:
    return [line(head), line(["---"] * len(head)), *map(line, rows), ""]


def cell(row: Row, name: str) -> str:
    """The median, and the range if there are several."""
    values = row.figures.get(name)
    if not values:
        return "–"
    median = number(statistics.median(values))
    if len(values) == 1:
        return median
    return f"{median} ({number(min(values))} to {number(max(values))})"


def ratio(windlass: Row, row: Row, name: str) -> str:
    """How many times better Windlass is: above 1 it wins, below 1 it loses."""
    own, other = windlass.median(name), row.median(name)
    if not own or not other:
        return "–"
    times = own / other if FIGURES[name].is_rate else other / own
    return f"**{times:.2f}**" if times < 1 else f"{times:.2f}" if times < 10 else f"{times:.0f}"


def report(rows: list[Row], conditions: str, when: date) -> str:
    """The whole report."""
    shown = [name for name in FIGURES if any(row.figures.get(name) for row in rows)]
    lines = [f"{when.isoformat()}, {platform.system()} {platform.release()}, {conditions}", ""]
    measured = [row for row in rows if not row.failure]
    settings = [[row.name, row.version, row.setting, row.syncs] for row in measured]
    settings += [[row.name, row.version or "–", f"not measured: {row.failure}", "–"] for row in rows if row.failure]
    lines += table(["peer", "version", "configuration", "syncs an iteration"], settings)
    lines += ["Medians, with the lowest and the highest value of the rounds:", ""]
    heads = [f"{FIGURES[name].title}, {FIGURES[name].unit}" for name in shown]
    lines += table(["peer", *heads], [[row.name, *(cell(row, name) for name in shown)] for row in rows])
    for windlass in (row for row in measured if row.name.startswith("Windlass")):
        lines += [f"{windlass.name}, divided by the peer (above 1: Windlass is better; **bold**: it loses):", ""]
        others = [row for row in rows if row is not windlass]
        titles = [FIGURES[name].title for name in shown]
        lines += table(["peer", *titles], [[row.name, *(ratio(windlass, row, name) for name in shown)] for row in others])
    reasons = [f"- {row.name}, {FIGURES[name].title if name in FIGURES else name}: {text}" for row in rows for name, text in row.reasons.items()]
    if reasons:
        lines += ["Notes:", "", *reasons, ""]
    return "\n".join(lines)
