"""Figures over one or many results, as ``--stats`` shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table

if TYPE_CHECKING:
    from soar_dlm.results import Result


class Totals:
    """Sums over results, so that a long run keeps no result in memory."""

    def __init__(self) -> None:
        self.texts = self.steps = self.forwards = 0
        self.tokens = self.confidence = 0.0
        self._counts: dict[str, int] = {}
        self._measures: dict[str, tuple[float, int]] = {}
        self.reasons: set[str] = set()

    def add(self, result: Result) -> None:
        committed = result.tokens_per_forward * result.forwards
        self.texts += 1
        self.steps += result.steps
        self.forwards += result.forwards
        self.tokens += committed
        self.confidence += result.mean_confidence * committed
        self.reasons.add(result.finish_reason)
        for name, value in result.details.items():
            if isinstance(value, int):
                self._counts[name] = self._counts.get(name, 0) + value
            else:
                total, number = self._measures.get(name, (0.0, 0))
                self._measures[name] = (total + value, number + 1)

    def _details(self) -> dict[str, str]:
        """What the searches counted, in all, and what they measured, on average."""
        means = {name: f"{total / number:.4f}" for name, (total, number) in self._measures.items()}
        prefix = "" if self.texts == 1 else "mean "
        counts = {name: f"{count}" for name, count in self._counts.items()}
        return {f"{prefix}{name}": mean for name, mean in means.items()} | counts

    def table(self, seconds: float) -> Table:
        table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), style="dim")
        rows = {
            "texts": f"{self.texts}",
            "steps": f"{self.steps}",
            "forwards": f"{self.forwards}",
            "tokens per forward": f"{self.tokens / max(self.forwards, 1):.2f}",
            "mean confidence": f"{self.confidence / max(self.tokens, 1):.4f}",
            **self._details(),
            "ended by": ", ".join(sorted(self.reasons)) or "-",
            "seconds": f"{seconds:.2f}",
            "tokens per second": f"{self.tokens / max(seconds, 1e-9):.1f}",
        }
        for name, value in rows.items():
            table.add_row(name, value)
        return table
