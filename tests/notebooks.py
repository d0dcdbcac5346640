"""Runs the example notebook. ``python -m tests.notebooks`` writes what it shows back into it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

PATH = Path(__file__).parents[1] / "examples" / "notebook.ipynb"


def read() -> Any:
    return nbformat.read(PATH, as_version=4)


def executed() -> Any:
    """The notebook with the outputs of this run, without warnings, which are about the machine."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    notebook = read()
    NotebookClient(notebook, timeout=1800, kernel_name="python3", record_timing=False).execute(cwd=str(PATH.parent))
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [one for one in cell.outputs if one.get("name") != "stderr"]
    notebook.metadata.pop("language_info", None)  # has the version of Python
    return notebook


def texts(notebook: Any) -> list[str]:
    """What each cell with code printed, and the text of its value."""
    return ["".join(map(_text, cell.outputs)) for cell in notebook.cells if cell.cell_type == "code"]


def _text(output: Any) -> str:
    return str(output.text if output.output_type == "stream" else output.get("data", {}).get("text/plain", ""))


if __name__ == "__main__":
    nbformat.write(executed(), PATH)
