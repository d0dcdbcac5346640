"""The library's tasks as tasks of lm-evaluation-harness: ``lm_eval --include_path`` takes :data:`FOLDER`.

Same prompts, stop strings, lengths and judges as ``soar eval`` has; the names begin with ``soar_``.
"""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent
