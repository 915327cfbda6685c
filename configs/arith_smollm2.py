"""SmolLM2-135M-Instruct on one-digit sums and products: a curve in minutes on a CPU.

Raw prompts with four solved examples ("9 + 9 = 18"), six new tokens. The model starts
at a pass rate near 0.5.

    python -m launch.fetch smollm2
    python -m launch.train --config configs/arith_smollm2.py

A measured curve is in docs/log.md. To vary: --config.optimizer.learning_rate,
--config.objective=grpo|dr_grpo|rloo.
"""

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
    RolloutConfig,
)


def get_config() -> Config:
    """The recipe."""
    return Config(
        run_dir="runs/arith_smollm2",
        steps=40,
        model=ModelConfig(path="~/.cache/rlvr_jax/smollm2", remat="dots"),
        data=DataConfig(
            train="task:arithmetic",
            task_options=(
                '{"operators": "+*", "max_operand": 9, "evaluation_share": 0.3}'
            ),
            template="raw",
            few_shot=4,
            max_prompt_tokens=64,
        ),
        rollout=RolloutConfig(num_generations=8, max_completion_tokens=6, stop=("\n",)),
        # Six tokens are enough for every answer: what is cut is wrong, and stays in.
        objective=Objective(overlong_filter=False),
        optimizer=OptimizerConfig(learning_rate=1e-5),
        batch=BatchConfig(
            prompts_per_step=16, micro_batch_size=64, logprob_chunk_tokens=512
        ),
        evaluation=EvaluationConfig(prompts=48, num_generations=8),
        checkpoint=CheckpointConfig(every_steps=10),
        logging=LoggingConfig(completions_every_steps=10),
    )
