"""Running the command ``soar`` in tests."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

from typer.testing import CliRunner

from soar_dlm.cli.main import app

runner = CliRunner()
BASE = ["generate", "-m", "random-llada", "-n", "12"]


def soar(
    *args: str, stdin: str = "", code: int = 0, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """The command as a user runs it, in a process of its own."""
    run = subprocess.run(
        [sys.executable, "-m", "soar_dlm", *args],
        input=stdin,
        capture_output=True,
        text=True,
        env={**os.environ, "NO_COLOR": "1", **(env or {})},
        check=False,
    )
    assert run.returncode == code, run.stderr
    assert "Traceback" not in run.stderr
    return run


def invoke(*args: str, stdin: str | None = None) -> Any:
    result = runner.invoke(app, list(args), input=stdin)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result
