"""How long a step takes at stated shares of the chips' peaks, and what it costs.

A phase takes as long as the slowest of three: its FLOPs at MATMUL of the peak, the
bytes it reads from memory at MEMORY of the bandwidth, the bytes it receives
(planning/exchange.py) at LINKS of the interconnect in one direction. Completions run to
the limit: a real step is shorter by the share of tokens it does not sample.
"""

import dataclasses
from collections.abc import Mapping, Sequence

from rlvr_jax.planning.chips import Topology
from rlvr_jax.planning.exchange import Held, Sent
from rlvr_jax.planning.flops import StepFlops
from rlvr_jax.planning.work import Work

MATMUL, MEMORY, LINKS = 0.4, 0.7, 0.7
ASSUMPTION = (
    f"{MATMUL:.0%} of peak FLOPs, {MEMORY:.0%} of memory bandwidth, {LINKS:.0%} of the "
    "links one way, every completion at its limit"
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


def step_time(
    work: Work,
    flops: StepFlops,
    topology: Topology,
    training: Held,
    sampling: Held,
    sent: Mapping[str, Sequence[Sent]],
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
      sent: between devices in "prefill", "decode" and "update".
      width: bytes of one in the type that is computed with.
      cache_bytes: of one device, read by every decoding step.
    """
    chip, chips = topology.chip, topology.chips
    compute = MATMUL * chip.bf16_flops * chips
    memory = MEMORY * chip.hbm_bytes_per_s / chip.devices
    # What a device receives goes one way.
    links = LINKS * chip.ici_bytes_per_s / 2 / chip.devices
    steps = work.length * work.sampling_rounds
    own, made = sampling.whole * width, sampling.numbers * width
    received = {name: sum(each.received for each in sent[name]) for name in sent}
    # At most all of it comes from elsewhere.
    received["reshard"] = 0.0 if sampling == training else made
    bound, seconds = {}, {}
    for phase, flop, read in (
        ("reshard", 0.0, training.numbers * 4 + made),
        ("prefill", flops.prefill, work.prefills * own),
        ("decode", flops.decode, steps * (own + cache_bytes)),
        (
            "update",
            flops.forward + flops.train,
            work.weight_passes * training.whole * width,
        ),
    ):
        times = {
            "compute": flop / compute,
            "memory": read / memory,
            "links": received[phase] / links,
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
