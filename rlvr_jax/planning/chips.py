"""TPU generations: peak rates, memory and price, as their vendor lists them."""

import dataclasses
import math

from rlvr_jax.errors import UserError


@dataclasses.dataclass(frozen=True)
class Chip:
    """One chip of a generation.

    Figures are those of the "System architecture" pages of the Cloud TPU documentation
    (cloud.google.com/tpu/docs/v5e, v5p, v6e, tpu7x).
    """

    bf16_flops: float
    """Peak per second."""
    hbm_gib: float
    hbm_bytes_per_s: float
    ici_bytes_per_s: float
    """Both directions of all links between chips."""
    host_gib: float
    """Memory of a host, over the chips it holds."""
    devices: int = 1
    """JAX devices per chip; each has its share of all of the above."""
    dollars_per_hour: float | None = None
    """Per chip, on demand; None where no list price is known to us."""


# Prices: list prices on demand in us regions, of cloud.google.com/tpu/pricing, 2025.
CHIPS: dict[str, Chip] = {
    "v5e": Chip(197e12, 16.0, 819e9, 400e9, 192 / 4, dollars_per_hour=1.20),
    "v5p": Chip(459e12, 95.0, 2765e9, 1200e9, 448 / 4, dollars_per_hour=4.20),
    "v6e": Chip(918e12, 32.0, 1638e9, 800e9, 720 / 4, dollars_per_hour=2.70),
    "tpu7x": Chip(2307e12, 192.0, 7380e9, 1200e9, 960 / 4, devices=2),
}


@dataclasses.dataclass(frozen=True)
class Topology:
    """A named slice of a pod, as "v5p:4x4x4"."""

    name: str
    chip: Chip
    chips: int

    @property
    def devices(self) -> int:
        """What JAX will count."""
        return self.chips * self.chip.devices

    @property
    def hbm_gib_per_device(self) -> float:
        """Of one device, which is a whole chip but on tpu7x."""
        return self.chip.hbm_gib / self.chip.devices


def parse_topology(name: str) -> Topology:
    """The slice that a name like "v5e:16x16" stands for.

    Raises:
      UserError: no such generation, or no sizes.

    Example:
      >>> parse_topology("v5p:4x4x4").chips, parse_topology("tpu7x:2x2x1").devices
      (64, 8)
    """
    generation, _, sizes = name.partition(":")
    parts = sizes.split("x")
    if generation not in CHIPS or not all(part.isdigit() for part in parts):
        raise UserError(
            f"parse_topology: topology {name!r} is not GENERATION:SIZES with a "
            f"generation of {', '.join(CHIPS)}, as v5e:16x16 or v5p:4x4x4."
        )
    return Topology(name, CHIPS[generation], math.prod(map(int, parts)))
