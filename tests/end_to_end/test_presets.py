"""Every published objective through a whole run."""

import json
import math

import pytest

from rlvr_jax.config import Objective
from rlvr_jax.core.presets import PRESETS
from rlvr_jax.train.loop import run
from tests.end_to_end.tiny_recipe import get_config

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", PRESETS)
def test_two_steps_of_a_run(tmp_path, name):
    """CLIP-06: `launch.train --config.objective=NAME` gets to its end, with a finite
    loss, gradient and entropy in both steps."""
    config = get_config()
    config.run_dir, config.steps, config.warmup.steps = str(tmp_path / "run"), 2, 5
    config.objective = Objective(name=name, **PRESETS[name])
    run(config)
    lines = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    learned = [row for row in map(json.loads, lines) if "grad/norm" in row]
    assert len(learned) == 2
    for row in learned:
        for metric in ("loss/total", "grad/norm", "entropy/mean"):
            assert math.isfinite(row[metric]), metric
