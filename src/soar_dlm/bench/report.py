"""What a race has shown, as a table and as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from soar_dlm.bench.race import Measured, reference
from soar_dlm.evals.provenance import library, machine, machine_line
from soar_dlm.strict_json import json_text, plain

NONE = "n/a"
HEAD = (
    "entrant",
    "seconds",
    "tokens/s",
    "speed-up",
    "forwards",
    "rows",
    "tokens/forward",
    "backbone",
    "head",
    "search",
    "host",
    "peak MB",
)
NOTES = (
    "Seconds: median (least to greatest). Speed-up: tokens per second over those of {against} in the same round, "
    "median (least to greatest). Forwards: evaluations of a canvas; rows: how many of them share a run of the model. "
    "Host: all time outside backbone, head and search, such as reading logits. Peak: memory above what was in use "
    "before."
)


@dataclass(frozen=True)
class Report:
    """The lanes of a race, the entrant that others are held ``against``, and the ``settings`` of all.

    ``over`` is the variable that lanes differ in, if there is one.
    """

    lanes: Sequence[Measured]
    settings: Mapping[str, Any]
    against: str | None = None
    over: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "against", next(iter(reference(self.lanes, self.against).values())).name)

    @property
    def machine(self) -> str:
        return machine_line()

    @property
    def about(self) -> str:
        """What was decoded, and how."""
        return ", ".join(f"{name} {value}" for name, value in self.settings.items() if value is not None)

    @property
    def notes(self) -> list[str]:
        first = f"{self.settings['model']}: {self.about.partition(', ')[2]}."
        more = "Of first: tokens per second over those at the first value, in the same round." if self.over else ""
        return [first, f"{self.machine}.", f"{NOTES.format(against=self.against)} {more}".rstrip()]

    def speed_ups(self, one: Measured) -> list[float]:
        """Against the reference at the same value, round by round."""
        return one.ratios(reference(self.lanes, self.against)[one.lane.value])

    def growth(self, one: Measured) -> list[float]:
        """Against the same entrant at the first value, round by round."""
        return one.ratios(next(other for other in self.lanes if other.name == one.name))

    @property
    def head(self) -> list[str]:
        return [*([self.over] if self.over else []), *HEAD, *(["of first"] if self.over else [])]

    def rows(self) -> list[list[str]]:
        """The cells of the table, a row for each lane."""
        return [self._row(one) for one in self.lanes]

    def _row(self, one: Measured) -> list[str]:
        cells = [
            one.name,
            spread(one.seconds),
            f"{one.tokens_per_second:.1f}",
            spread(self.speed_ups(one)),
            f"{one.forwards:,}",
            f"{one.rows_per_run:.1f}",
            f"{one.tokens_per_forward:.2f}",
            *(f"{share:.0%}" for share in one.shares.values()),
            NONE if one.peak is None else f"{one.peak / 1e6:,.0f}",
        ]
        if self.over is None:
            return cells
        return [str(one.lane.value), *cells, spread(self.growth(one))]

    def markdown(self) -> str:
        lines = [f"| {' | '.join(self.head)} |", "|" + "---|" * len(self.head)]
        lines += [f"| {' | '.join(row)} |" for row in self.rows()]
        return "\n".join([*lines, "", *self.notes]) + "\n"

    def json(self) -> str:
        """Everything, with the seconds of every round."""
        found = {
            "machine": {**machine(), "line": self.machine},
            "library": library(),
            "settings": dict(self.settings),
            "rounds": len(self.lanes[0].seconds),
            "against": self.against,
            "over": self.over,
            "lanes": [self._as_dict(one) for one in self.lanes],
        }
        return json_text(plain(found))

    def _as_dict(self, one: Measured) -> dict[str, Any]:
        ratios = self.speed_ups(one)
        return {
            "entrant": one.name,
            "value": one.lane.value,
            "seconds": one.seconds,
            "median": one.median,
            "tokens": one.tokens,
            "tokens_per_second": one.tokens_per_second,
            "speed_ups": ratios,
            "speed_up": median(ratios),
            "of_first": median(self.growth(one)),
            "forwards": one.forwards,
            "runs": one.runs,
            "rows": one.rows,
            "tokens_per_forward": one.tokens_per_forward,
            "shares": one.shares,
            "peak_bytes": one.peak,
        }


def spread(values: Sequence[float]) -> str:
    """The median, with the least and the greatest where there are several."""
    middle = _number(median(values))
    return middle if len(values) < 2 else f"{middle} ({_number(min(values))} to {_number(max(values))})"


def _number(value: float) -> str:
    """At least three digits that tell something."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:#.3g}".rstrip(".")
