"""A small decoder learns arithmetic by RLVR on a laptop CPU, without any download."""

from rlvr_jax.config import (
    BatchConfig,
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
    """The recipe."""
    return Config(
        run_dir="runs/quickstart",
        steps=60,
        model=ModelConfig(
            hidden_size=128,
            intermediate_size=384,
            num_layers=3,
            num_heads=4,
            num_kv_heads=2,
        ),
        data=DataConfig(
            train="task:arithmetic",
            task_options='{"operators": "+-", "max_operand": 9, "terms": 4}',
            template="raw",
            max_prompt_tokens=32,
        ),
        rollout=RolloutConfig(num_generations=8, max_completion_tokens=28),
        reward=RewardConfig(verifier="math"),
        objective=Objective(),
        optimizer=OptimizerConfig(learning_rate=3e-4),
        batch=BatchConfig(prompts_per_step=32, minibatches_per_step=2),
        warmup=WarmupConfig(steps=300, batch_size=64, learning_rate=2e-3),
        evaluation=EvaluationConfig(prompts=128, num_generations=8),
        logging=LoggingConfig(completions_every_steps=20),
    )
