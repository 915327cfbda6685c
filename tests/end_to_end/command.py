"""Running `python -m launch.train` as a user does, in a process of its own."""

import json
import os
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).parents[2]
RECIPE = "tests/end_to_end/tiny_recipe.py"
CHANGING = ("time", "time/", "speed/", "memory/")
"""Metrics that two equal runs may differ in."""
KEEPS_PROGRAMS = {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
"""A test that starts a run many times does not compile small programs each time."""


def start(run_dir, *flags: str, recipe: str = RECIPE, devices: int = 1):
    """Starts a run; its output can be read from `run_dir`.log."""
    words = [
        "launch.train",
        f"--config={recipe}",
        f"--config.run_dir={run_dir}",
        *flags,
    ]
    return launch(words, f"{run_dir}.log", devices=devices)


def launch(words, log: str, *, devices: int = 1, **environment: str):
    """Starts `python -m` with these words on virtual CPU devices; prints to `log`."""
    given = {
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}",
    }
    with pathlib.Path(log).open("w") as output:
        return subprocess.Popen(
            [sys.executable, "-m", *words],
            cwd=ROOT,
            env=os.environ | KEEPS_PROGRAMS | given | environment,
            stdout=output,
            stderr=subprocess.STDOUT,
        )


def run(run_dir, *flags: str, expect: int = 0, **options) -> str:
    """Runs to the end and returns what was printed."""
    process = start(run_dir, *flags, **options)
    code = process.wait(timeout=600)
    printed = pathlib.Path(f"{run_dir}.log").read_text()
    assert code == expect, printed
    return printed


def wait_for_steps(process, run_dir: pathlib.Path, count: int, log: str = "") -> None:
    """Returns once `count` training steps stand in metrics.jsonl."""
    path, deadline = run_dir / "metrics.jsonl", time.monotonic() + 600
    log = log or f"{run_dir}.log"
    while time.monotonic() < deadline:
        assert process.poll() is None, pathlib.Path(log).read_text()
        if path.exists() and path.read_text().count('"reward/mean"') >= count:
            return
        time.sleep(0.02)
    raise AssertionError(f"no {count} steps within 600 s")


def metrics(run_dir: pathlib.Path) -> list[dict]:
    """All metric lines without what may differ between equal runs."""
    lines = (run_dir / "metrics.jsonl").read_text().splitlines()
    return [
        {k: v for k, v in json.loads(line).items() if not k.startswith(CHANGING)}
        for line in lines
    ]


def weights(run_dir: pathlib.Path) -> bytes:
    """The exported policy, bit for bit."""
    return (run_dir / "model" / "model.safetensors").read_bytes()
