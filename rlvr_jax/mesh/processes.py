"""What the processes of a run must agree on before they go on."""

from typing import Any

import jax
import numpy as np
from jax.experimental import multihost_utils


def from_first(tree: Any) -> Any:
    """Host arrays as the first process has them; shapes and types are alike on all.

    What depends on a clock (a verdict that is a timeout here and none there) would
    otherwise make processes learn from different rewards.
    """
    if jax.process_count() == 1:
        return tree
    return multihost_utils.broadcast_one_to_all(tree)


def anywhere(flag: bool) -> bool:
    """Whether any process says so: the same answer on all.

    A signal reaches processes at different steps; one that left alone would leave the
    others waiting in the next program.
    """
    if jax.process_count() == 1:
        return flag
    return bool(multihost_utils.process_allgather(np.array(flag)).any())
