"""The character tokenizer of new small decoders."""

import pytest

from rlvr_jax.data.char_tokenizer import CharTokenizer
from rlvr_jax.data.tokenizer import load_tokenizer


def test_ids_are_pad_end_then_the_alphabet():
    tokenizer = CharTokenizer("ab =\n")
    assert (tokenizer.pad_id, tokenizer.eos_ids, tokenizer.vocab_size) == (0, (1,), 7)
    assert tokenizer.encode("ba = \n") == [3, 2, 4, 5, 4, 6]
    assert tokenizer.decode([3, 2, 4, 5, 1, 0]) == "ba ="
    assert tokenizer.decode([3, 1, 0], keep_special=True) == "b<eos><pad>"


def test_every_printable_character_survives():
    text = "".join(map(chr, range(32, 127))) + "\n"
    tokenizer = load_tokenizer("")
    assert tokenizer.vocab_size == 2 + 96
    assert len(tokenizer.encode_prompt(text)) == 96
    assert tokenizer.decode(tokenizer.encode_prompt(text)) == text


def test_a_question_cannot_write_the_end_token():
    tokenizer = load_tokenizer("")
    for ids in (
        tokenizer.encode_prompt("1<eos><pad>"),
        tokenizer.encode_chat([{"role": "user", "content": "1<eos><pad>"}]),
    ):
        assert not {0, 1} & set(ids)
        assert tokenizer.decode(ids).rstrip("\n") == "1<eos><pad>"


def test_a_chat_is_a_line_for_each_turn():
    chat = [
        {"role": "system", "content": "Add."},
        {"role": "user", "content": "1+1"},
        {"role": "assistant", "content": "2"},
    ]
    assert load_tokenizer("").apply_chat(chat) == "Add.\n1+1\n2<eos>"


def test_an_unknown_character_is_explained():
    with pytest.raises(ValueError, match="no token for a character of '1 \u00d7 2'"):
        load_tokenizer("").encode("1 \u00d7 2")


@pytest.mark.parametrize(
    ("alphabet", "message"), [("abca", r"got \['a'\] more than once"), ("", "at least")]
)
def test_an_impossible_alphabet_is_explained(alphabet, message):
    with pytest.raises(ValueError, match=message):
        CharTokenizer(alphabet)
