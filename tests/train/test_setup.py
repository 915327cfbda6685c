"""What is checked when a run is prepared."""

import jax
import pytest

from rlvr_jax.config import Config
from rlvr_jax.data.curriculum import Curriculum
from rlvr_jax.data.rows import Problem
from rlvr_jax.mesh.mesh import make_mesh
from rlvr_jax.train.setup import _check_processes, _check_row_devices, _check_stages
from rlvr_jax.validate import ConfigError


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("rollout.engine", "slots"),
        ("rollout.staleness", 2),
        ("reward.execution", "callback"),
        ("replay.save_every", 5),
    ],
)
def test_several_processes_refuse_what_one_host_decides(monkeypatch, name, value):
    monkeypatch.setattr(jax, "process_count", lambda: 2)
    config = Config()
    _check_processes(config)
    section, field = name.split(".")
    setattr(getattr(config, section), field, value)
    with pytest.raises(ConfigError, match=rf"{section}\.{field}=.* has 2"):
        _check_processes(config)


def test_greedy_answers_and_the_cold_start_divide_over_the_devices():
    """4 prompts of 8 completions go on 8 devices, 4 of one completion do not."""
    mesh, config = make_mesh((8, 1, 1), jax.devices()[:8]), Config()
    config.batch.prompts_per_step = 4
    config.evaluation.prompts = 0
    _check_row_devices(config, mesh)
    config.objective.advantage = "remax"
    with pytest.raises(ConfigError, match="the greedy answers of"):
        _check_row_devices(config, mesh)
    config.objective.advantage = "group"
    config.warmup.steps, config.warmup.batch_size = 3, 4
    with pytest.raises(ConfigError, match=r"mesh: warmup\.batch_size: "):
        _check_row_devices(config, mesh)
    config.warmup.batch_size = 8
    _check_row_devices(config, mesh)


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
