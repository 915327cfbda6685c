"""One run in two processes, joined by jax.distributed, from the command line."""

import json
import pathlib
import signal
import socket
import subprocess
import time

import numpy as np
import pytest
from safetensors.numpy import load_file

from rlvr_jax.mesh.processes import LOST
from tests.end_to_end import command
from tests.end_to_end.test_train import assert_same_run

FLAGS = (
    "--config.steps=3",
    "--config.warmup.steps=2",
    "--config.checkpoint.every_steps=1",
    "--config.logging.report=false",
)


def start(run_dir, count: int, *flags: str) -> list[subprocess.Popen]:
    """The same command in each process, which knows its number by its environment."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    started = []
    for index in range(count):
        words = [
            "launch.train",
            f"--config={command.RECIPE}",
            f"--config.run_dir={run_dir}",
            f"--config.mesh.shape=({count},1,1)",
            *FLAGS,
            *flags,
        ]
        place = {
            "RLVR_COORDINATOR": f"127.0.0.1:{port}",
            "RLVR_NUM_PROCESSES": str(count),
            "RLVR_PROCESS_ID": str(index),
        }
        started.append(command.launch(words, f"{run_dir}.{index}.log", **place))
    return started


def finish(processes, run_dir) -> list[str]:
    """What each printed."""
    codes = [process.wait(timeout=900) for process in processes]
    printed = read_logs(run_dir, len(processes))
    assert set(codes) == {0}, "\n".join(printed)
    return printed


def read_logs(run_dir, count: int) -> list[str]:
    return [pathlib.Path(f"{run_dir}.{i}.log").read_text() for i in range(count)]


def assert_equal_runs(run_dir, single):
    """Metrics and completions exactly, weights to what another sum order makes."""
    ours, theirs = command.metrics(run_dir), command.metrics(single)
    assert [line["step"] for line in ours] == [line["step"] for line in theirs]
    for one, other in zip(ours, theirs, strict=True):
        assert one.keys() == other.keys()
        for name, value in one.items():
            assert float(value) == pytest.approx(float(other[name]), abs=1e-5), name
    texts = [(d / "completions.jsonl").read_text() for d in (run_dir, single)]
    lines = [[json.loads(line) for line in text.splitlines()] for text in texts]
    assert lines[0] == lines[1]
    ours, theirs = (load_file(d / "model/model.safetensors") for d in (run_dir, single))
    for name, value in theirs.items():
        np.testing.assert_allclose(ours[name], value, atol=1e-5, err_msg=name)


def single(folder, count: int):
    """The run in one process with as many devices: the same mesh.

    On fewer devices sums have another order, and Adam makes of a rounded gradient near
    0 an update as large as any other; meshes are compared in tests/mesh.
    """
    run_dir = folder / "single"
    command.run(run_dir, f"--config.mesh.shape=({count},1,1)", *FLAGS, devices=count)
    return run_dir


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """The run in two processes, which nothing befalls; what they printed."""
    run_dir = tmp_path_factory.mktemp("runs") / "pair"
    return run_dir, finish(start(run_dir, 2), run_dir)


def assert_one_run(printed, run_dir, folder):
    """As one process would do it. Process 0 alone writes and prints; a second writer
    would double every line."""
    assert_equal_runs(run_dir, single(folder, len(printed)))
    steps = [m["step"] for m in command.metrics(run_dir) if "reward/mean" in m]
    assert steps == [0, 1, 2]
    assert "3/3 steps" in printed[0]
    assert not any("steps" in text for text in printed[1:])
    versions = json.loads((run_dir / "versions.json").read_text())
    assert versions["devices"].startswith(f"{len(printed)} x")


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_two_processes_are_one_run(pair, tmp_path):
    run_dir, printed = pair
    assert_one_run(printed, run_dir, tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_four_processes_are_one_run(tmp_path):
    run_dir = tmp_path / "four"
    assert_one_run(finish(start(run_dir, 4), run_dir), run_dir, tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_preemption_notice_to_one_process_stops_both(pair, tmp_path):
    """SIGTERM at one host: both save at the same step and exit 0; the same command
    goes on to the same end."""
    run_dir = tmp_path / "preempted"
    processes = start(run_dir, 2)
    command.wait_for_steps(processes[0], run_dir, 1, log=f"{run_dir}.0.log")
    processes[1].send_signal(signal.SIGTERM)
    finish(processes, run_dir)
    summary = json.loads((run_dir / "summary.json").read_text())
    if not summary["finished"]:
        finish(start(run_dir, 2), run_dir)
    assert_same_run(run_dir, pair[0])


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("victim", [1, 0])
def test_one_process_killed_ends_the_other_and_the_same_command_continues(
    pair, tmp_path, victim
):
    """kill -9 at one of two: the other ends within seconds and says why; continued, the
    run is bit for bit the one of two processes that nothing befell.

    Where the first one is gone, which coordinates, JAX's own client may be quicker than
    we are: it says that another task died, and aborts.
    """
    run_dir = tmp_path / "killed"
    processes = start(run_dir, 2)
    command.wait_for_steps(processes[0], run_dir, 1, log=f"{run_dir}.0.log")
    processes[victim].kill()
    began = time.monotonic()
    code = processes[1 - victim].wait(timeout=120)
    took = time.monotonic() - began
    print(f"process {victim} killed: the other ended after {took:.1f} s")
    printed = read_logs(run_dir, 2)[1 - victim]
    processes[victim].wait()
    if victim == 0 and code == -signal.SIGABRT:
        assert "another task died" in printed, printed
    else:
        assert code == LOST, printed
        assert f"process {1 - victim} of 2 lost another one" in printed, printed
        assert "Start the same command again" in printed
    finish(start(run_dir, 2), run_dir)
    assert_same_run(run_dir, pair[0])
