"""The time of a run is that of all the processes that worked on it."""

import json

import pytest

from rlvr_jax.train import clock as clock_module
from rlvr_jax.train.clock import RunClock


@pytest.fixture
def now(monkeypatch):
    """A clock to turn by hand."""
    time = [100.0]
    monkeypatch.setattr(clock_module.time, "monotonic", lambda: time[0])

    def forward(seconds):
        time[0] += seconds

    return forward


def test_processes_in_turn_add_up(tmp_path, now):
    """10 s noted, 3 s lost to kill -9, then 20 s: 30 s by 2 processes."""
    first = RunClock(tmp_path)
    now(10)
    first.note()
    now(3)
    assert first.seconds == 13
    second = RunClock(tmp_path)
    now(20)
    assert (second.here, second.seconds, second.processes) == (20, 30, 2)
    second.write()
    saved = json.loads((tmp_path / "clock.json").read_text())
    assert saved == {"seconds": 30.0, "processes": 2}


def test_it_is_written_now_and_then(tmp_path, now):
    clock = RunClock(tmp_path)
    now(clock_module.WRITE_EVERY_S - 1)
    clock.note()
    assert json.loads((tmp_path / "clock.json").read_text())["seconds"] == 0
    now(1)
    clock.note()
    seconds = json.loads((tmp_path / "clock.json").read_text())["seconds"]
    assert seconds == clock_module.WRITE_EVERY_S


def test_another_process_of_the_run_writes_nothing(tmp_path):
    RunClock(tmp_path, writes=False).write()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("content", ["", "[]", '{"seconds": "x"}', '{"seconds": 3}'])
def test_an_unreadable_file_counts_from_0(tmp_path, content):
    (tmp_path / "clock.json").write_text(content)
    assert RunClock(tmp_path).processes == 1
