"""DeepSeekMath 7B: the run that GRPO was published with.

    python -m launch.train --config configs/deepseekmath_7b.py     # once per host

Paper: DeepSeekMath, https://arxiv.org/abs/2402.03300; MATH 46.8 -> 51.7 (greedy, with
chains of thought), GSM8K 82.9 -> 88.2, from the instruct model.

| setting | value | source |
|---|---|---|
| groups | 16 prompts x 64: a batch of 1,024 | sec. 4.2 |
| updates | one per exploration | sec. 4.2 |
| tokens | 1,024 | sec. 4.2 |
| KL | 0.04, k3 in the loss | sec. 4.2 |
| AdamW | 1e-6 | sec. 4.2 |
| question suffix | reason step by step, answer in a box | its model card |
| 500 steps, warm-up | not published | ours |

Departs: the reward is a checker, theirs a learned reward model (outcome supervision);
data are the training problems of MATH, theirs 144,000 questions of GSM8K and MATH with
chains of thought. The reported effect on the same samples, Maj@K up and Pass@K not, is
what `python -m launch.evaluate` prints of both models. Never run here.

To vary: --config.objective.reference_update=copy (their iterative form).
"""

from rlvr_jax.config import (
    BatchConfig,
    CheckpointConfig,
    Config,
    DataConfig,
    EvaluationConfig,
    MeshConfig,
    ModelConfig,
    Objective,
    OptimizerConfig,
    RolloutConfig,
)
from rlvr_jax.core.presets import PRESETS


def get_config() -> Config:
    """The recipe."""
    return Config(
        run_dir="runs/deepseekmath_7b",
        steps=500,
        model=ModelConfig(path="~/models/deepseek-math-7b-instruct", dtype="bfloat16"),
        data=DataConfig(
            train="hub:nlile/hendrycks-MATH-benchmark",
            question_field="problem",
            question_suffix=(
                "\nPlease reason step by step, and put your final answer within "
                "\\boxed{}."
            ),
            max_prompt_tokens=1024,
        ),
        rollout=RolloutConfig(num_generations=64, max_completion_tokens=1024),
        objective=Objective(name="deepseekmath", **PRESETS["deepseekmath"]),
        optimizer=OptimizerConfig(learning_rate=1e-6),
        batch=BatchConfig(
            prompts_per_step=16, micro_batch_size=64, logprob_chunk_tokens=8192
        ),
        evaluation=EvaluationConfig(every_steps=50, prompts=500, num_generations=8),
        mesh=MeshConfig(shape=(1, -1, 1)),
        checkpoint=CheckpointConfig(every_steps=5),
    )
