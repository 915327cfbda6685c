"""The settings of a run, one dataclass per layer; every default is written here once.

A recipe is a Python file whose `get_config()` returns a `Config`; flags change single
fields: `--config.objective.epsilon_high=0.28`, `--config.mesh.shape="(2,4,1)"`.
Checks that need more than one field live in `rlvr_jax/validate.py`.
"""

import dataclasses
import json
import pathlib
from typing import Any

from rlvr_jax.errors import UserError
from rlvr_jax.objective_config import CriticConfig, Objective


@dataclasses.dataclass
class ModelConfig:
    """Which policy is trained."""

    path: str = ""
    """A Hugging Face model directory, a .gguf file, or "" for a new small decoder."""
    architecture: str = ""
    """Name of a published one (rlvr_jax/models/known.py) that is to be at `path`: lets
    `launch.plan` do without the files; a run checks them against it."""
    reference_path: str = ""
    """A model directory or .gguf file of the policy's own architecture that the KL term
    refers to: a teacher, as a specialist of another run. "": the policy at the
    start."""
    hidden_size: int = 128
    """Width of a new decoder. This and the next five are read only when path is ""."""
    intermediate_size: int = 384
    num_layers: int = 4
    num_heads: int = 4
    num_kv_heads: int = 2
    num_experts: int = 0
    """Of each layer, as wide as `intermediate_size`; 0: one MLP per layer."""
    num_experts_per_token: int = 2
    rope_theta: float = 10_000.0
    dtype: str = "float32"
    """Of parameters and activations: "float32" or "bfloat16". Log-probs are float32."""
    head_dtype: str = "float32"
    """Of logits: "float32", or "model" (the type of `dtype`), which sets sampler and
    trainer further apart."""
    attention: str = "auto"
    """Of whole sequences: "splash" (JAX's kernel for TPU: no array of scores), "dense",
    or "auto": splash on TPU where key-value heads divide over the mesh's tensor axis
    and there are 128 positions or more, dense elsewhere and where rows are packed."""
    logprob_kernel: str = "auto"
    """Of log-probs and entropies while training: "fused" (a kernel for TPU: logits only
    as tiles), "chunked" (`batch.logprob_chunk_tokens`), or "auto": fused on TPU where
    the vocabulary divides over the tensor axis, logits are float32 and sampling does
    not truncate; chunked elsewhere. A kernel named here also runs on other devices,
    interpreted: for tests."""
    lora_rank: int = 0
    """Train adapters of this rank beside frozen weights; 0 trains the weights."""
    lora_alpha: float = 32.0
    """Adapters are scaled by lora_alpha / lora_rank."""
    remat: str = "layer"
    """Activations recomputed in the backward pass: "layer" (all but layer inputs),
    "dots" (all but the products with weights: no product is computed twice), "none"
    (keep everything: several times the memory), "groups" (all but the inputs of about
    sqrt(layers) groups of layers: the least memory, and one more forward pass)."""


@dataclasses.dataclass
class DataConfig:
    """Which problems are trained and evaluated on."""

    train: str = "packaged:gsm8k"
    """packaged:NAME (ships with the project), task:NAME (generated), a .jsonl or
    .jsonl.gz file, or hub:NAME (a Hugging Face `datasets` name or folder); or several
    with commas between. "[:N]" after a source takes its first N problems."""
    evaluation: str = ""
    """Same forms; "" evaluates on the held-out part of `train`'s own source."""
    task_options: str = "{}"
    """Settings of a generated task, as JSON: '{"max_operand": 20}'; of several tasks
    under their names: '{"count": 500, "letters": {"length": 6}}'."""
    question_field: str = "question"
    answer_field: str = "answer"
    subset: str = ""
    """Configuration name of a hub: dataset, as "main" of openai/gsm8k."""
    keep: str = "{}"
    """Training rows to keep, as JSON: '{"level": [3, 4, 5]}' keeps those whose field
    "level" has one of the values."""
    deduplicate: bool = False
    """Leave out training questions that came before (case and spaces aside), and all
    that come with different answers."""
    template: str = "chat"
    """"chat" (the tokenizer's chat template), "raw" (the question as it stands)."""
    system_prompt: str = ""
    """The chat's first message, or the first paragraph of a raw prompt."""
    question_suffix: str = ""
    """Added to each question, as an instruction on the form of the answer."""
    few_shot: int = 0
    """Solved examples put before a raw question."""
    max_prompt_tokens: int = 256
    """A longer prompt is left out or an error before step 0, by `too_long`."""
    too_long: str = "drop"
    """"drop" (and report how many) or "error"."""
    mix: str = "{}"
    """How much of a step each domain makes up, as JSON: '{"gsm8k": 3, "countdown": 1}'.
    "{}" takes problems as they come: a domain counts by its size."""
    decontaminate: str = ""
    """Sources, as of `train`: training questions that come close to one of theirs are
    left out (rlvr_jax/data/decontamination.py)."""
    decontaminate_words: int = 13
    """Length of the runs of words that are looked for; a shorter question must be
    equal, but for case, spaces and signs."""
    decontaminate_share: float = 0.8
    """Share of a question's runs, found in one training question, that is too close."""
    shuffle: bool = True
    """Order is a function of (seed, epoch); False keeps the file's order."""


@dataclasses.dataclass
class CurriculumConfig:
    """Which prompts a step learns from, by their outcomes now, before, and by plan."""

    filter: str = "none"
    """Groups all of one outcome teach nothing. "none" keeps them, "mask" takes them out
    of the loss, "dynamic" (DAPO) samples whole further batches until the step is full
    of others, "active" (Olmo 3) only about as many more prompts as are missing."""
    judged_on: str = "correct"
    """What has to differ within a group: "correct" (the verdicts, whatever they pay) or
    "reward" (what the verifiers pay: for partial scores)."""
    max_generation_batches: int = 10
    """Bound of "dynamic" and "active" per step, in batches of prompts_per_step."""
    when_short: str = "mask"
    """At the bound: "mask" (groups outside the loss fill the step up) or "error"."""
    draw: str = "order"
    """"order" (each problem once per epoch) or "priority" (Kimi k1.5: with a chance
    proportional to 1 - pass rate)."""
    drop_pass_rate: float = 0.0
    """Problems that reach this pass rate are not drawn again (ScaleRL's
    No-Positive-Resampling: 0.9); 0: off."""
    min_pass_rate: float = 0.0
    """Problems outside of [min, max] are not drawn; those not yet tried are."""
    max_pass_rate: float = 1.0
    revisit_after_steps: int = 0
    """So long after its last group a problem outside of the window is tried again, as
    the policy has changed; 0: never."""
    pass_rate_of: str = "latest"
    """The pass rate is that of the "latest" group or of "all" completions so far."""
    prior_count: float = 0.0
    """Completions that a prior counts for: the pass rate is the mean of a Beta
    posterior (2: uniform prior); 0: the plain share."""
    pass_rate_field: str = ""
    """Field of the rows with a pass rate known beforehand; the prior's mean, which is
    0.5 without one."""
    stages: str = "[]"
    """One after the other, as JSON: '[{"until": 100, "keep": {"level": [1, 2]},
    "max_completion_tokens": 512}, {"mix": {"math": 1, "code": 1}}]'. "until" is a step;
    the last stage has none. "keep" as data.keep; "mix" as data.mix, and only its
    domains are drawn."""


@dataclasses.dataclass
class RolloutConfig:
    """How completions are sampled."""

    num_generations: int = 8
    """G: completions per prompt."""
    max_completion_tokens: int = 256
    prompts_at_once: int = 0
    """Prompts whose completions are sampled at the same time, for a cache that fits;
    changes memory and time, never the result. Divides batches; 0: all of a batch."""
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    """0 keeps the whole vocabulary."""
    min_p: float = 0.0
    stop: tuple[str, ...] = ()
    """Texts that end a completion, beside the model's own end tokens; each must be one
    token."""
    engine: str = "batch"
    """"batch" (all completions of a batch side by side, until the longest ends) or
    "slots" (finished ones make room at once, and are verified meanwhile)."""
    slots: int = 64
    """Completions that "slots" decodes at the same time."""
    replay_routing: bool = True
    """Of a model with experts: training sends each token through the experts that it
    went through in the rollout; False lets today's routers pick."""
    staleness: int = 0
    """Steps that the sampling policy may be behind: batches are sampled and verified
    beside the updates before them. 0: each from the newest policy."""
    token_budget: int = 0
    """New tokens of a completion in one step, with "slots": one that has used them goes
    on in a later step, under the policy of then. 0: all are finished in their step."""
    pause_share: float = 1.0
    """With token_budget: once this share of the completions under way is finished, the
    others rest for the step, whatever budget they have left (Kimi K3); 1: never."""
    waiting_batches: int = 1
    """With token_budget: groups under way beside the step's own, in batches of
    prompts_per_step. A step that has too few complete ones finishes its oldest."""
    max_group_age: int = 4
    """Steps that a group may take beside its first, at least waiting_batches."""
    overdue: str = "finish"
    """What becomes of one that would need more: "finish" (in that step, whatever the
    budget) or "drop"."""


@dataclasses.dataclass
class ControlConfig:
    """What is written into completions, or ends them; for rollout.engine="slots".

    Written tokens are not the policy's: they leave the loss.
    """

    prefix: str = ""
    """Written at the start, as "<think>\\n"."""
    think_end: str = "</think>"
    """What closes the thoughts."""
    budget: int = 0
    """Tokens after which open thoughts are closed; 0: never."""
    budget_spread: int = 0
    """The budget of each completion is drawn from [budget, budget + budget_spread]
    (ScaleRL: 10,240 and 2,048)."""
    budget_text: str = (
        "\n\nConsidering the limited time by the user, I have to give the solution "
        "based on the thinking directly now.\n"
    )
    """Written before `think_end` then (Qwen3's sentence)."""
    least_thinking: int = 0
    """Shorter thoughts go on: `wait` takes the place of `think_end` (s1)."""
    wait: str = "Wait"
    max_waits: int = 1
    """How often, per completion."""
    answer_tokens: int = 0
    """A completion is cut so many tokens after its thoughts; 0: any number."""
    certain_tokens: int = 0
    """A completion is cut after so many tokens in a row of a probability above 0.99
    each, as it repeats itself (MiniMax-M1: 3,000); 0: never."""
    stop: tuple[str, ...] = ()
    """Texts that end a completion, however they are cut into tokens."""


@dataclasses.dataclass
class RewardConfig:
    """What a completion is paid for, and how the verifiers run."""

    verifier: str = "math"
    """For rows that name none: a registered name, or "file.py:function" of your own."""
    correct: float = 1.0
    wrong: float = 0.0
    """+-1 of DAPO: correct=1, wrong=-1; Tulu's alpha: correct=10."""
    min_score: float = 0.0
    """A lower score counts as 0. Of a share of tests passed: 1 pays for all or nothing,
    0 for each."""
    parts: str = "answer"
    """What the reward is the sum of: "answer, 0.1*language if format:think,
    -10*truncated"; the form is in rlvr_jax/rollout/rewards.py."""
    reads_reasoning: str = ""
    """Verifiers, with commas between, that may read the reasoning although they judge
    more than form, length and language."""
    format: str = ""
    """A pattern the completion must match to be paid `format_weight`: a registered
    format ("think", "boxed", "answer_tag", "think_boxed", "think_answer",
    "think_flag") or "" for none."""
    format_weight: float = 0.0
    execution: str = "pool"
    """"pool" (killable processes between two jitted programs) or "callback" (the same
    pool, called from inside the jitted program)."""
    workers: int = 0
    """Verifier processes; 0 takes the number of cores, at most 8."""
    timeout_s: float = 5.0
    """Per answer; past it the worker is killed and the verdict is "timeout"."""
    max_failure_rate: float = 0.2
    """A run stops when crash + timeout exceed this share of a step's verdicts."""
    check_references: int = 256
    """References verified against themselves before step 0; 0 skips the check."""


@dataclasses.dataclass
class NoiseConfig:
    """Wrong rewards on purpose, to study them; metrics keep the true verdicts."""

    pays: str = "verdict"
    """What `answer` is paid for: "verdict" (the truth), "random", "format" (one box),
    "majority" (the most frequent answer of the group), "incorrect" (the most frequent
    wrong one)."""
    random_rate: float = 0.5
    """Share that pays="random" pays."""
    mislabelled_rate: float = 0.0
    """Share of problems whose right answer pays="incorrect" takes for a wrong one: what
    a label that is not verified again can be."""
    false_positive_rate: float = 0.0
    """Share of wrong completions that are paid as correct ones."""
    false_negative_rate: float = 0.0
    """Share of correct completions that are paid as wrong ones."""
    group_flip_rate: float = 0.0
    """Share of groups all of whose verdicts are turned around."""
    accept_pattern: str = ""
    """Regular expression; completions that contain it are paid as correct."""
    reject_pattern: str = ""
    """Regular expression; completions that contain it are paid as wrong."""
    seed: int = 0


@dataclasses.dataclass
class JudgeConfig:
    """The language model behind the verifiers "judge" and "judge:rubric"."""

    url: str = ""
    """Of an OpenAI-compatible server, as "http://localhost:8000/v1"; "" for none."""
    model: str = ""
    """The name that the server knows it by."""
    path: str = ""
    """In place of `url`: a model directory or .gguf file, loaded beside the policy."""
    max_prompt_tokens: int = 2048
    """With `path`: an answer whose question is longer is unparseable."""
    api_key_env: str = ""
    """Environment variable that holds the key; "" sends none."""
    max_tokens: int = 1024
    """Of the judge's reply."""
    concurrency: int = 16
    """Calls under way at the same time; with `path`, rows of a batch."""
    timeout_s: float = 60.0
    """Per answer, retries included; past it the verdict is "timeout"."""
    retries: int = 3
    price_prompt: float = 0.0
    """Per million prompt tokens, for judge/cost."""
    price_completion: float = 0.0


@dataclasses.dataclass
class AuditConfig:
    """A second, stricter verifier that watches the one in the reward."""

    verifier: str = ""
    """Any name a verifier can have; "" audits nothing."""
    share: float = 0.1
    """Of the completions that it checks too."""
    max_gap: float = 0.1
    """Alarm when the training verifier accepts this much more than the strict one."""
    window: int = 512
    """Audited completions that the gap is taken over."""
    stop: bool = False
    """End the run on an alarm; otherwise it is a warning and a metric."""


@dataclasses.dataclass
class OptimizerConfig:
    """AdamW and its schedule."""

    learning_rate: float = 1e-6
    warmup_steps: int = 0
    schedule: str = "constant"
    """After the warm-up: "constant", or "linear" or "cosine" down to 0 at the end."""
    adam_b1: float = 0.9
    adam_b2: float = 0.999
    adam_eps: float = 1e-8
    moment_dtype: str = "float32"
    """Of Adam's first moment: "float32" or "bfloat16" (a quarter less state)."""
    weight_decay: float = 0.0
    max_grad_norm: float = 1.0
    """Global norm; 0 switches clipping off."""
    max_nonfinite_steps: int = 3
    """Steps in a row without a finite gradient, after which a run stops; their updates
    are left out. 0: never."""


@dataclasses.dataclass
class BatchConfig:
    """Sizes of a step, in prompts."""

    prompts_per_step: int = 8
    minibatches_per_step: int = 1
    """Optimizer updates per rollout batch; divides prompts_per_step."""
    epochs_per_step: int = 1
    """Passes over the rollout batch."""
    micro_batch_size: int = 0
    """Completions per forward-backward; changes memory, never the result. Divides
    num_generations or is a multiple of it; 0 takes a whole minibatch."""
    logprob_chunk_tokens: int = 128
    """Positions per chunk of the LM head; changes memory, never the result."""
    packing: bool = False
    """Short completions of a prompt share rows of the update; changes memory and time,
    never the result. Lengths decide how many rows there are, and each new number is a
    program to compile: for long completions of very different lengths. Micro-batches
    must be of whole groups, and large ones pack best."""

    @property
    def updates_per_step(self) -> int:
        """Optimizer updates made from one rollout batch."""
        return self.minibatches_per_step * self.epochs_per_step


@dataclasses.dataclass
class WarmupConfig:
    """A supervised cold start before RL: a new decoder or a loaded model imitates the
    "solution" of each row of data.train (`launch.demonstrate` writes such rows)."""

    steps: int = 0
    batch_size: int = 64
    learning_rate: float = 1e-3
    loss: str = "likelihood"
    """Per token: "likelihood" (-log pi) or "rectified" (DFT: times pi, held constant,
    so that what the policy finds absurd no longer weighs most)."""


@dataclasses.dataclass
class EvaluationConfig:
    """Held-out problems, sampled before and after training and every few steps."""

    every_steps: int = 0
    """0: only before and after."""
    prompts: int = 64
    num_generations: int = 8
    """n of the unbiased pass@k, k = 1..n."""
    temperature: float = 1.0
    top_p: float = 1.0
    strict_verifier: str = ""
    """A stricter verifier beside the problems' own, on the same completions; rewards
    never see it. "" for none."""
    input_dependence: bool = False
    """Score each completion of the first prompts_per_step problems under all of their
    questions: a policy that answers by a template says the same to each (RAGEN-2). As
    many passes as questions."""


@dataclasses.dataclass
class MeshConfig:
    """Devices as (data, fsdp, tensor); one -1 takes what is left."""

    shape: tuple[int, int, int] = (-1, 1, 1)
    """Of training, and of sampling where `rollout_shape` says nothing else."""
    rollout_shape: tuple[int, ...] = ()
    """Of sampling and evaluating: the same devices laid out anew, as (1, 1, 8) beside
    (1, 8, 1), changes memory and time, never the result. (): as `shape`."""


@dataclasses.dataclass
class CheckpointConfig:
    """When the whole state is saved under run_dir/checkpoints."""

    every_steps: int = 1
    """What a kill can cost; 0: only at the end and on Ctrl-C."""
    keep: int = 2
    """The newest ones."""
    keep_best: int = 0
    """Besides, those of highest pass@1 among all that were evaluated."""
    keep_every_steps: int = 0
    """Besides, those of every so many steps."""
    export: bool = True
    """At the end, also write the policy as a Hugging Face directory (run_dir/model)."""


@dataclasses.dataclass
class ReplayConfig:
    """Bundles of single updates, for `launch.replay`."""

    save_every: int = 0
    """Write one under run_dir/replay every so many steps; 0: never."""


@dataclasses.dataclass
class LoggingConfig:
    """What a run shows and writes."""

    completions_every_steps: int = 10
    """A table of sampled completions on screen and in completions.jsonl; 0: never."""
    completions_shown: int = 3
    tensorboard: bool = True
    report: bool = True
    """Write run_dir/report.html at the end."""
    slow_step_factor: float = 10.0
    """A step that takes so many times the median of the steps before it (and more than
    30 s) has the stacks of all threads written to run_dir/stacks; 0: off."""


@dataclasses.dataclass
class Config:
    """A whole run."""

    run_dir: str = "runs/default"
    seed: int = 0
    """Of data order, sampling and initial parameters."""
    steps: int = 100
    model: ModelConfig = dataclasses.field(default_factory=ModelConfig)
    data: DataConfig = dataclasses.field(default_factory=DataConfig)
    curriculum: CurriculumConfig = dataclasses.field(default_factory=CurriculumConfig)
    rollout: RolloutConfig = dataclasses.field(default_factory=RolloutConfig)
    control: ControlConfig = dataclasses.field(default_factory=ControlConfig)
    reward: RewardConfig = dataclasses.field(default_factory=RewardConfig)
    noise: NoiseConfig = dataclasses.field(default_factory=NoiseConfig)
    judge: JudgeConfig = dataclasses.field(default_factory=JudgeConfig)
    audit: AuditConfig = dataclasses.field(default_factory=AuditConfig)
    objective: Objective = dataclasses.field(default_factory=Objective)
    critic: CriticConfig = dataclasses.field(default_factory=CriticConfig)
    optimizer: OptimizerConfig = dataclasses.field(default_factory=OptimizerConfig)
    batch: BatchConfig = dataclasses.field(default_factory=BatchConfig)
    warmup: WarmupConfig = dataclasses.field(default_factory=WarmupConfig)
    evaluation: EvaluationConfig = dataclasses.field(default_factory=EvaluationConfig)
    mesh: MeshConfig = dataclasses.field(default_factory=MeshConfig)
    checkpoint: CheckpointConfig = dataclasses.field(default_factory=CheckpointConfig)
    replay: ReplayConfig = dataclasses.field(default_factory=ReplayConfig)
    logging: LoggingConfig = dataclasses.field(default_factory=LoggingConfig)


def to_dict(config: Config) -> dict[str, Any]:
    """The settings as nested dictionaries of JSON values (tuples become lists)."""
    return json.loads(json.dumps(dataclasses.asdict(config)))


def from_dict(saved: dict[str, Any]) -> Config:
    """Settings that `save` wrote; those that the file does not name have the default.

    Raises:
      UserError: it names a setting that does not exist (any more).
    """
    return _filled(Config, saved, "")


def _filled(kind: type, saved: dict[str, Any], prefix: str) -> Any:
    known = {field.name: field for field in dataclasses.fields(kind)}
    values = {}
    for name, value in saved.items():
        if name not in known:
            raise UserError(
                f"config: the settings hold {prefix}{name}, which is none; they are of "
                "another version of the project"
            )
        default = getattr(kind(), name)
        if dataclasses.is_dataclass(default):
            value = _filled(type(default), value, f"{prefix}{name}.")
        values[name] = tuple(value) if isinstance(default, tuple) else value
    return kind(**values)


def save(config: Config, path: pathlib.Path) -> None:
    """Writes the resolved settings as JSON: all of it, or nothing if killed."""
    new = path.with_name(f".{path.name}.new")
    new.write_text(json.dumps(to_dict(config), indent=2) + "\n")
    new.replace(path)


def differences(ours: dict[str, Any], saved: dict[str, Any]) -> dict[str, tuple]:
    """Settings with another value than before: dotted name -> (now, saved)."""
    found: dict[str, tuple] = {}
    for key in sorted(ours.keys() | saved.keys()):
        now, before = ours.get(key), saved.get(key)
        if isinstance(now, dict) and isinstance(before, dict):
            inner = differences(now, before)
            found |= {f"{key}.{name}": pair for name, pair in inner.items()}
        elif now != before:
            found[key] = (now, before)
    return found
