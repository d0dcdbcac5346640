"""Who enters the arena: for each task a model, and for each strategy a grid of settings to choose from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from soar_dlm.errors import UnknownName
from soar_dlm.search.adaptive_parallel import AdaptiveParallel
from soar_dlm.search.core import Core
from soar_dlm.search.deliberate import Deliberate
from soar_dlm.search.entropy_bound import EntropyBound
from soar_dlm.search.factor import Factor
from soar_dlm.search.frechet import Frechet
from soar_dlm.search.freedave import FreeDave
from soar_dlm.search.greedy import Greedy
from soar_dlm.search.klass import Klass
from soar_dlm.search.lopa import Lopa
from soar_dlm.search.position_beam import PositionBeam
from soar_dlm.search.soar import Soar
from soar_dlm.search.strategy import Strategy

SYMBOLS = {"tokens_per_step": "n", "beam": "K", "threshold": "tau", "divergence": "KL", "factor": "f"}
"""How settings are called in tables where it is not by their own name."""

GREEDY, ADAPTIVE, DRAFT, PBS = "Greedy", "Adaptive Parallel", "Open draft", "PBS"
SOAR_2, SOAR_4, DELIBERATE = "SOAR, K=2", "SOAR, K=4", "Deliberate"
FACTOR, FRECHET, BOUND, KLASS = "Factor", "Fréchet", "Entropy bound", "KLASS"
LOPA, FREEDAVE, CORE = "LoPA", "FreeDave", "CORE"
BASELINE = f"{GREEDY}: n=1"


@dataclass(frozen=True)
class Contest:
    """What a task is decoded with: a model, the metric of those strategies that have one, and its thresholds."""

    task: str
    model: str = "mini-llada"
    metric: str = "probability"
    thresholds: tuple[float, ...] = (0.9, 0.95, 0.98, 0.99, 0.998, 0.9995)


CONTESTS = {
    one.task: one
    for one in (
        Contest("mini-gsm"),
        Contest("mini-code"),
        Contest("mini-sudoku"),
        Contest("mini-infill", "mini-dreamon", "neg_entropy", (-0.5, -0.2, -0.1, -0.05, -0.02, -0.005)),
    )
}


@dataclass(frozen=True)
class Entrant:
    """A strategy with one setting; ``name`` is what results call it."""

    strategy: str
    setting: str
    method: Strategy

    @property
    def name(self) -> str:
        return f"{self.strategy}: {self.setting}"


def parts_of(name: str) -> tuple[str, str]:
    """The strategy and the setting that an entrant's name is made of."""
    strategy, _, setting = name.partition(": ")
    return strategy, setting


@dataclass(frozen=True)
class Grid:
    """The settings of a strategy that are tried on validation problems; tables show the fields ``shown``."""

    strategy: str
    shown: tuple[str, ...]
    points: Sequence[Strategy]

    @property
    def entrants(self) -> list[Entrant]:
        return [Entrant(self.strategy, self._setting(point), point) for point in self.points]

    def _setting(self, point: Strategy) -> str:
        alone = isinstance(point, Deliberate) and point.skip == 0.0
        shown = [f"{SYMBOLS.get(name, name)}={getattr(point, name)}" for name in self.shown[: 1 if alone else None]]
        return ", ".join([*shown, "draft alone"] if alone else shown)


def contest(task: str) -> Contest:
    """The contest on this task; other tasks have none."""
    if task not in CONTESTS:
        raise UnknownName("contest on a task called", task, CONTESTS)
    return CONTESTS[task]


def grids(event: Contest) -> list[Grid]:
    """All strategies of a contest, in the order of tables."""
    metric, taus = event.metric, event.thresholds
    return [
        Grid(GREEDY, ("tokens_per_step",), [Greedy(count, metric) for count in (1, 2, 3)]),
        Grid(ADAPTIVE, ("threshold",), [AdaptiveParallel(tau, metric) for tau in taus]),
        Grid(DRAFT, ("threshold",), [AdaptiveParallel(tau, metric, defer_end=True) for tau in taus]),
        Grid(PBS, ("beam", "tokens_per_step"), [PositionBeam(*sizes, metric) for sizes in ((2, 1), (2, 2), (2, 3))]),
        Grid(SOAR_2, ("threshold",), [Soar(2, tau, metric) for tau in taus]),
        Grid(SOAR_4, ("threshold",), [Soar(4, tau, metric) for tau in taus]),
        Grid(FACTOR, ("factor",), [Factor(factor) for factor in (0.002, 0.01, 0.05, 0.2, 1.0)]),
        Grid(FRECHET, ("delta",), [Frechet(delta) for delta in (0.25, 0.75, 0.9, 0.98, 0.998)]),
        Grid(BOUND, ("gamma",), [EntropyBound(gamma) for gamma in (0.0001, 0.001, 0.01, 0.03, 0.1)]),
        Grid(KLASS, ("sure", "divergence"), [Klass(*bounds) for bounds in _KLASS]),
        Grid(LOPA, ("threshold", "branches"), [Lopa(*sizes) for sizes in _LOPA]),
        Grid(FREEDAVE, ("drafts",), [FreeDave(drafts, metric) for drafts in (2, 3, 4)]),
        Grid(CORE, ("every", "weak", "tokens_per_step"), [Core(*sizes, metric) for sizes in _CORE]),
        Grid(DELIBERATE, ("threshold", "accept", "tries"), deliberate_points()),
    ]


_KLASS = ((0.8, 0.01), (0.9, 0.01), (0.95, 0.01), (0.99, 0.01), (0.998, 0.001))
_LOPA = ((0.9, 3), (0.95, 3), (0.98, 3), (0.998, 3), (0.998, 1))
_CORE = ((8, 32, 1), (8, 32, 2), (4, 32, 2))


def deliberate_points() -> list[Strategy]:
    """Settings of Deliberate from quick to thorough, the same for all contests: drafts alone, and searches."""
    drafts = [Deliberate(threshold=tau, skip=0.0) for tau in (0.98, 0.99, 0.995, 0.998)]
    searches = [Deliberate(threshold=tau, accept=bar, tries=tries) for tau, bar, tries in _SEARCHES]
    return [*drafts, *searches]


_SEARCHES = (
    (0.99, -0.2, 4),
    (0.99, -0.1, 4),
    (0.99, -0.05, 5),
    (0.99, -0.02, 8),
    (0.995, -0.3, 4),
    (0.995, -0.2, 5),
    (0.995, -0.2, 8),
    (0.995, -0.1, 8),
    (0.998, -0.2, 6),
)
