"""One file with everything in it: tables, figures, the explorer and its data, and a policy that lets nothing in."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Sequence
from hashlib import sha256
from importlib.resources import files

import soar_dlm
from soar_dlm.evals.runs import Run
from soar_dlm.report.chunks import Chunks, compact
from soar_dlm.report.drawings import Drawing, markup
from soar_dlm.report.explorer import explorer
from soar_dlm.report.tables import NOTES, counted, tables, text
from soar_dlm.web import SCRIPTS, STYLES, asset, joined


def report_page(runs: Sequence[Run], figures: Sequence[Drawing] = ()) -> str:
    """The page as HTML; the same results give the same bytes.

    1. It loads nothing: its content security policy allows the scripts and styles in it, by their hashes, and no
       connection.
    2. Whatever a model, a task or a user named or wrote is text: escaped, or in JSON that the page inserts as text.
    3. Traces are unpacked by the browser when a problem is opened.
    """
    chunks = Chunks()
    data = explorer(runs, chunks)
    style = joined([*map(asset, STYLES), _own("report.css")])
    script = joined([*map(asset, SCRIPTS), _own("report.js")])
    models = list(dict.fromkeys(run.model for run in runs))
    return _filled(
        _own("report.html"),
        policy=_policy(style, script),
        style=style,
        script=script,
        title=text(", ".join(models)),
        lede=_lede(runs),
        facts="".join(f"<div><dt>{name}</dt><dd>{text(told)}</dd></div>" for name, told in _facts(runs)),
        tables=tables(runs),
        notes=text(NOTES),
        figures_hidden="" if figures else "hidden",
        figures="\n".join(map(_figure, figures)),
        missing=_missing(runs),
        version=text(soar_dlm.__version__),
        data=compact(data),
        chunks="\n".join(chunks.elements()),
    )


def _filled(template: str, **values: str) -> str:
    """The template with its {{names}} filled in; what is filled in is not searched for names."""
    return re.sub(r"\{\{(\w+)\}\}", lambda found: values[found[1]], template)


def _own(name: str) -> str:
    return files("soar_dlm.report").joinpath(name).read_text(encoding="utf-8")


def _policy(style: str, script: str) -> str:
    allowed = {"script-src": script, "style-src": style}
    rules = [f"{rule} 'sha256-{_hash(source)}'" for rule, source in allowed.items()]
    return "; ".join(["default-src 'none'", *rules, "base-uri 'none'", "form-action 'none'"])


def _hash(source: str) -> str:
    return base64.b64encode(sha256(source.encode()).digest()).decode()


def _lede(runs: Sequence[Run]) -> str:
    methods = {method.label for run in runs for method in run.methods.values()}
    problems = sum(run.problems for run in runs)
    tasks = dict.fromkeys(run.task for run in runs)
    return text(f"{counted(len(methods), 'method')} on {counted(problems, 'problem')} of {', '.join(tasks)}.")


def _facts(runs: Sequence[Run]) -> Iterator[tuple[str, str]]:
    """What the results depend on; where runs differ, everything once."""
    yield "Model", _once(_model(run) for run in runs)
    yield "Machine", _once(_machine(run) for run in runs)
    yield "Versions", _once(_versions(run) for run in runs)
    yield "Library", _once(_library(one) for run in runs for one in run.results.libraries) or "not recorded"
    yield "Problems", _once(f"{run.name} {run.results.settings['problems_sha256'][:12]}" for run in runs)


def _once(told: Iterator[str]) -> str:
    return "; ".join(dict.fromkeys(told))


def _model(run: Run) -> str:
    settings = run.results.settings
    weights = settings["weights_sha256"]
    details = [settings["dtype"].removeprefix("torch."), settings["revision"], weights and f"weights {weights[:12]}"]
    return f"{run.model} ({', '.join(str(one) for one in details if one)})"


def _machine(run: Run) -> str:
    machine, threads = run.results.machine, run.results.settings["threads"]
    cores = machine.get("cores")
    parts = [machine.get("accelerator"), machine["cpu"], cores and counted(cores, "core"), counted(threads, "thread")]
    return ", ".join(str(part) for part in [*parts, machine.get("system")] if part)


def _versions(run: Run) -> str:
    return ", ".join(f"{name} {version}" for name, version in run.results.settings["versions"].items())


def _library(found: dict[str, object]) -> str:
    commit = f", commit {str(found['commit'])[:12]}" if found.get("commit") else ""
    return f"soar-dlm {found.get('version')}{commit}{' with changes' if found.get('modified') else ''}"


def _figure(drawing: Drawing) -> str:
    return (
        f"<figure id='figure-{text(drawing.slug)}'><div class='picture'>{markup(drawing)}</div>"
        f"<figcaption>{text(drawing.caption)}</figcaption></figure>"
    )


def _missing(runs: Sequence[Run]) -> str:
    """What the explorer cannot show, and how to have it."""
    without = [run.name for run in runs if not run.traced]
    if not without:
        return ""
    return text(
        f"Without traces: {', '.join(without)}. Of these the explorer has the texts, but not the prompts, the right "
        "answers and the steps. To have them, run soar eval with --traces in another folder."
    )
