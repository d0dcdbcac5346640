"""Results and traces as HTML for notebooks.

1. What a page without scripts shows stands for itself: the finished canvas, coloured by confidence, with the step of
   each token on hovering, and a picture of the order of writing. Where scripts run, a slider goes over the steps.
2. Text and colours are those of the page, so that it may be light or dark; styles are inline, as some pages drop
   style sheets.
3. Whatever a model or a user wrote is escaped.
4. The same value always has the same HTML. Its id is a digest of the content.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from hashlib import blake2b
from html import escape
from math import exp

from soar_dlm.engine.trace import Trace
from soar_dlm.figures import Figures
from soar_dlm.notebook.player import packed, player
from soar_dlm.notebook.spans import Span, clean, legend, paper, spans
from soar_dlm.notebook.strip import Mark, answered, strip
from soar_dlm.playback import Playback
from soar_dlm.results import Infilling, Result

_CANVAS = "white-space:pre-wrap;overflow-wrap:anywhere;font-family:monospace;line-height:1.5;margin:.3em 0"
_SMALL = "font-size:85%;opacity:.75;margin:.2em 0;white-space:pre-wrap"
_LEGEND = "font-size:85%;margin:.2em 0"


def result_html(result: Result) -> str:
    """A text with its figures, and how it came about if its trace was kept."""
    head = f'<div style="{_SMALL}">{escape(_figures(result))}</div>'
    if len(result.trace):
        return _framed(head, result.trace)
    text = result.whole if isinstance(result, Infilling) else result.text
    return _box(f"{head}{_canvas([Span(clean(text))])}")


def trace_html(trace: Trace) -> str:
    """How a text came about; token ids where the trace does not say what they mean."""
    head = f'<div style="{_SMALL}">{len(trace)} steps, {sum(record.forwards for record in trace)} forwards</div>'
    return _framed(head, trace) if len(trace) else _box(head)


def _framed(head: str, trace: Trace) -> str:
    return _box(f"{head}{_ids(trace)}") if trace.scene is None else _played(head, trace)


def _played(head: str, trace: Trace) -> str:
    """The finished canvas, its strip and the slider."""
    playback, figures = Playback(trace), Figures()
    assert trace.scene is not None
    places, events = playback.standings(), list(playback.events())
    canvases = [playback.canvas(place) for place in places]
    frames = [spans(canvas, trace.scene) for canvas in canvases]
    lines = ["step 0  nothing is written yet", *(figures.line(event) for event in events)]
    marks = [
        Mark(at, cell.step, trace.scene.share(cell.confidence))
        for at, cell in canvases[-1].items()
        if cell.step is not None and cell.confidence is not None
    ]
    standing = ((record.step, record.standing) for record in trace)
    passed = [Mark(at, step) for step, entry in standing if entry is not None for at in entry.positions]
    body = (
        f"{head}{_canvas(frames[-1])}"
        f'<div class="soar-line" style="{_SMALL};font-family:monospace">{escape(lines[-1])}</div>'
        f'{strip(answered(marks, passed), len(trace))}<div style="{_LEGEND}">{legend()}</div>'
    )
    return _box(body, packed(frames, lines))


def _ids(trace: Trace) -> str:
    """The answer as token ids, for a trace that does not say what they mean."""
    steps: dict[int, float] = {}
    for place in trace.places():
        entry = trace.at(place)
        steps = replace(entry, confidence=(float(place.step),) * len(entry.positions)).follow(steps)
    places, sure = trace.places(), trace.confidence_at()
    tokens = trace.tokens_at(places[-1]) if places else {}
    shares = {at: one if one >= 0 else exp(one) for at, one in sure.items()}
    shown = [
        Span(f"{tokens[at]} ", paper(shares[at]), f"position {at}, step {steps[at]:.0f}, confidence {sure[at]:.3f}")
        for at in sorted(tokens)
    ]
    marks = [Mark(at, int(steps[at]), shares[at]) for at in sorted(tokens)]
    note = "Token ids: this trace does not say what they mean."
    return f'{_canvas(shown)}{strip(marks, len(trace))}<div style="{_LEGEND}">{note} {legend()}</div>'


def _canvas(shown: Iterable[Span]) -> str:
    return f'<div class="soar-canvas" style="{_CANVAS}">{"".join(span.html for span in shown)}</div>'


def _box(body: str, data: str | None = None) -> str:
    """The whole, with a slider if there are frames for it."""
    identity = f"soar-{blake2b((body + (data or '')).encode(), digest_size=6).hexdigest()}"
    return f'<div id="{identity}" class="soar-dlm">{body}</div>{"" if data is None else player(identity, data)}'


def _figures(result: Result) -> str:
    details = {name: f"{value}" if isinstance(value, int) else f"{value:.4f}" for name, value in result.details.items()}
    parts = (
        f"{result.steps} steps",
        f"{result.forwards} forwards",
        f"{result.tokens_per_forward:.2f} tokens per forward",
        f"mean confidence {result.mean_confidence:.3f}",
        *(f"{name} {value}" for name, value in details.items()),
        f"ended by {result.finish_reason}",
    )
    return ", ".join(parts)
