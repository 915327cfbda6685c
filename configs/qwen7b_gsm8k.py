"""GRPO on Qwen2.5-7B and GSM8K: the first run to make on a new slice.

    python -m launch.train --config configs/qwen7b_gsm8k.py        # once per host
    python -m launch.plan --config configs/qwen7b_gsm8k.py --topology v5e:16x16

Paper: DeepSeekMath (GRPO), https://arxiv.org/abs/2402.03300; sizes of verl's example
(examples/grpo_trainer/run_qwen2-7b.sh, https://github.com/volcengine/verl).

| setting | value | source |
|---|---|---|
| groups | 1,024 prompts x 5 | verl |
| updates | 4 of 256 prompts per rollout batch | verl |
| tokens | 512 + 1,024 | verl |
| AdamW | 1e-6, constant | verl |
| KL | 0.001, k3, in the loss | verl |
| clip | 0.2 / 0.2, mean over each completion, then over completions | the paper |

Its plan on v5e:16x16, mesh (1, 64, 4), by the estimate (`--nocompile`):

    memory of 16 GiB      train 2.8, prefill 1.3, decode 2.0
      as compiled         train 3.2, prefill 0.9, decode 2.0
    FLOPs of a step      5.7e+17, useful 4.58e+17
    time of a step       48 s: sampling 24, learning 24
    cost of a step       3.4 chip-hours, $4.14

All completions at their limit, 40 % of peak FLOPs, 70 % of bandwidths: 105 steps would
take 1.4 hours. Never run here.

To vary: --config.objective=dapo, --config.mesh.shape.
"""

from rlvr_jax.config import (
    BatchConfig,
    CheckpointConfig,
    Config,
    DataConfig,
    EvaluationConfig,
    LoggingConfig,
    MeshConfig,
    ModelConfig,
    Objective,
    OptimizerConfig,
    RewardConfig,
    RolloutConfig,
)
from rlvr_jax.core.presets import PRESETS


def get_config() -> Config:
    """The recipe."""
    grpo = PRESETS["grpo"] | {"beta": 0.001}
    return Config(
        run_dir="runs/qwen7b_gsm8k",
        steps=105,
        model=ModelConfig(
            path="~/models/Qwen2.5-7B-Instruct",
            architecture="qwen2.5-7b",
            dtype="bfloat16",
        ),
        data=DataConfig(
            train="hub:openai/gsm8k",
            subset="main",
            question_suffix=(
                "\nThink step by step and end with the answer in \\boxed{}."
            ),
            max_prompt_tokens=512,
        ),
        rollout=RolloutConfig(num_generations=5, max_completion_tokens=1024),
        reward=RewardConfig(),
        objective=Objective(name="grpo", **grpo),
        optimizer=OptimizerConfig(learning_rate=1e-6),
        batch=BatchConfig(
            prompts_per_step=1024,
            minibatches_per_step=4,
            micro_batch_size=320,
            logprob_chunk_tokens=40_960,
        ),
        evaluation=EvaluationConfig(every_steps=20, prompts=1024, num_generations=4),
        mesh=MeshConfig(shape=(1, 64, 4)),
        checkpoint=CheckpointConfig(every_steps=5),
        logging=LoggingConfig(completions_every_steps=5),
    )
