"""ScaleRL: asynchronous CISPO with forced interruptions, in the sizes of its 8B runs.

    python -m launch.train --config configs/scalerl_8b.py

Paper: The Art of Scaling Reinforcement Learning Compute for LLMs,
https://arxiv.org/abs/2510.13786.

| setting | value | source |
|---|---|---|
| groups | 48 prompts x 16 | the paper |
| tokens | 12,288 of thought + 2,048 of answer + 2,048 of prompt | the paper |
| interruption | at 10,240 to 12,288 thinking tokens, drawn per completion | the paper |
| versions | at most 8 behind: 1 (sampling ahead) + 7 (waiting) | PipelineRL-8 there |
| loss | CISPO capped at 5, mean per prompt, std of the batch | the paper |
| prompts | groups of one outcome leave the loss; solved 90 %: not again | the paper |
| rewards | +1 and -1 | the paper |
| logits | float32 | the paper |
| AdamW | 5e-7 | the paper |

Departs: PipelineRL changes the weights under a completion at any token; here a
completion pauses after 2,048 tokens of a step and goes on under the next policy. Their
model is Llama-3.1-8B with a cold start. The slot engine and staleness run in a single
process so far, so this wants one machine with all of its devices. Never run here.

To vary: --config.rollout.token_budget, --config.control.budget_spread=0.
"""

from rlvr_jax.config import (
    BatchConfig,
    CheckpointConfig,
    Config,
    ControlConfig,
    CurriculumConfig,
    DataConfig,
    EvaluationConfig,
    LoggingConfig,
    ModelConfig,
    Objective,
    OptimizerConfig,
    RewardConfig,
    RolloutConfig,
)
from rlvr_jax.core.presets import PRESETS


def get_config() -> Config:
    """The recipe."""
    return Config(
        run_dir="runs/scalerl_8b",
        steps=1000,
        model=ModelConfig(
            path="~/models/Qwen3-8B", architecture="qwen3-8b", dtype="bfloat16"
        ),
        data=DataConfig(
            train="hub:BytedTsinghua-SIA/DAPO-Math-17k",
            evaluation="hub:HuggingFaceH4/aime_2024",
            max_prompt_tokens=2048,
        ),
        curriculum=CurriculumConfig(filter="mask", drop_pass_rate=0.9),
        rollout=RolloutConfig(
            num_generations=16,
            max_completion_tokens=14_336,
            engine="slots",
            slots=256,
            staleness=1,
            token_budget=2048,
            waiting_batches=6,
            max_group_age=7,
        ),
        control=ControlConfig(
            budget=10_240,
            budget_spread=2048,
            budget_text=(
                "Okay, time is up. Let me stop thinking and formulate a final answer "
                "now."
            ),
            answer_tokens=2048,
        ),
        reward=RewardConfig(correct=1.0, wrong=-1.0),
        objective=Objective(
            name="scalerl", **PRESETS["scalerl"] | {"old_policy": "rollout"}
        ),
        optimizer=OptimizerConfig(learning_rate=5e-7),
        batch=BatchConfig(
            prompts_per_step=48, micro_batch_size=16, logprob_chunk_tokens=16_384
        ),
        evaluation=EvaluationConfig(every_steps=50, prompts=30, num_generations=16),
        checkpoint=CheckpointConfig(every_steps=10),
        logging=LoggingConfig(completions_every_steps=10),
    )
