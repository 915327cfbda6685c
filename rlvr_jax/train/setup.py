"""Everything a run needs, loaded and checked before step 0."""

import dataclasses
import importlib.metadata
import pathlib
import platform
import subprocess
import sys
from typing import Any

import jax
from flax import nnx
from jax.sharding import Mesh

from rlvr_jax.config import Config
from rlvr_jax.data.curriculum import Curriculum
from rlvr_jax.data.problems import load_problems
from rlvr_jax.data.prompts import EncodedPrompts, encode_prompts, encode_solutions
from rlvr_jax.data.tokenizer import Tokenizer, load_tokenizer, stop_ids
from rlvr_jax.mesh.mesh import ROLLOUT_SHAPE, make_mesh, rearranged
from rlvr_jax.mesh.sharding import check_heads
from rlvr_jax.models.architecture import Architecture
from rlvr_jax.rollout.sampler import Sampling
from rlvr_jax.rollout.scorer import (
    check_what_is_read,
    make_scorer,
    reward_verifiers,
)
from rlvr_jax.rollout.scoring import Scorer
from rlvr_jax.train.batches import PromptBatches, slots_for
from rlvr_jax.train.cross_questions import CrossQuestions
from rlvr_jax.train.device_checks import check_processes, check_row_devices
from rlvr_jax.train.evaluation import Evaluation, strict_scorer
from rlvr_jax.train.policy import (
    abstract_parameters,
    architecture_of,
    load_reference,
    loaded_critic,
    make_decoder,
)
from rlvr_jax.train.sampler_plan import SamplerPlan, sampler_plan
from rlvr_jax.train.state import StepPlan
from rlvr_jax.train.step_plan import step_plan_of
from rlvr_jax.train.streaming import steering_engine
from rlvr_jax.train.warmup import Warmup
from rlvr_jax.validate import ConfigError
from rlvr_jax.verifiers.base import Sample
from rlvr_jax.verifiers.judge import NAMES as JUDGES
from rlvr_jax.verifiers.pool import VerifierPool
from rlvr_jax.verifiers.preflight import check_references


@dataclasses.dataclass(frozen=True)
class Setup:
    """The parts of a run."""

    config: Config
    mesh: Mesh
    """Of training; `sampler.mesh` is that of sampling."""
    tokenizer: Tokenizer
    architecture: Architecture
    parameters: nnx.State
    """Of a run that resumes: shapes, types and shardings."""
    reference: nnx.State | None
    """Of model.reference_path; None without one, or where a checkpoint has it."""
    critic: dict[str, Any] | None
    """Parameters that critic.path holds; None: it starts from the policy, or there is
    none, or the run resumes."""
    train: EncodedPrompts
    batches: PromptBatches
    """As the train step takes them."""
    curriculum: Curriculum
    scorer: Scorer
    sampling: Sampling
    step_plan: StepPlan
    sampler: SamplerPlan
    evaluation: Evaluation | None
    warmup: Warmup | None

    @property
    def sampled_batches(self) -> PromptBatches:
        """The batches as the sampler takes them, over its own mesh."""
        return dataclasses.replace(self.batches, mesh=self.sampler.mesh)

    def at(self, step: int) -> "Setup":
        """The same with the completion length of the step's stage."""
        stage = self.curriculum.stages[self.curriculum.stage(step)]
        if stage.max_completion_tokens is None:
            return self
        sampling = dataclasses.replace(
            self.sampling, max_completion_tokens=stage.max_completion_tokens
        )
        return dataclasses.replace(self, sampling=sampling)


def prepare(config: Config, pool: VerifierPool, *, resumes: bool = False) -> Setup:
    """Loads data, tokenizer and model, and checks that the verifiers work.

    Args:
      config: of the run.
      pool: runs the verifiers.
      resumes: the parameters will come from a checkpoint: only their shapes, types
        and shardings are made.

    Raises:
      UserError, FileNotFoundError: what is wrong, and the setting to change. Nothing
        has been compiled by then.
    """
    check_processes(config)
    mesh = make_mesh(config.mesh.shape)
    rollout_mesh = rearranged(mesh, config.mesh.rollout_shape)
    tokenizer = load_tokenizer(config.model.path)
    train, held_out = _load_prompts(config, tokenizer)
    architecture = architecture_of(config.model, tokenizer.vocab_size)
    check_heads(architecture.num_heads, mesh)
    check_heads(architecture.num_heads, rollout_mesh, setting=ROLLOUT_SHAPE)
    check_row_devices(config, mesh, rollout_mesh)
    reads = _check_verifiers(config, pool, train, held_out)
    slots = slots_for(train.tokens, held_out.tokens if held_out else [])
    end_ids = stop_ids(tokenizer, config.rollout.stop)
    make = abstract_parameters if resumes else make_decoder
    critic = None if resumes else loaded_critic(config, architecture, mesh)
    graphdef, parameters = make(config, architecture, mesh)
    batches = PromptBatches(
        train.tokens,
        config.batch.prompts_per_step,
        slots,
        tokenizer.pad_id,
        config.rollout.num_generations,
        mesh,
    )
    step_plan = step_plan_of(config, graphdef, mesh)
    sampler = sampler_plan(config, architecture, step_plan, parameters, rollout_mesh)
    sampling = Sampling.from_config(config.rollout, end_ids)
    scorer = make_scorer(config, tokenizer, train.problems, reads, pool)
    curriculum = Curriculum(
        config.curriculum,
        train.problems,
        config.data,
        prompts_per_step=batches.size,
        max_completion_tokens=config.rollout.max_completion_tokens,
        seed=config.seed,
        streams=config.rollout.token_budget > 0,
    )
    _check_stages(config, curriculum)
    return Setup(
        config=config,
        mesh=mesh,
        tokenizer=tokenizer,
        architecture=architecture,
        parameters=parameters,
        reference=None if resumes else load_reference(config, parameters, mesh),
        critic=critic,
        train=train,
        batches=batches,
        curriculum=curriculum,
        scorer=scorer,
        sampling=sampling,
        step_plan=step_plan,
        sampler=sampler,
        evaluation=_evaluation(
            config,
            held_out,
            sampler.plan_beside(step_plan),
            batches,
            sampling,
            scorer,
            architecture,
        )
        if held_out
        else None,
        warmup=_warmup(config, train, tokenizer, batches, step_plan),
    )


def versions() -> dict[str, str]:
    """What the run ran on: for versions.json, the report and the resume check."""
    names = ("jax", "jaxlib", "flax", "optax", "orbax-checkpoint", "numpy", "rlvr_jax")
    found = {name: importlib.metadata.version(name) for name in names}
    commit = subprocess.run(
        ["git", "-C", str(pathlib.Path(__file__).parent), "rev-parse", "HEAD"],
        capture_output=True,
        text=True,
        check=False,
    )
    return found | {
        "python": platform.python_version(),
        "commit": commit.stdout.strip() or "unknown",
        "devices": f"{jax.device_count()} x {jax.devices()[0].device_kind}",
        "command": " ".join([pathlib.Path(sys.argv[0]).name, *sys.argv[1:]]),
    }


def _load_prompts(config, tokenizer) -> tuple[EncodedPrompts, EncodedPrompts | None]:
    def problems(split):
        return load_problems(
            config.data,
            split=split,
            default_verifier=config.reward.verifier,
            seed=config.seed,
        )

    training = problems("train")

    def encode(chosen):
        return encode_prompts(
            chosen,
            config.data,
            tokenizer,
            examples_from=training,
            seed=config.seed,
        )

    train = encode(training)
    if config.evaluation.prompts == 0:
        return train, None
    return train, encode(problems("evaluation")[: config.evaluation.prompts])


def _check_stages(config: Config, curriculum: Curriculum) -> None:
    """The overlong penalty's ramp fits into the shortest completions of all stages."""
    buffer = config.objective.overlong_buffer_tokens
    for number, stage in enumerate(curriculum.stages, start=1):
        limit = stage.max_completion_tokens
        if limit is not None and buffer > limit:
            raise ConfigError(
                f"objective.overlong_buffer_tokens={buffer} exceeds "
                f"max_completion_tokens={limit} of stage {number} of "
                "curriculum.stages: lower the one or raise the other."
            )


def _check_verifiers(config, pool, train, held_out) -> dict[str, str]:
    """What each verifier reads; raises where one or a reference does not work."""
    problems = [*train.problems, *(held_out.problems if held_out else [])]
    reads = pool.check(reward_verifiers(config, problems))
    check_what_is_read(config, reads)
    watching = {config.audit.verifier, config.evaluation.strict_verifier}
    pool.check(sorted(watching - {"", *JUDGES}))
    wanted = config.reward.check_references
    # A judge has no opinion on a reference alone, and every call costs.
    problems = [problem for problem in problems if problem.verifier not in JUDGES]
    spread = problems[:: max(1, len(problems) // max(1, wanted))][:wanted]
    samples = [Sample(p.verifier, "", p.answer, p.question, p.meta) for p in spread]
    failures = check_references(samples, pool)
    if failures:
        shown = "\n".join(
            f"  {sample.answer!r} ({sample.verifier}) of {sample.question[:60]!r}: "
            f"{verdict.status}, {verdict.detail}"
            for sample, verdict in failures[:5]
        )
        raise ConfigError(
            f"reward: {len(failures)} of {len(samples)} references do not verify "
            f"against themselves:\n{shown}\nMend the data (data.train) or choose "
            "another reward.verifier; reward.check_references=0 skips this check."
        )
    return reads


def _evaluation(
    config, held_out, plan: StepPlan, batches, sampling, scorer: Scorer, architecture
) -> Evaluation:
    settings, graphdef = config.evaluation, plan.graphdef
    sampling = dataclasses.replace(
        sampling,
        num_generations=settings.num_generations,
        temperature=settings.temperature,
        top_p=settings.top_p,
    )
    return Evaluation(
        graphdef=graphdef,
        prompts=held_out,
        batches=dataclasses.replace(
            batches,
            tokens=held_out.tokens,
            num_generations=settings.num_generations,
            mesh=plan.mesh,
        ),
        scorer=scorer.for_evaluation(held_out.problems),
        sampling=sampling,
        seed=config.seed,
        strict=strict_scorer(scorer, held_out.problems, settings.strict_verifier),
        cross=CrossQuestions.of(plan, settings.num_generations)
        if settings.input_dependence
        else None,
        engine=steering_engine(
            config, scorer.tokenizer, architecture, graphdef, sampling
        ),
    )


def _warmup(config, train, tokenizer, batches, step_plan) -> Warmup | None:
    if config.warmup.steps == 0:
        return None
    return Warmup(
        settings=config.warmup,
        batches=dataclasses.replace(
            batches, size=config.warmup.batch_size, num_generations=1
        ),
        solutions=encode_solutions(train.problems, config.data, tokenizer),
        plan=step_plan,
        seed=config.seed,
    )
