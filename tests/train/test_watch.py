"""Steps that hang leave the stacks of all threads behind."""

import threading
import time

import pytest

from rlvr_jax.train.watch import LEAST_STEPS, HangWatch


def watch_of(folder, **changes):
    settings = {"factor": 3.0, "floor_s": 0.3, "process_index": 5} | changes
    return HangWatch(folder, **settings)


def quick_steps(watch, count=LEAST_STEPS):
    for number in range(count):
        with watch.step(number):
            pass


def a_place_with_a_name(event):
    event.wait(10)


def test_a_step_that_hangs_is_written_down(tmp_path, capsys):
    watch = watch_of(tmp_path / "stacks")
    quick_steps(watch)
    event = threading.Event()
    stuck = threading.Thread(target=a_place_with_a_name, args=(event,))
    stuck.start()
    with watch.step(7):
        path = tmp_path / "stacks" / "process_5_step_7.txt"
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            if path.exists() and "a_place_with_a_name" in path.read_text():
                break
            time.sleep(0.02)
    event.set()
    stuck.join()
    written = path.read_text()
    assert "step 7 has taken 0.3 s" in written
    assert "a_place_with_a_name" in written
    assert "test_a_step_that_hangs" in written
    assert "logging.slow_step_factor=3" in capsys.readouterr().out


def test_the_limit_is_a_multiple_of_the_median(tmp_path, monkeypatch):
    """Steps of 1, 2 and 9 s: three times the median is 6 s; nothing before three."""
    now = iter([0.0, 1.0, 0.0, 2.0, 0.0, 9.0])
    monkeypatch.setattr("rlvr_jax.train.watch.time.perf_counter", lambda: next(now))
    watch = watch_of(tmp_path)
    for number in range(3):
        assert watch.limit_s is None
        with watch.step(number):
            pass
    assert watch.limit_s == pytest.approx(6.0)


def test_quick_steps_and_no_factor_write_nothing(tmp_path):
    quick_steps(watch_of(tmp_path / "a", floor_s=30.0), 6)
    off = watch_of(tmp_path / "b", factor=0.0)
    quick_steps(off, 6)
    assert off.limit_s is None
    assert list(tmp_path.iterdir()) == []
