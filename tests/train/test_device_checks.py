"""Settings that the devices or processes of a run cannot do."""

import jax
import pytest

from rlvr_jax.config import BatchConfig, Config, EvaluationConfig, RolloutConfig
from rlvr_jax.mesh.mesh import make_mesh, rearranged
from rlvr_jax.train.device_checks import check_processes, check_row_devices
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
    check_processes(config)
    section, field = name.split(".")
    setattr(getattr(config, section), field, value)
    with pytest.raises(ConfigError, match=rf"{section}\.{field}=.* has 2"):
        check_processes(config)


@pytest.mark.parametrize(
    ("shape", "rollout_shape", "changes", "message"),
    [
        ((1, 1, 8), (8, 1, 1), {}, ""),
        ((8, 1, 1), (1, 1, 8), {"at_once": 3, "samples": 3}, ""),
        ((1, 1, 8), (8, 1, 1), {"at_once": 2, "groups": 4}, "rollout.prompts_at_once"),
        ((1, 1, 8), (8, 1, 1), {"samples": 4, "prompts": 4}, "an evaluation batch"),
        ((1, 1, 8), (8, 1, 1), {"prompts": 4, "groups": 4}, "a rollout batch"),
        ((8, 1, 1), (1, 1, 8), {"micro": 4, "groups": 4}, "a micro-batch"),
        ((1, 1, 8), (), {"micro": 4}, ""),
        ((1, 1, 8), (8, 1, 1), {"micro": 4, "groups": 4}, ""),
        (
            (1, 1, 8),
            (8, 1, 1),
            {"prompts": 4, "advantage": "remax"},
            "the greedy answers of objective.advantage='remax'",
        ),
    ],
)
def test_batches_divide_over_the_devices_of_each_mesh(
    shape, rollout_shape, changes, message
):
    """Micro-batches over those of training, what is sampled over those of sampling;
    the error names the shape to change."""
    given = {"prompts": 8, "groups": 8, "samples": 8, "at_once": 0, "micro": 0}
    given |= changes
    config = Config(
        rollout=RolloutConfig(
            num_generations=given["groups"], prompts_at_once=given["at_once"]
        ),
        batch=BatchConfig(
            prompts_per_step=given["prompts"], micro_batch_size=given["micro"]
        ),
        evaluation=EvaluationConfig(num_generations=given["samples"]),
    )
    config.objective.advantage = given.get("advantage", "group")
    mesh = make_mesh(shape)
    rollout_mesh = rearranged(mesh, rollout_shape)
    if not message:
        check_row_devices(config, mesh, rollout_mesh)
        return
    with pytest.raises(ConfigError) as caught:
        check_row_devices(config, mesh, rollout_mesh)
    setting = "mesh.shape" if message == "a micro-batch" else "mesh.rollout_shape"
    assert str(caught.value).startswith(f"mesh: {message}: ")
    assert str(caught.value).endswith(f"or {setting}.")


def test_greedy_answers_and_the_cold_start_divide_over_the_devices():
    """4 prompts of 8 completions go on 8 devices, 4 of one completion do not."""
    mesh, config = make_mesh((8, 1, 1), jax.devices()[:8]), Config()
    config.batch.prompts_per_step = 4
    config.evaluation.prompts = 0
    check_row_devices(config, mesh, mesh)
    config.objective.advantage = "remax"
    with pytest.raises(ConfigError, match="the greedy answers of"):
        check_row_devices(config, mesh, mesh)
    config.objective.advantage = "group"
    config.warmup.steps, config.warmup.batch_size = 3, 4
    with pytest.raises(ConfigError, match=r"mesh: warmup\.batch_size: "):
        check_row_devices(config, mesh, mesh)
    config.warmup.batch_size = 8
    check_row_devices(config, mesh, mesh)
