"""What is checked when a run is prepared."""

import pytest

from rlvr_jax.config import Config
from rlvr_jax.data.curriculum import Curriculum
from rlvr_jax.data.rows import Problem
from rlvr_jax.train.setup import _check_stages
from rlvr_jax.validate import ConfigError


def test_the_overlong_ramp_fits_into_every_stage():
    config = Config()
    config.objective.overlong_buffer_tokens = 128
    config.curriculum.stages = '[{"until": 5, "max_completion_tokens": 64}, {}]'
    curriculum = Curriculum(
        config.curriculum,
        [Problem("0", "q", "1", "math", {})],
        config.data,
        prompts_per_step=1,
        max_completion_tokens=256,
        seed=0,
    )
    with pytest.raises(ConfigError, match="=128 exceeds max_completion_tokens=64 of s"):
        _check_stages(config, curriculum)
    config.objective.overlong_buffer_tokens = 64
    _check_stages(config, curriculum)
