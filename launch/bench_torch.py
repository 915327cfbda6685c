"""The surrogates of `core` as eager PyTorch, to compare `launch.bench losses` with.

Written from the formulas, the way trainers in PyTorch write them: elementwise on
[B, T], autograd backward. The log-ratio is not clamped, which saves them an operation.
Torch is optional: it is imported when `load` is called, by nobody else.
"""

import importlib
import os
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

torch: Any = None


def load() -> bool:
    """Imports torch; False where it is not installed."""
    global torch
    # The profiler otherwise announces itself on every start and stop.
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")
    try:
        torch = importlib.import_module("torch")
    except ImportError:
        return False
    return True


class TorchBatch(NamedTuple):
    """The bench's batch as tensors: the same arrays, the mask as booleans."""

    policy: Any
    old: Any
    reference: Any
    targets: Any
    advantages: Any
    mask: Any


def to_torch(arrays: dict[str, np.ndarray]) -> TorchBatch:
    """Copies a batch; its first tensor is the leaf that gradients are taken of."""
    tensors = {name: torch.from_numpy(array.copy()) for name, array in arrays.items()}
    tensors["advantages"] = tensors["advantages"].unsqueeze(1)
    tensors["policy"].requires_grad_()
    return TorchBatch(**tensors)


def value_and_gradient(loss: Callable, batch: TorchBatch) -> tuple[Any, Any]:
    """Forward and backward, as a trainer would run them."""
    value = loss(batch)
    return value.detach(), torch.autograd.grad(value, batch.policy)[0]


def peak_bytes(run: Callable[[], Any]) -> int:
    """Most bytes that torch held at once during `run`, beyond what was there before."""
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True
    ) as profile:
        # Kept until the profile ends: the results count too.
        results = run()
    del results
    events = profile.profiler.kineto_results.events()
    changes = [event for event in events if event.name() == "[memory]"]
    held = peak = 0
    for event in sorted(changes, key=lambda event: event.start_ns()):
        held += event.nbytes()
        peak = max(peak, held)
    return peak


def token_mean(loss: Any, batch: TorchBatch) -> Any:
    """sum(mask * loss) / sum(mask)."""
    return (loss * batch.mask).sum() / batch.mask.sum()


def sequence_mean(loss: Any, batch: TorchBatch) -> Any:
    """Mean over rows of the mean over a row's tokens."""
    return ((loss * batch.mask).sum(1) / batch.mask.sum(1)).mean()


def _ratio(batch: TorchBatch) -> Any:
    return torch.exp(batch.policy - batch.old)


def clipped(batch: TorchBatch) -> Any:
    """PPO, DAPO."""
    ratio = _ratio(batch)
    bounded = torch.clamp(ratio, 0.8, 1.28)
    loss = -torch.min(ratio * batch.advantages, bounded * batch.advantages)
    return token_mean(loss, batch)


def dual_clip(batch: TorchBatch) -> Any:
    """PPO with the second bound, as a third maximum."""
    ratio = _ratio(batch)
    bounded = torch.clamp(ratio, 0.8, 1.28)
    loss = -torch.min(ratio * batch.advantages, bounded * batch.advantages)
    bound = torch.min(loss, -3.0 * batch.advantages)
    loss = torch.where(batch.advantages < 0, bound, loss)
    return token_mean(loss, batch)


def ratio(batch: TorchBatch) -> Any:
    """No clip."""
    return token_mean(-_ratio(batch) * batch.advantages, batch)


def reinforce(batch: TorchBatch) -> Any:
    """No ratio."""
    return token_mean(-batch.policy * batch.advantages, batch)


def cispo(batch: TorchBatch) -> Any:
    """Clipped, detached ratio times log-prob."""
    weights = torch.clamp(_ratio(batch), 0.8, 1.28).detach()
    return token_mean(-weights * batch.advantages * batch.policy, batch)


def cispo_capped(batch: TorchBatch) -> Any:
    """Capped, detached ratio times log-prob."""
    weights = torch.clamp(_ratio(batch), max=5.0).detach()
    return token_mean(-weights * batch.advantages * batch.policy, batch)


def sapo(batch: TorchBatch) -> Any:
    """The smooth gate."""
    tau = torch.where(batch.advantages > 0, 1.0, 1.05)
    gate = torch.sigmoid(tau * (_ratio(batch) - 1)) * 4 / tau
    return sequence_mean(-gate * batch.advantages, batch)


def gmpo(batch: TorchBatch) -> Any:
    """The geometric mean of a row's clipped ratios."""
    sign = torch.sign(batch.advantages)
    log_ratio = (batch.policy - batch.old) * sign
    held = sign * torch.min(log_ratio, torch.clamp(log_ratio, -0.4, 0.4))
    mean = (held * batch.mask).sum(1) / batch.mask.sum(1)
    return -(torch.exp(mean) * batch.advantages[:, 0]).mean()


def dis(batch: TorchBatch) -> Any:
    """Tokens outside the band are dropped."""
    ratio = _ratio(batch).detach()
    weights = torch.where((ratio > 0.7) & (ratio < 6.0), ratio, 0.0)
    return token_mean(-weights * batch.advantages * batch.policy, batch)


def dppo(batch: TorchBatch) -> Any:
    """A bound on the probability of the sampled token."""
    moved = (torch.exp(batch.policy) - torch.exp(batch.old)).detach()
    kept = torch.where(batch.advantages > 0, moved <= 0.15, moved >= -0.15)
    weights = torch.clamp(_ratio(batch), max=20.0).detach() * kept
    return token_mean(-weights * batch.advantages * batch.policy, batch)


def gspo(batch: TorchBatch) -> Any:
    """One ratio and one clip per row."""
    total = ((batch.policy - batch.old) * batch.mask).sum(1)
    ratio = torch.exp(total / batch.mask.sum(1))
    advantages = batch.advantages[:, 0]
    bounded = torch.clamp(ratio, 1 - 3e-4, 1 + 4e-4)
    return -torch.min(ratio * advantages, bounded * advantages).mean()


def gspo_token(batch: TorchBatch) -> Any:
    """The row's ratio with each token's gradient."""
    log_ratio = batch.policy - batch.old
    row = ((log_ratio * batch.mask).sum(1) / batch.mask.sum(1)).detach()
    ratio = torch.exp(batch.policy - batch.policy.detach() + row.unsqueeze(1))
    bounded = torch.clamp(ratio, 1 - 3e-4, 1 + 4e-4)
    loss = -torch.min(ratio * batch.advantages, bounded * batch.advantages)
    return sequence_mean(loss, batch)


def kl_cov(batch: TorchBatch) -> Any:
    """A penalty on the tokens of highest covariance."""
    log_ratio = batch.policy - batch.old
    loss = -torch.exp(log_ratio) * batch.advantages
    kept = torch.nonzero(batch.mask.reshape(-1)).reshape(-1)
    spread = batch.advantages.expand_as(loss).reshape(-1)[kept]
    logprobs = batch.policy.detach().reshape(-1)[kept]
    covariance = (spread - spread.mean()) * (logprobs - logprobs.mean())
    count = max(1, int(2e-4 * kept.numel()))
    chosen = kept[torch.topk(covariance, count).indices]
    penalty = torch.zeros_like(loss).reshape(-1)
    penalty[chosen] = log_ratio.abs().reshape(-1)[chosen]
    return token_mean(loss + penalty.reshape(loss.shape), batch)


def mirror_descent(batch: TorchBatch) -> Any:
    """The whole row's log-ratio, regressed on its advantage."""
    total = ((batch.policy - batch.old) * batch.mask).sum(1)
    return (-batch.advantages[:, 0] * total + 0.5 * 0.1 * total**2).mean()


def value(batch: TorchBatch) -> Any:
    """The critic's clipped squared error."""
    held = torch.clamp(batch.policy, batch.old - 0.2, batch.old + 0.2)
    error = torch.max((batch.policy - batch.targets) ** 2, (held - batch.targets) ** 2)
    return token_mean(0.5 * error, batch)


def k3(batch: TorchBatch) -> Any:
    """The KL penalty of GRPO."""
    log_ratio = batch.reference - batch.policy
    return token_mean(torch.exp(log_ratio) - log_ratio - 1, batch)
