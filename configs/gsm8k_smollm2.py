"""SmolLM2-135M-Instruct on GSM8K with DAPO: a real model on real problems, on a CPU.

    python -m launch.fetch smollm2
    python -m launch.train --config configs/gsm8k_smollm2.py

Trains on the packaged 256 problems; the whole set by
--config.data.train=hub:openai/gsm8k --config.data.subset=main, or a .jsonl(.gz) file
of {"question", "answer"} rows. The model answers about 4 % of GSM8K correctly and two
cores take 60 to 70 s per step (peak memory 4.3 GiB), so this recipe shows the
machinery at work, not a score; for a curve on this model see configs/arith_smollm2.py.

DAPO (https://arxiv.org/abs/2503.14476): token-mean loss, clip 0.2 / 0.28, no KL, cut
completions out of the loss, and the soft overlong penalty over the last fifth of the
limit, as 4,096 of 20,480 tokens there.
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
        run_dir="runs/gsm8k_smollm2",
        steps=50,
        model=ModelConfig(path="~/.cache/rlvr_jax/smollm2", remat="dots"),
        data=DataConfig(
            train="packaged:gsm8k",
            question_suffix=(
                "\nThink step by step and end with the answer in \\boxed{}."
            ),
            max_prompt_tokens=192,
        ),
        rollout=RolloutConfig(num_generations=8, max_completion_tokens=128),
        objective=Objective(overlong_buffer_tokens=32),
        optimizer=OptimizerConfig(learning_rate=2e-6),
        batch=BatchConfig(
            prompts_per_step=4, micro_batch_size=16, logprob_chunk_tokens=512
        ),
        evaluation=EvaluationConfig(prompts=16, num_generations=8),
        checkpoint=CheckpointConfig(every_steps=5),
        logging=LoggingConfig(completions_every_steps=5),
    )
