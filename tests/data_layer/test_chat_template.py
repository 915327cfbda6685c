"""Our rendering of chat templates against transformers' own."""

import pytest
from transformers.utils.chat_template_utils import render_jinja_template

from rlvr_jax.data import chat_template
from tests.data_layer import templates

QUESTION = {"role": "user", "content": " What is <b>2 & 2</b>?\n\"quoted\" 'é' 你好 "}
CHATS = [
    [QUESTION],
    [{"role": "system", "content": " Be kind. "}, QUESTION],
    [QUESTION, {"role": "assistant", "content": "<think>4?</think>\n\n4"}, QUESTION],
    [QUESTION] * 5,
]
VARIABLES = {"bos_token": "<s>", "eos_token": "</s>"}


def theirs(template, messages, **options):
    options = VARIABLES | options
    return render_jinja_template([messages], chat_template=template, **options)[0][0]


def ours(template, messages, add_generation_prompt=True, **variables):
    return chat_template.render(
        template,
        messages,
        add_generation_prompt=add_generation_prompt,
        variables=VARIABLES | variables,
    )


@pytest.mark.parametrize("add_generation_prompt", [True, False])
@pytest.mark.parametrize(
    ("name", "chat"),
    [
        (name, chat)
        for name in templates.ALL
        for chat in range(len(CHATS))
        # Refused: see test_a_refusal_is_explained.
        if name != "without system" or CHATS[chat][0]["role"] != "system"
    ],
)
def test_the_text_is_the_one_of_transformers(name, chat, add_generation_prompt):
    template, messages = templates.ALL[name], CHATS[chat]
    expected = theirs(template, messages, add_generation_prompt=add_generation_prompt)
    assert ours(template, messages, add_generation_prompt) == expected
    assert expected.strip()


@pytest.mark.parametrize("enable_thinking", [True, False])
def test_variables_reach_the_template(enable_thinking):
    options = {"enable_thinking": enable_thinking, "add_generation_prompt": True}
    expected = theirs(templates.WITH_TOOLS, CHATS[0], **options)
    assert ours(templates.WITH_TOOLS, CHATS[0], enable_thinking=enable_thinking) == (
        expected
    )
    assert ("<think>" in expected) != enable_thinking


def test_a_date_in_a_prompt_is_the_same_every_day():
    """Else a run could not be resumed exactly on the day after."""
    template = "{{ strftime_now('%d %b %Y') }}"
    assert ours(template, CHATS[0]) == "26 Jul 2024"


def test_tools_are_written_as_json():
    tools = [{"type": "function", "function": {"name": "f", "é": "<x>"}}]
    expected = theirs(templates.WITH_TOOLS, CHATS[0], tools=tools)
    assert ours(templates.WITH_TOOLS, CHATS[0], False, tools=tools) == expected


def test_a_refusal_is_explained():
    with pytest.raises(ValueError, match="roles system, user: System role not") as e:
        ours(templates.WITHOUT_SYSTEM, CHATS[1])
    assert "needs data.system_prompt empty" in str(e.value)


def test_a_broken_template_names_its_line():
    with pytest.raises(ValueError, match=r"not valid: .* on line 2; repair it"):
        ours("{{ 1 }}\n{% for %}", CHATS[0])


@pytest.mark.parametrize(
    "attack",
    [
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ messages.append(1) }}",
        "{{ messages.__init__.__globals__ }}",
        "{{ raise_exception.__globals__['datetime'] }}",
    ],
)
def test_a_template_cannot_leave_its_sandbox(attack):
    with pytest.raises(ValueError, match="refuses messages"):
        ours(attack, CHATS[0])
