"""The hook that makes the library known to lm-evaluation-harness, run in an interpreter that does not have it yet."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path

HOOK = Path(__file__).parent.parent / "lm_eval_hook"
PROGRAM = f"""
import sys
sys.path += [{str(HOOK)!r}, {sysconfig.get_path("purelib")!r}]
before, finders = set(sys.modules), list(sys.meta_path)
import soar_dlm_lm_eval
assert set(sys.modules) - before == {{"soar_dlm_lm_eval"}}, "the hook imports nothing"
import email
assert "lm_eval" not in sys.modules
assert len(sys.meta_path) == len(finders) + 1
import lm_eval.models
from lm_eval.api.registry import model_registry
assert "soar" in model_registry
assert not any(isinstance(finder, soar_dlm_lm_eval.AfterModels) for finder in sys.meta_path), "it is gone afterwards"
assert "soar_dlm" not in sys.modules, "the model is imported when it is used"
"""


def test_the_hook_waits_for_the_harness_and_then_adds_one_name() -> None:
    done = subprocess.run([sys.executable, "-S", "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_library_itself_installs_no_hook() -> None:
    """A .pth file of the library put a finder into every interpreter, also without the harness."""
    package = Path(__file__).parent.parent / "pyproject.toml"
    assert "force-include" not in package.read_text()
    assert not list((package.parent / "src").rglob("*.pth"))
