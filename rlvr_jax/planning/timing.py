"""How long a step takes at stated shares of the chips' peaks, and what it costs.

A phase takes as long as the slowest of three: its FLOPs at MATMUL of the peak, the
bytes it reads from memory at MEMORY of the bandwidth, the bytes it sends at LINKS of
the interconnect in one direction. Sent are weights and gradients over "fsdp"; what is
reduced over "data" (gradients) and "tensor" (activations) comes on top. Completions run
to the limit: a real step is shorter by the share of tokens it does not sample.
"""

import dataclasses

from rlvr_jax.planning.chips import Topology
from rlvr_jax.planning.flops import StepFlops
from rlvr_jax.planning.work import Work

MATMUL, MEMORY, LINKS = 0.4, 0.7, 0.7
ASSUMPTION = (
    f"{MATMUL:.0%} of peak FLOPs, {MEMORY:.0%} of memory bandwidth, {LINKS:.0%} of the "
    "links one way, all-reduces not counted, every completion at its limit"
)


@dataclasses.dataclass(frozen=True)
class StepTime:
    """Seconds of the phases of a step."""

    prefill_s: float
    decode_s: float
    update_s: float
    """Passes without a gradient included."""
    reshard_s: float
    """Of making the sampler's weights, wherever they go."""
    bound: dict[str, str]
    """What each phase waits for: "compute", "memory" or "links"."""

    @property
    def total_s(self) -> float:
        """Of a step; verifying answers overlaps with nothing and is not counted."""
        return self.reshard_s + self.prefill_s + self.decode_s + self.update_s


@dataclasses.dataclass(frozen=True)
class Held:
    """The parameters of one device."""

    numbers: float
    """How many it holds."""
    fsdp: int
    """Devices over which those that it computes with are spread."""

    @property
    def whole(self) -> float:
        """What it reads in a pass over the weights."""
        return self.numbers * self.fsdp

    @property
    def gathered(self) -> float:
        """What other devices send it for that."""
        return self.numbers * (self.fsdp - 1)


def step_time(
    work: Work,
    flops: StepFlops,
    topology: Topology,
    training: Held,
    sampling: Held,
    *,
    width: int,
    cache_bytes: float,
) -> StepTime:
    """The estimate for one step.

    Args:
      work: of the step.
      flops: `step_flops(work)`.
      topology: the chips.
      training: the parameters of a device in the updates.
      sampling: those that it samples with.
      width: bytes of one in the type that is computed with.
      cache_bytes: of one device, read by every decoding step.
    """
    chip, chips = topology.chip, topology.chips
    compute = MATMUL * chip.bf16_flops * chips
    memory = MEMORY * chip.hbm_bytes_per_s / chip.devices
    # What a device receives goes one way.
    links = LINKS * chip.ici_bytes_per_s / 2 / chip.devices
    steps = work.length * work.sampling_rounds
    # The value model's updates are like the policy's, and it reads the batch once.
    epochs = work.epochs * (1 + work.critic_updates)
    micros = work.micros_per_update * work.minibatches
    reads = work.extra_forwards + work.epochs * work.selection
    passes = micros * (epochs * 3 + reads + bool(work.critic_updates))
    own, others = sampling.whole * width, sampling.gathered * width
    made = sampling.numbers * width
    bound, seconds = {}, {}
    for phase, flop, read, sent in (
        # At most all of it comes from elsewhere.
        (
            "reshard",
            0.0,
            training.numbers * 4 + made,
            0.0 if sampling == training else made,
        ),
        ("prefill", flops.prefill, own, others),
        ("decode", flops.decode, steps * (own + cache_bytes), steps * others),
        # Gradients go back once per micro-batch, in float32.
        (
            "update",
            flops.forward + flops.train,
            passes * training.whole * width,
            training.gathered * (passes * width + micros * epochs * 4),
        ),
    ):
        times = {
            "compute": flop / compute,
            "memory": read / memory,
            "links": sent / links,
        }
        bound[phase] = max(times, key=lambda name: times[name])
        seconds[phase] = times[bound[phase]]
    return StepTime(
        seconds["prefill"],
        seconds["decode"],
        seconds["update"],
        seconds["reshard"],
        bound,
    )


def chip_hours(seconds: float, chips: int) -> float:
    """What is paid for: hours of each chip, added up.

    Example:
      >>> chip_hours(27 * 3600.0, 8)
      216.0
    """
    return seconds / 3600 * chips


def dollars_per_step(seconds: float, topology: Topology, price: float | None):
    """Chip-hours times their price; None without a price.

    Args:
      seconds: of the step.
      topology: how many chips.
      price: dollars per chip-hour, in place of the list price.
    """
    price = topology.chip.dollars_per_hour if price is None else price
    return None if price is None else chip_hours(seconds, topology.chips) * price
