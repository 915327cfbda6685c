"""DAPO on Qwen2.5-32B: the run of the paper, for a slice of a TPU pod.

    python -m launch.train --config configs/dapo_qwen32b.py        # once per host
    python -m launch.plan --config configs/dapo_qwen32b.py --topology v5p:4x4x4

Paper: DAPO, https://arxiv.org/abs/2503.14476; 50 points on AIME 2024 (avg@32).

| setting | value | source |
|---|---|---|
| groups | 512 prompts x 16 | sec. 4.1 |
| updates | 16 of 512 completions per rollout batch | sec. 4.1 |
| tokens | 20,480, soft penalty over the last 4,096 | sec. 4.1 |
| clip | 0.2 / 0.28, token mean, no KL | sec. 3.1, 3.3, 2.3 |
| sampling | until every group has both outcomes | sec. 3.2 |
| reward | +1 / -1 | sec. 2.4 |
| AdamW | 1e-6, constant after 20 rollout steps of warm-up | sec. 4.1 |
| weight decay | 0.1 | verl's recipe |
| evaluation | temperature 1, top-p 0.7, 32 samples | sec. 4.1 |
| 2,048 prompt tokens | | verl's recipe |
| question suffix | the answer on a line after "Answer:" | DAPO's data |

Departs: 64 prompts are sampled until the longest of their completions ends, as
rollout.engine="slots" runs on one host only. An evaluation fills a whole batch of 512
prompts, whatever the 30 of AIME need: it is rare here.

Its plan on v5p:4x4x4, mesh (1, 16, 4), by the estimate (`--nocompile`):

    memory of 95 GiB      train 27.4, prefill 8.3, decode 87.7
      as compiled         train 26.2, prefill 7.8, decode 88.1
    FLOPs of a step      8.45e+19, useful 6.72e+19
    time of a step       14,563 s: sampling 8,711, learning 5,852
    cost of a step       258.9 chip-hours, $1,087.37

All completions at their limit, 40 % of peak FLOPs, 70 % of bandwidths: 600 steps would
take 101.1 days. Never run here.

To vary: the rows of configs/sweeps/dapo_ablation.py, --config.mesh.shape.
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


def get_config() -> Config:
    """The recipe."""
    return Config(
        run_dir="runs/dapo_qwen32b",
        steps=600,
        model=ModelConfig(
            path="~/models/Qwen2.5-32B", architecture="qwen2.5-32b", dtype="bfloat16"
        ),
        data=DataConfig(
            train="hub:BytedTsinghua-SIA/DAPO-Math-17k",
            evaluation="hub:HuggingFaceH4/aime_2024",
            question_suffix=(
                '\n\nRemember to put your answer on its own line after "Answer:".'
            ),
            max_prompt_tokens=2048,
        ),
        curriculum=CurriculumConfig(filter="dynamic"),
        rollout=RolloutConfig(
            num_generations=16, max_completion_tokens=20_480, prompts_at_once=64
        ),
        reward=RewardConfig(wrong=-1.0),
        objective=Objective(overlong_buffer_tokens=4096),
        optimizer=OptimizerConfig(
            learning_rate=1e-6, warmup_steps=20, weight_decay=0.1
        ),
        batch=BatchConfig(
            prompts_per_step=512,
            minibatches_per_step=16,
            micro_batch_size=16,
            logprob_chunk_tokens=8192,
        ),
        evaluation=EvaluationConfig(
            every_steps=50, prompts=30, num_generations=32, top_p=0.7
        ),
        mesh=MeshConfig(shape=(1, 16, 4)),
        checkpoint=CheckpointConfig(every_steps=5),
        logging=LoggingConfig(completions_every_steps=5),
    )
