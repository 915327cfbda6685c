"""How much memory the networks of a recipe need, before activations and caches."""


def networks_gigabytes(
    billions: float | int,
    *,
    trained: int = 1,
    frozen: int = 0,
    bytes_per_trained: float = 16.0,
    bytes_per_frozen: float = 2.0,
) -> float:
    r"""GB (1e9 bytes) of parameters, gradients and optimizer state.

        billions * (trained * bytes_per_trained + frozen * bytes_per_frozen)

    Of networks of equal size. PPO holds four: policy and critic are trained, reference
    and reward model frozen. With a group as baseline and a checker as reward two are
    left, without a KL term one.

    Args:
      billions: parameters of each network, in 1e9.
      trained: networks with an optimizer.
      frozen: networks without one.
      bytes_per_trained: per parameter; 16 is mixed precision with Adam: 2 weights, 2
        gradients, 4 master weights, 4 + 4 moments.
      bytes_per_frozen: per parameter; 2 is bfloat16.

    Returns:
      GB over all devices.

    Example:
      >>> networks_gigabytes(7, trained=2, frozen=2)
      252.0
      >>> networks_gigabytes(7, trained=1, frozen=1)
      126.0
    """
    return float(billions) * (trained * bytes_per_trained + frozen * bytes_per_frozen)
