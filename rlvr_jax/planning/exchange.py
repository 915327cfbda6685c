"""What devices send one another in a step, counted by hand.

Over "fsdp" each layer's weights are gathered before they are used, and their gradients
are scattered; over "data" gradients are summed; over "tensor" the outputs of attention
and of the MLP are, of every token and in every pass. Of the embedding and the LM head
only gradients are counted.
"""

import dataclasses

from jax.sharding import AbstractMesh, Mesh

from rlvr_jax.mesh.mesh import row_devices
from rlvr_jax.planning.memory import (
    decoding_per_device,
    micro_per_device,
    prefilled_per_device,
)
from rlvr_jax.planning.work import Work

SUMS_OF_A_LAYER = 2
"""Activations that tensor devices add up in a pass: attention's output, the MLP's."""


@dataclasses.dataclass(frozen=True)
class Sent:
    """One kind of collective, of a phase."""

    kind: str
    """As XLA names it."""
    results: int | float
    """Bytes that one device has of it in the end, all occurrences together."""
    parts: int
    """Devices that take part in each."""

    @property
    def received(self) -> float:
        """Bytes that one device receives for it, in a ring."""
        others = self.parts - 1
        return {
            "all-gather": self.results * others / self.parts,
            "reduce-scatter": self.results * others,
            "all-reduce": 2 * self.results * others / self.parts,
        }[self.kind]


@dataclasses.dataclass(frozen=True)
class Held:
    """The parameters of one device."""

    numbers: int | float
    """How many it holds."""
    in_layers: int | float
    """Of these, but for the embedding and the LM head."""
    mesh: Mesh | AbstractMesh

    @property
    def whole(self) -> float:
        """What it reads in a pass over the weights."""
        return self.numbers * self.mesh.shape["fsdp"]


def of_prefill(work: Work, held: Held, width: int) -> list[Sent]:
    """While prompts are read.

    Args:
      work: of a step.
      held: where it is sampled.
      width: bytes of a number in the type that is computed with.
    """
    tokens = prefilled_per_device(work, held.mesh) * work.slots
    return _forward(work, held, width, work.prefills, tokens)


def of_decoding(work: Work, held: Held, width: int) -> list[Sent]:
    """While completions are sampled, to their limit; as `of_prefill`."""
    _, rows = decoding_per_device(work, held.mesh)
    return _forward(work, held, width, work.length * work.sampling_rounds, rows)


def of_updates(work: Work, held: Held, width: int) -> list[Sent]:
    """Of learning, passes without a gradient included; as `of_prefill`.

    Weights are gathered for each pass forward, again backward, and for what is computed
    again. Gradients go back once per micro-batch, in float32.
    """
    mesh = held.mesh
    rows, prompts = micro_per_device(work, mesh)
    tokens = rows * work.length + prompts * work.slots
    # Of a layer's two sums the MLP's is not made again under "layer".
    again = {"layer": 0.5, "groups": 1.5}.get(work.remat, 0.0)
    passes = (2 + again) * work.trained_micros + work.read_micros
    found = [
        _weights(held, width * work.weight_passes),
        _sums(work, mesh, width * passes * tokens),
    ]
    times = 4 * work.trained_micros
    if work.adapters:  # whole on every device, and trained alone
        found.append(Sent("all-reduce", times * work.adapters, row_devices(mesh)))
    else:
        fsdp, data = mesh.shape["fsdp"], mesh.shape["data"]
        found.append(Sent("reduce-scatter", times * held.numbers, fsdp))
        found.append(Sent("all-reduce", times * held.numbers, data))
    return [sent for sent in found if sent.parts > 1]


def _forward(
    work: Work, held: Held, width: int, passes: int, tokens: int | float
) -> list[Sent]:
    """Of passes forward over `tokens` each."""
    found = (
        _weights(held, width * passes),
        _sums(work, held.mesh, width * passes * tokens),
    )
    return [sent for sent in found if sent.parts > 1]


def _weights(held: Held, times: int | float) -> Sent:
    fsdp = held.mesh.shape["fsdp"]
    return Sent("all-gather", times * held.in_layers * fsdp, fsdp)


def _sums(work: Work, mesh: Mesh | AbstractMesh, times: int | float) -> Sent:
    arch = work.architecture
    numbers = SUMS_OF_A_LAYER * arch.num_layers * arch.hidden_size
    return Sent("all-reduce", times * numbers, mesh.shape["tensor"])
