"""The README.md of a trained checkpoint: what it is, how it was made, how to run it."""

from __future__ import annotations

import json
from pathlib import Path

from soar_dlm import files
from soar_dlm.tasks.catalogue import make_task
from soar_dlm.train.folder import RunFolder
from soar_dlm.train.recipe import Recipe

_CARD = """\
---
library_name: soar-dlm
license: {license}
pipeline_tag: text-generation
tags: [diffusion-language-model, {family}]
---
# {name}

{about}

A masked diffusion language model of {parameters:,} parameters in the on-disk layout of {title}, trained with
`soar train` for {step:,} steps on {data}. It is made for trying out decoding strategies, not for giving advice.

```python
import soar_dlm

lm = soar_dlm.load("{name}")  # or the folder of these files
{example}
```
{results}
The recipe with all settings and the log of the run are in `training/`.
"""


def write_card(folder: RunFolder, recipe: Recipe, parameters: int, step: int) -> None:
    """Write the card, with the last validation if there is one."""
    tasks = dict.fromkeys(name for stage in range(len(recipe.stages) + 1) for name in recipe.data_of(stage).tasks)
    sources = [*tasks, *(Path(name).name for name in recipe.data.files)]
    found = [entry for entry in folder.entries() if "validation" in entry and "step" in entry]
    results = ""
    if found and found[-1]["validation"]:
        lines = [f"| {name} | {share:.1%} |" for name, share in found[-1]["validation"].items()]
        problems = found[-1].get("problems", recipe.report.problems)
        head = (
            f"\nHeld-out accuracy at step {found[-1]['step']:,} on {problems:,} validation problems of each task, "
            f"decoded with `{recipe.report.strategy}`:\n"
        )
        results = "\n".join([head, "| task | accuracy |", "|---|---|", *lines, ""])
    card = _CARD.format(
        license=recipe.license,
        family=recipe.model.family,
        name=recipe.name,
        about=recipe.about or "A small model trained from scratch.",
        parameters=parameters,
        title=recipe.model.layout.title,
        step=step,
        data=", ".join(sources),
        example=_example(recipe),
        results=results,
    )
    files.write_text(folder.path / "README.md", card)


def _example(recipe: Recipe) -> str:
    """An example of what the model can do, as code: a held-out problem if it learned from tasks."""
    for name in recipe.data.tasks:
        task = make_task(name)
        problem = task.distinct("validation", 1)[0]
        if task.infills:
            around = f"prefix = {_quoted(problem.prompt)}\nsuffix = {_quoted(problem.suffix)}\n"
            return f"{around}print(lm.infill(prefix, suffix, length={task.canvas}).whole)"
        return _continued(problem.prompt, task.canvas)
    return _continued("Once upon a time", 64)


def _continued(prompt: str, canvas: int) -> str:
    return f"prompt = {_quoted(prompt)}\nprint(lm.generate(prompt, max_new_tokens={canvas}).text)"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
