"""`python -m launch.plan` as a user runs it, without libtpu's compiler."""

import json
import os
import subprocess
import sys

from tests.end_to_end.command import ROOT


def plan(*flags: str, recipe: str = "configs/qwen7b_gsm8k.py"):
    command = [sys.executable, "-m", "launch.plan", f"--config={recipe}", *flags]
    return subprocess.run(
        command,
        cwd=ROOT,
        env=os.environ | {"JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


def test_a_plan_ends_with_one_json_object():
    found = plan("--topology=v5e:16x16", "--nocompile", "--shardings", "--json")
    assert found.returncode == 0, found.stderr
    assert "Not compiled (" in found.stdout
    assert "layers.query" in found.stdout
    last = json.loads(found.stdout.splitlines()[-1])
    assert last["fits"]
    assert set(last["hbm_gib_per_chip"]) == {"reshard", "prefill", "decode", "train"}


def test_what_cannot_be_planned_says_why():
    found = plan("--topology=v5e:16x16", "--config.batch.micro_batch_size=7")
    assert found.returncode == 2
    assert "batch.micro_batch_size=7 completions must divide" in found.stderr
