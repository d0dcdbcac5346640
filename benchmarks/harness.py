"""lm-evaluation-harness end to end: its own command, the model ``soar``, real prompts and the library's tasks.

    python -m benchmarks.harness --data-dir DATA                    both embedded tasks in full (about ten minutes)
    python -m benchmarks.harness --data-dir DATA --limit 8          a first look

GSM8K is run twice: as the harness defines it, on the files in DATA, and as ``soar_gsm8k``. The harness's own HumanEval
fetches its judge from the Hub, so HumanEval is run as ``soar_humaneval``. Real benchmarks are limited to 8 problems.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import lm_eval

from soar_dlm.evals.harness_tasks import FOLDER

REAL_LIMIT = 8
LOCAL = "gsm8k_local"
MODEL = "pretrained=mini-llada,strategy=soar,beam=2,threshold=0.95"


def local_gsm8k(data: Path, folder: Path) -> None:
    """The harness's own GSM8K, with the files of ``data`` instead of the Hub's."""
    own = Path(lm_eval.__file__).parent / "tasks" / "gsm8k" / "gsm8k.yaml"
    files = {split: str((data / "gsm8k" / f"{split}.jsonl").resolve()) for split in ("train", "test")}
    lines = [f"include: {own}", f"task: {LOCAL}", "dataset_path: json", "dataset_name: null"]
    lines += [f"dataset_kwargs: {{data_files: {json.dumps(files)}}}", "num_fewshot: 4", ""]
    (folder / f"{LOCAL}.yaml").write_text("\n".join(lines))


def scores(task: str, limit: int | None, data: Path, folder: Path) -> dict[str, float]:
    """The scores that ``lm_eval`` reports for a task."""
    output = folder / task
    command = [sys.executable, "-m", "lm_eval", "--model", "soar", "--model_args", MODEL, "--tasks", task]
    command += [
        "--include_path",
        str(folder if task == LOCAL else FOLDER),
        "--output_path",
        str(output),
        "--log_samples",
    ]
    command += ["--confirm_run_unsafe_code", *([] if limit is None else ["--limit", str(limit)])]
    environment = {**os.environ, "SOAR_DATA_DIR": str(data), "HF_DATASETS_CACHE": str(folder / "cache")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"lm_eval failed on {task}:\n{done.stderr[-3000:]}")
    found = json.loads(next(output.rglob("results_*.json")).read_text())
    reported = found["results"][task]
    values = {name: value for name, value in reported.items() if isinstance(value, float) and "stderr" not in name}
    return {"problems": found["n-samples"][task]["effective"], **values}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, required=True, help="folder with the benchmarks' files")
    parser.add_argument("--limit", type=int, help="problems of the embedded tasks; default: all")
    given = parser.parse_args()
    print(f"lm_eval --model soar --model_args {MODEL}\n\n| task | problems | scores |\n|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        local_gsm8k(given.data_dir, folder)
        real = [(task, REAL_LIMIT) for task in (LOCAL, "soar_gsm8k", "soar_humaneval", "soar_mbpp")]
        for task, limit in [*real, ("soar_mini_gsm", given.limit), ("soar_mini_code", given.limit)]:
            found = scores(task, limit, given.data_dir.resolve(), folder)
            values = ", ".join(f"{key} {value:.3f}" for key, value in found.items() if key != "problems")
            print(f"| {task} | {found['problems']:.0f} | {values} |", flush=True)


if __name__ == "__main__":
    main()
