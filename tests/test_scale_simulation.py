"""The simulation of batches on many workers: what must hold whatever the costs are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soar_dlm.scale.on_ray import LONGEST_TASK, task_sizes

pytest.importorskip("ray", reason="Ray is not installed: pip install 'soar-dlm[scale]'")
from benchmarks import scale_simulation
from benchmarks.scale_simulation import LOAD_SECONDS, Job, simulate

CHEAP = {"driver_seconds_per_task": 0.002, "driver_seconds_per_result": 0.001}


@given(chunks=st.integers(0, 5000), workers=st.integers(1, 50))
def test_tasks_hold_all_chunks_and_never_grow(chunks: int, workers: int) -> None:
    sizes = list(task_sizes(chunks, workers))
    assert sum(sizes) == chunks
    assert sizes == sorted(sizes, reverse=True)
    assert all(1 <= size <= LONGEST_TASK for size in sizes)
    assert set(sizes[-workers:]) <= {1}


def test_one_worker_takes_its_time_for_each_prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scale_simulation, "SLOW", 0.0)
    found = simulate(Job(100_000, 256, 0.2), 1, CHEAP)
    assert found.seconds == pytest.approx(LOAD_SECONDS + 20_000, rel=0.05)
    assert found.tail == 0


@given(seed=st.integers(0, 20), workers=st.sampled_from([1, 3, 10, 40]))
def test_more_workers_do_not_take_longer(seed: int, workers: int) -> None:
    job = Job(200_000, 256, 0.2)
    few, many = simulate(job, workers, CHEAP, seed), simulate(job, 2 * workers, CHEAP, seed)
    assert many.seconds < 1.1 * few.seconds
    assert 0 < many.use <= 1


def test_a_slow_driver_is_busy_all_the_time_and_holds_up_everyone() -> None:
    job = Job(1_000_000, 256, 0.2)
    slow = {"driver_seconds_per_task": 10.0, "driver_seconds_per_result": 5.0}
    found = simulate(job, 100, slow)
    assert found.driver > 0.95
    assert found.seconds > job.chunks * 5.0
    assert found.use < 0.5 * simulate(job, 100, CHEAP).use
