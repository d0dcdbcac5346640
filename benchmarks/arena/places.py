"""Where the arena keeps what: folders of results by task, stage and strategy, and a compact file for each task."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path

VALIDATION, TEST, TIMING = "validation", "test", "timing"
STAGES = (VALIDATION, TEST, TIMING)


def file_name(strategy: str) -> str:
    """A strategy's name in letters, digits and hyphens: Fréchet becomes frechet."""
    plain = unicodedata.normalize("NFKD", strategy).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]+", "-", plain.lower()).strip("-")


def strategy_folder(output: Path, task: str, stage: str, strategy: str) -> Path:
    """The results of a strategy on validation or test problems."""
    return output / "results" / f"{task}.{stage}" / file_name(strategy)


def timing_folder(output: Path, task: str, rows: int) -> Path:
    """The results of the timing run with at most so many rows in a forward."""
    return output / "results" / f"{task}.{TIMING}-{rows}"


def compact_file(output: Path, task: str) -> Path:
    return output / f"{task}.json"


def report_lock(output: Path) -> Path:
    """Whoever reads and writes compact files, the page and the figures holds this lock; it is not to be committed."""
    return output / "results" / "report.lock"
