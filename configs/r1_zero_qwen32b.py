"""R1-Zero's reinforcement learning on Qwen2.5-32B: no supervised step before it.

    python -m launch.train --config configs/r1_zero_qwen32b.py     # once per host
    python -m launch.plan --config configs/r1_zero_qwen32b.py --topology v5p:4x4x8

Paper: DeepSeek-R1, Nature 645, 633 (2025), https://arxiv.org/abs/2501.12948. Its
R1-Zero-Qwen-32B scores 47.0 on AIME 2024; there the model is 671B for R1-Zero itself.

| setting | value | source |
|---|---|---|
| groups | 512 prompts x 16: 8,192 outputs per rollout | Methods |
| updates | 16 per rollout, 32 questions (512 outputs) each | Methods |
| steps | 650 rollouts: 10,400 updates | Methods |
| tokens | 32,768, from update 8,192 on 65,536 | Methods: step 8.2k |
| reference | replaced by the policy every 25 rollouts, 400 updates | Methods |
| AdamW | 3e-6 | Methods |
| KL | 0.001, k3 | Methods |
| reward | accuracy + format, equal weights | sec. 2.2 |
| template | reasoning in <think>, answer in <answer> | table 1 |

Departs: data are DAPO-Math-17k, theirs are not published; the chat template of Qwen
stands around theirs.

Its plan on v5p:4x4x8, mesh (1, 16, 8), by the estimate (`--nocompile`):

    memory of 95 GiB      train 52.3, prefill 4.7, decode 36.6
    FLOPs of a step      4.63e+20, useful 3.53e+20
    time of a step       62,429 s: sampling 46,205, learning 16,224
    cost of a step       2,219.7 chip-hours, $9,322.75

All completions at their limit, 40 % of peak FLOPs, 70 % of bandwidths: 650 steps would
take 469.7 days. Never run here.

To vary: --config.objective=dr_grpo, --config.curriculum.stages.
"""

from rlvr_jax.config import (
    BatchConfig,
    CheckpointConfig,
    Config,
    CurriculumConfig,
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

TEMPLATE = (
    "The user asks a question, and the assistant solves it. The assistant first thinks "
    "about the reasoning process and then gives the answer. The reasoning process and "
    "the answer are enclosed in <think> </think> and <answer> </answer> tags."
)


def get_config() -> Config:
    """The recipe."""
    r1_zero = PRESETS["r1_zero"] | {"reference_every_steps": 25}
    return Config(
        run_dir="runs/r1_zero_qwen32b",
        steps=650,
        model=ModelConfig(
            path="~/models/Qwen2.5-32B", architecture="qwen2.5-32b", dtype="bfloat16"
        ),
        data=DataConfig(
            train="hub:BytedTsinghua-SIA/DAPO-Math-17k",
            evaluation="hub:HuggingFaceH4/aime_2024",
            system_prompt=TEMPLATE,
            max_prompt_tokens=2048,
        ),
        curriculum=CurriculumConfig(
            stages='[{"until": 512, "max_completion_tokens": 32768}, {}]'
        ),
        rollout=RolloutConfig(
            num_generations=16, max_completion_tokens=65_536, prompts_at_once=16
        ),
        reward=RewardConfig(parts="answer, format:think_answer"),
        objective=Objective(name="r1_zero", **r1_zero),
        optimizer=OptimizerConfig(learning_rate=3e-6),
        batch=BatchConfig(
            prompts_per_step=512,
            minibatches_per_step=16,
            micro_batch_size=16,
            logprob_chunk_tokens=8192,
        ),
        evaluation=EvaluationConfig(every_steps=50, prompts=30, num_generations=16),
        mesh=MeshConfig(shape=(1, 16, 8)),
        checkpoint=CheckpointConfig(every_steps=5),
        logging=LoggingConfig(completions_every_steps=5),
    )
