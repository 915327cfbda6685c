"""Where the answer of a completion is found."""

import pytest

from rlvr_jax.verifiers import extract, prose
from rlvr_jax.verifiers.extract import final_answers


@pytest.mark.parametrize(
    ("text", "boxes", "unclosed"),
    [
        (r"\boxed{1} \fbox{2} \framebox{3}", ["1", "2", "3"], False),
        (r"\boxed {\frac{1}{2}}", [r"\frac{1}{2}"], False),
        (r"\boxed{\text{a \} brace}}", [r"\text{a \} brace}"], False),
        (r"\boxed{\boxed{1}}", [r"\boxed{1}"], False),
        (r"\boxed{1} \boxed{2", ["1"], True),
        (r"{ \boxed{1}", ["1"], False),
        (r"} \boxed{1}", ["1"], False),
        (r"\\boxed{1}", ["1"], False),
        (r"\boxedx{1}", [], False),
        ("no box", [], False),
    ],
)
def test_boxes(text, boxes, unclosed):
    found, opened = extract.boxes_and_unclosed(text)
    assert [box.text for box in found] == boxes
    assert opened == unclosed


def test_boxes_know_where_they_stand():
    text = r"so \boxed{1}!"
    (box,) = extract.boxes(text)
    assert text[box.start : box.end] == r"\boxed{1}"


@pytest.mark.parametrize(
    ("text", "place", "answers"),
    [
        # Marks in their order: tags, boxes, ####, statements, the last value.
        (r"<answer>1</answer> \boxed{1}", "tag", ("1",)),
        (r"<answer>1</answer> \boxed{2}", "tag", ("1", "2")),
        (r"\boxed{1} #### 2", "box", ("1",)),
        ("#### 1\nThe answer is 2", "####", ("1",)),
        ("We get 3. The answer is 1.", "statement", ("1",)),
        ("We get 3, then 1.", "text", ("1",)),
        # Boxes side by side are a list, boxes apart are several answers.
        (r"\boxed{1} and \boxed{2}", "box", ("1, 2",)),
        (r"$x = \boxed{1}$, $y = \boxed{2}$", "box", ("1, 2",)),
        (r"\boxed{1}, hence \boxed{2}", "box", ("1", "2")),
        (r"\boxed{1}, hence \boxed{1}", "box", ("1",)),
        (r"\boxed{5}\%", "box", (r"5\%",)),
        # Statements.
        ("Final Answer: The final answer is $1$. I hope it is correct.", "statement",
         ("1",)),
        ("The answer is 1. The answer is 2.", "statement", ("1", "2")),
        ("The answer is 3 or 4.", "statement", ("3 or 4",)),
        ("Answer:\n\n**1**", "statement", ("1",)),
        # Values of prose.
        ("It costs $1,250.50 in all.", "text", ("1,250.50",)),
        ("He has 3 cats and 4 dogs, 7 pets", "text", ("7",)),
        ("either 3 or maybe 4", "text", ("3, 4",)),
        ("about $x = 1$ or $x = 2$", "text", ("x = 1, x = 2",)),
        ("that is (1, 2).", "text", ("(1, 2)",)),
        ("page 3 of a2b", "text", ("3",)),
        ("it is -5", "text", ("-5",)),
        ("that makes 3/4", "text", ("3/4",)),
        ("1<|im_end|>\n2", "text", ("1",)),
        ("2 + 3 = <<2+3=5>>5", "text", ("2 + 3 = 5",)),
    ],
)  # fmt: skip
def test_final_answers(text, place, answers):
    assert final_answers(text)[:2] == (answers, place)


@pytest.mark.parametrize(
    ("text", "answers"),
    [
        ("The answer is (B).", ("B",)),
        ("B. Because A is wrong", ("B",)),
        ("So it must be (B), not C", ("B",)),
        ("I think A is wrong", ("A",)),
        ("A bird is no fish", ()),
        ("Either A or B", ()),
        ("The best choice is B.", ("B",)),
    ],
)
def test_letters_of_choices(text, answers):
    assert final_answers(text, "letter").answers == answers


def test_words_are_taken_whole():
    assert final_answers("The answer is New York.", "words").answers == ("New York",)
    assert final_answers("New York", "words").answers == ("New York",)
    assert final_answers("Here is why.\nIt is far.", "words").answers == ()


@pytest.mark.parametrize(
    "text",
    [
        "The answer is 7.",
        "La respuesta final es 7.",
        "La réponse est donc 7.",
        "Die Antwort lautet 7.",
        "A resposta é 7.",
        "La risposta è 7.",
        "Het antwoord is 7.",
        "Odpowiedź: 7",
        "Cevap: 7",
        "Đáp án là 7",
        "Ответ: 7.",
        "答案是7。",
        "答えは7です。",
        "정답은 7입니다.",
        "उत्तर: 7",
        "الإجابة: 7",
    ],
)
def test_statements_in_other_languages(text):
    assert prose.statements(text, "value") == ["7"]
