"""The exact-string checker: VER-06."""

import pytest

from rlvr_jax.verifiers import exact
from rlvr_jax.verifiers.base import Sample, Status


@pytest.mark.parametrize(
    ("answer", "completion", "status"),
    [
        ("yes", "yes", Status.CORRECT),
        ("yes", "  YES.\n", Status.CORRECT),
        ("new york", "<answer>New  York</answer>", Status.CORRECT),
        ("yes", r"\boxed{\text{Yes}}", Status.CORRECT),
        (7, "#### 7", Status.CORRECT),
        ("1/2", "0.5", Status.WRONG),
        ("1/2", r"\boxed{\frac{1}{2}}", Status.WRONG),
        ("yes", "yes, I think", Status.WRONG),
        ("yes", r"\boxed{yes} \boxed{no}", Status.UNPARSEABLE),
        ("yes", r"\boxed{yes} \boxed{yes}", Status.CORRECT),
        ("yes", "", Status.UNPARSEABLE),
        ("", "yes", Status.BAD_REFERENCE),
        (None, "yes", Status.BAD_REFERENCE),
    ],
)
def test_exact(answer, completion, status):
    assert exact.verify(Sample("exact", completion, answer)).status is status
