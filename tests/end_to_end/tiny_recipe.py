"""The whole machinery at the smallest size: a run takes seconds."""

from rlvr_jax.config import (
    BatchConfig,
    CheckpointConfig,
    Config,
    DataConfig,
    EvaluationConfig,
    LoggingConfig,
    ModelConfig,
    Objective,
    OptimizerConfig,
    RewardConfig,
    RolloutConfig,
    WarmupConfig,
)


def get_config() -> Config:
    return Config(
        steps=6,
        model=ModelConfig(
            hidden_size=32,
            intermediate_size=48,
            num_layers=1,
            num_heads=2,
            num_kv_heads=1,
        ),
        data=DataConfig(
            train="task:arithmetic",
            task_options='{"operators": "+", "max_operand": 4, "count": 40}',
            template="raw",
            max_prompt_tokens=16,
        ),
        rollout=RolloutConfig(num_generations=4, max_completion_tokens=4),
        reward=RewardConfig(workers=1, timeout_s=20.0),
        objective=Objective(overlong_filter=False, beta=0.01),
        optimizer=OptimizerConfig(learning_rate=1e-3),
        batch=BatchConfig(prompts_per_step=8, minibatches_per_step=2),
        warmup=WarmupConfig(steps=30, batch_size=16, learning_rate=1e-2),
        evaluation=EvaluationConfig(prompts=4, num_generations=4),
        checkpoint=CheckpointConfig(every_steps=1),
        logging=LoggingConfig(completions_every_steps=2, tensorboard=False),
    )
