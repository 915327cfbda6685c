"""ScaleRL on an 8B model: asynchronous CISPO with forced interruptions.

    python -m launch.train --config configs/scalerl_8b.py

Paper: The Art of Scaling Reinforcement Learning Compute for LLMs,
https://arxiv.org/abs/2510.13786; asymptote 0.61 of its 8B run on held-out prompts.

| setting | value | source |
|---|---|---|
| groups | 48 prompts x 16 | the paper's batch of 768 |
| tokens | 16,384 | the paper |
| sampler | up to 8 steps behind (PipelineRL-8) | the paper |
| loss | CISPO, weight at most 5, mean per prompt, std of the batch | the paper |
| logits | float32 | the paper |
| groups of one outcome | leave the loss | the paper |
| prompts | left out from pass rate 0.9 on | the paper |
| reward | +1 / -1 | the paper |
| interruption | at 10,240 to 12,288 thinking tokens, drawn | the paper, its words |
| answer | at most 2,048 tokens | the paper |
| AdamW 5e-7, question suffix | not in our notes of it | ours |

Departs: weights change between batches, theirs within one; with
--config.rollout.token_budget=2048 --config.rollout.staleness=1
--config.rollout.waiting_batches=6 --config.rollout.max_group_age=7 they change within
completions too, at most 8 versions apart. Never run here.

To vary: --config.objective=dapo, --config.rollout.staleness.
"""

from rlvr_jax.config import (
    BatchConfig,
    CheckpointConfig,
    Config,
    ControlConfig,
    CurriculumConfig,
    DataConfig,
    EvaluationConfig,
    ModelConfig,
    Objective,
    OptimizerConfig,
    RewardConfig,
    RolloutConfig,
)
from rlvr_jax.core.presets import PRESETS


def get_config() -> Config:
    """The recipe."""
    # Stale samples: the ratio is to the policy that sampled.
    scalerl = PRESETS["scalerl"] | {"old_policy": "rollout"}
    return Config(
        run_dir="runs/scalerl_8b",
        steps=1000,
        model=ModelConfig(path="~/models/Llama-3.1-8B-Instruct", dtype="bfloat16"),
        data=DataConfig(
            train="hub:POLARIS-Project/Polaris-Dataset-53K",
            question_field="problem",
            question_suffix=(
                "\nPlease reason step by step, and put your final answer within "
                "\\boxed{}."
            ),
            max_prompt_tokens=2048,
        ),
        curriculum=CurriculumConfig(filter="mask", drop_pass_rate=0.9),
        rollout=RolloutConfig(
            num_generations=16,
            max_completion_tokens=16_384,
            engine="slots",
            slots=256,
            staleness=8,
        ),
        control=ControlConfig(
            budget=10_240,
            budget_spread=2048,
            answer_tokens=2048,
            budget_text=(
                "Okay, time is up. Let me stop thinking and formulate a final answer "
                "now."
            ),
        ),
        reward=RewardConfig(wrong=-1.0),
        objective=Objective(name="scalerl", **scalerl),
        optimizer=OptimizerConfig(learning_rate=5e-7),
        batch=BatchConfig(
            prompts_per_step=48, micro_batch_size=16, logprob_chunk_tokens=8192
        ),
        evaluation=EvaluationConfig(every_steps=50, prompts=48, num_generations=16),
        checkpoint=CheckpointConfig(every_steps=5),
    )
