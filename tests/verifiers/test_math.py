"""The math verifier's verdicts and what they say."""

import pytest

from rlvr_jax.verifiers import math
from rlvr_jax.verifiers.base import Sample, Status, apply


def verdict(completion, answer, question=""):
    return apply(math.verify, Sample("math", completion, answer, question))


@pytest.mark.parametrize(
    ("completion", "detail"),
    [
        (r"\boxed{\frac{2}{4}}", r"box: '\\frac{2}{4}' = '1/2'"),
        (r"\boxed{0.6}", "box: '0.6' != '1/2'"),
        ("<answer>0.5</answer>", "tag: '0.5' = '1/2'"),
        ("#### 0.5", "####: '0.5' = '1/2'"),
        ("The answer is 0.5.", "statement: '0.5' = '1/2'"),
        ("So it is 0.5 in all.", "text: '0.5' = '1/2'"),
        (r"\boxed{\frac{1}{0}}", "a division by zero"),
        (r"\boxed{9^{9^{9^9}}}", "too many digits"),
        (r"\boxed{\int x}", r"cannot read \int"),
    ],
)
def test_the_detail_says_what_was_found_where(completion, detail):
    assert detail in verdict(completion, "1/2").detail


@pytest.mark.parametrize(
    ("completion", "reason"),
    [
        ("", "an empty answer"),
        ("I do not know.", "no answer"),
        (r"\boxed{}", "an empty box"),
        (r"\boxed{1", "does not close"),
        (r"\boxed{1} so \boxed{2}", "several answers: '1', '2'"),
        ("<answer>1</answer><answer>2</answer>", "several answers"),
        (r"\boxed{1}. Final answer: 2", "several answers"),
        (r"\boxed{1} or maybe 2", "hedged"),
        ("The answer is 1. Or 2.", "an empty answer"),
        ("<think>it is 1</think>", "an empty answer"),
    ],
)
def test_no_answer_or_several_are_unparseable(completion, reason):
    found = verdict(completion, "1")
    assert found.status is Status.UNPARSEABLE
    assert reason in found.detail


@pytest.mark.parametrize("answer", ["", "  ", None, [1], {}, True, r"\frac{1}{0}"])
def test_references_that_cannot_be_compared(answer):
    assert verdict(r"\boxed{1}", answer).status is Status.BAD_REFERENCE


@pytest.mark.parametrize(
    "answer", [42, 42.0, "42", r"\boxed{42}", "$42$", "042", "6*7\n#### 42"]
)
def test_references_may_be_numbers_or_text(answer):
    assert verdict(r"\boxed{42}", answer).status is Status.CORRECT


def test_thinking_text_never_counts():
    """DIAG-23: whatever the thinking says, the verdict stays."""
    for thoughts in ("", r"\boxed{5}", "the answer is 5", "<answer>5</answer>"):
        right = verdict(f"<think>{thoughts}</think>\\boxed{{4}}", "4")
        wrong = verdict(f"<think>{thoughts}</think>\\boxed{{5}}", "4")
        assert (right.status, wrong.status) == (Status.CORRECT, Status.WRONG)


@pytest.mark.parametrize(
    ("question", "answer", "gold", "status"),
    [
        ("Compute $2+2$.", "2+2", "4", Status.WRONG),
        ("Compute $2+2$.", "4", "4", Status.CORRECT),
        ("Compute $2+2$.", "2 + 2", "4", Status.WRONG),
        ("What is $3!$?", "3!", "6", Status.WRONG),
        ("Find 10/4.", "10/4", "2.5", Status.WRONG),
        ("Is it 1/2 or 1/3?", "1/2", "0.5", Status.CORRECT),
        ("Is it -1/2 or 1/3?", "-1/2", "-0.5", Status.CORRECT),
        ("Simplify $2+2$.", "2+2", "2+2", Status.CORRECT),
        ("Factor $x^2-1$.", "(x-1)(x+1)", "(x-1)(x+1)", Status.CORRECT),
        ("Compute $12+3$.", "5+10", "15", Status.CORRECT),
    ],
)
def test_an_echo_of_the_question_is_no_answer(question, answer, gold, status):
    """Where the reference is a number, a copied expression was not worked out."""
    assert verdict(f"\\boxed{{{answer}}}", gold, question).status is status


def test_equal_numbers_are_told_apart_exactly():
    """Neighbouring 16-digit integers, and factorials that underflow any float."""
    assert verdict(r"\boxed{9007199254740993}", "9007199254740992").score == 0.0
    assert verdict(r"\boxed{9007199254740992.0}", "9007199254740992").score == 1.0
    assert verdict(r"\boxed{\frac{1}{2006!}}", r"\frac{1}{2004!}").score == 0.0
    assert verdict(r"\boxed{\frac{1}{2004!}}", r"\frac{1}{2004!}").score == 1.0
    grown = r"\frac{2005 \cdot 2006}{2006!}"
    assert verdict(rf"\boxed{{{grown}}}", r"\frac{1}{2004!}").score == 1.0


@pytest.mark.parametrize(
    ("gold", "answer", "same"),
    [
        # A product is no mixed number.
        ("5/2", r"5\cdot\frac{1}{2}", True),
        ("5.5", r"5\cdot\frac{1}{2}", False),
        ("3/4", r"3\left(\frac{1}{4}\right)", True),
        # The letter and the value of a choice, as AMC's references have them.
        (r"\textbf{(B)}\ 12", "B", True),
        (r"\textbf{(B)}\ 12", "12", True),
        (r"\textbf{(B)}\ 12", "(B) 12", True),
        (r"\textbf{(B) }\frac{1}{2}", "0.5", True),
        (r"\textbf{(B)}\ 12", "A", False),
        (r"\textbf{(B)}\ 12", "(A) 12", False),
        (r"\textbf{(B)}\ 12", "B or C", False),
        ("D", r"\text{D: } x=2", True),
        # Several right choices.
        ("ABD", "A, B, D", True),
        ("A, C", "AC", True),
        ("ABD", "A, B and D", True),
        ("ABD", "A, B", False),
        ("ABD", "A, B, C, D", False),
        # Units as a fraction; letters after no number stay letters.
        (r"5\text{ km/h}", r"5\,\frac{\text{km}}{\text{h}}", True),
        ("9.8", r"9.8\frac{\mathrm{m}}{\mathrm{s}^2}", True),
        (r"5\text{ km/h}", r"5\,\frac{\text{m}}{\text{s}}", False),
        (r"\frac{\mathrm{a}}{\mathrm{b}}", r"\frac{a}{b}", True),
        (r"20^\circ C", r"20^\circ F", False),
        (r"20^\circ C", "20 degrees Celsius", True),
        # Three dots.
        (r"1,2,3,\dots,10", "1,2,3,...,10", True),
        (r"\{1,2,\ldots\}", r"\{1, 2, ...\}", True),
        (r"1,2,\dots,10", "1,2,...,11", False),
        # Ordinals, which are no powers.
        ("2", "2nd", True),
        ("3rd", r"3^{\text{rd}}", True),
        ("1", r"2^{nd}", False),
        # A vector does not say which way it is written.
        ("(1, 2)", r"\begin{pmatrix}1&2\end{pmatrix}", True),
        (
            r"\begin{pmatrix}1&2\end{pmatrix}",
            r"\begin{pmatrix}1\\2\end{pmatrix}",
            False,
        ),
        # Signs.
        (r"\angle ABC", "\u2220ABC", True),
        ("5", "5 \\\\", True),
    ],
)
def test_notations(gold, answer, same):
    """Expected by reading them as a person would."""
    found = verdict(f"\\boxed{{{answer}}}", gold)
    assert (found.status is Status.CORRECT) is same, found


@pytest.mark.parametrize(
    ("gold", "completion", "same"),
    [
        ("-3", "The answer is negative 3.", True),
        ("3", "The answer is negative 3.", False),
        ("-3", "The answer is minus 3.", True),
        ("3", "8 minus 5 is 3", True),
        ("-5", r"So $x = -\boxed{5}$.", True),
        ("5", r"So $x = -\boxed{5}$.", False),
        ("5", "Answer:\n- \\boxed{5}", True),  # an item of a list
        ("C", "A is wrong. B is wrong. D is wrong. Hence C.", True),
        ("A", "A is wrong. B is wrong. D is wrong. Hence C.", False),
        ("B", "A) gives 3. B) gives 4. So B.", True),
        ("A", "A) gives 3. B) gives 4. So B.", False),
        ("B", "B. A is too small.", True),
        ("A", "A isn't right, so it is B", False),
    ],
)
def test_signs_and_conclusions_of_the_text_around(gold, completion, same):
    """Expected by reading them as a person would."""
    assert (verdict(completion, gold).status is Status.CORRECT) is same
