"""Parts of reports in Markdown: tables of methods with intervals and significance."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from soar_dlm.evals.comparison import Summary
from soar_dlm.evals.results import Results
from soar_dlm.evals.tables import BETTER, SURE, WORSE

SIGNS = f"{BETTER} marks what is better than greedy with p < {SURE} (McNemar's exact test), {WORSE} what is worse."
MEASURES = (
    "Accuracy with its 95% interval (Wilson). Forwards (evaluations of one candidate) and steps are means per problem. "
    "Speed-up is greedy's time over the method's for the same problems, decoded in turns. p is McNemar's exact test "
    "against greedy, with the problems gained and lost."
)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield f"| {' | '.join(row)} |"


def methods_table(found: Mapping[str, Summary]) -> Iterator[str]:
    """Everything about each method; the first is the baseline."""
    head = ["method", "accuracy", "forwards", "steps", "tokens/forward", "speed-up", "p (gained, lost)"]
    base = next(iter(found))
    rows = [
        [name, rate(one), f"{one.forwards:.1f}", f"{one.steps:.1f}", f"{one.tokens_per_forward:.2f}"]
        + [f"{one.speed_up:.2f}", "" if name == base else significance(one)]
        for name, one in found.items()
    ]
    yield from table(head, rows)


def rate(found: Summary) -> str:
    low, high = found.interval
    return f"{found.accuracy:.1%} ({low:.1%} to {high:.1%})"


def p_text(found: Summary) -> str:
    return "< 0.001" if found.p_value < 0.001 else f"{found.p_value:.3f}"


def significance(found: Summary) -> str:
    return f"{p_text(found)} (+{found.gained}/-{found.lost})"


def made_with(run: Results) -> str:
    """The model, the machine and the versions, in one line."""
    versions = ", ".join(f"{name} {version}" for name, version in run.settings["versions"].items())
    return (
        f"Model {run.settings['model']} ({run.settings['dtype']}); {run.machine['cpu']}, "
        f"{run.machine['cores']} cores, {run.settings['threads']} threads; {versions}."
    )
