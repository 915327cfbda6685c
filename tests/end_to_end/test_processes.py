"""One run in two processes, joined by jax.distributed, from the command line."""

import json
import os
import pathlib
import signal
import socket
import subprocess
import sys

import numpy as np
import pytest
from safetensors.numpy import load_file

from tests.end_to_end import command

FLAGS = (
    "--config.mesh.shape=(2,1,1)",
    "--config.steps=3",
    "--config.warmup.steps=10",
    "--config.checkpoint.every_steps=2",
)


def start_two(run_dir, *flags: str) -> list[subprocess.Popen]:
    """The same command twice, with the number of the process in its environment."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    started = []
    for index in range(2):
        environment = os.environ | {
            "JAX_PLATFORMS": "cpu",
            "XLA_FLAGS": "--xla_force_host_platform_device_count=1",
            "RLVR_COORDINATOR": f"127.0.0.1:{port}",
            "RLVR_NUM_PROCESSES": "2",
            "RLVR_PROCESS_ID": str(index),
        }
        with pathlib.Path(f"{run_dir}.{index}.log").open("a") as log:
            started.append(
                subprocess.Popen(
                    [
                        *(sys.executable, "-m", "launch.train"),
                        f"--config={command.RECIPE}",
                        f"--config.run_dir={run_dir}",
                        *FLAGS,
                        *flags,
                    ],
                    cwd=command.ROOT,
                    env=environment,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                )
            )
    return started


def finish(processes, run_dir) -> list[str]:
    codes = [process.wait(timeout=300) for process in processes]
    printed = [pathlib.Path(f"{run_dir}.{i}.log").read_text() for i in range(2)]
    assert codes == [0, 0], "\n".join(printed)
    return printed


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


@pytest.fixture(scope="module")
def single(tmp_path_factory):
    """The run in one process with two devices."""
    run_dir = tmp_path_factory.mktemp("runs") / "single"
    command.run(run_dir, *FLAGS, devices=2)
    return run_dir


@pytest.mark.slow
def test_two_processes_are_one_run(single, tmp_path):
    run_dir = tmp_path / "two"
    printed = finish(start_two(run_dir), run_dir)
    assert_equal_runs(run_dir, single)
    # Process 0 alone writes and prints; a second writer would double every line.
    steps = [m["step"] for m in command.metrics(run_dir) if "reward/mean" in m]
    assert steps == [0, 1, 2]
    assert "3/3 steps" in printed[0]
    assert "steps" not in printed[1]
    versions = json.loads((run_dir / "versions.json").read_text())
    assert versions["devices"].startswith("2 x")


@pytest.mark.slow
def test_a_preemption_notice_to_one_process_stops_both(single, tmp_path):
    """SIGTERM at one host: both save at the same step and exit 0; the same command
    goes on to the same end."""
    run_dir = tmp_path / "preempted"
    processes = start_two(run_dir)
    command.wait_for_steps(processes[0], run_dir, 1)
    processes[1].send_signal(signal.SIGTERM)
    finish(processes, run_dir)
    summary = json.loads((run_dir / "summary.json").read_text())
    if not summary["finished"]:
        finish(start_two(run_dir), run_dir)
    assert_equal_runs(run_dir, single)
