"""Tokenizers of GGUF files: small ones written here, and SmolLM2's own."""

import json
import pathlib

import gguf
import pytest
import tokenizers
from tokenizers import models, pre_tokenizers
from transformers import AutoTokenizer, GPT2Tokenizer, Qwen2Tokenizer

from rlvr_jax.data.tokenizer import load_tokenizer
from tests.data_layer import bpe, smollm2, templates

REFERENCE = pathlib.Path(__file__).parents[1] / "data/tokenizer/smollm2_prompts.json"


def write_gguf(path, pre, *, tokens=None, merges=None, **extra):
    """A GGUF file with a tokenizer and nothing else."""
    if tokens is None:
        tokens, merges = bpe.train()
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_tokenizer_model(extra.pop("model", "gpt2"))
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(tokens)
    types = [3 if token in bpe.SPECIAL else 1 for token in tokens]
    writer.add_token_types(extra.pop("types", types))
    writer.add_token_merges([" ".join(merge) for merge in merges])
    for name, value in ({"eos": 2} | extra).items():
        if name == "template":
            writer.add_chat_template(value)
        elif name == "add_bos":
            writer.add_add_bos_token(value)
        elif value is not None:
            writer.add_uint32(f"tokenizer.ggml.{name}_token_id", value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.mark.parametrize(
    ("pre", "tokenizer"), [("gpt2", GPT2Tokenizer), ("qwen2", Qwen2Tokenizer)]
)
def test_ids_are_those_of_the_class_in_transformers(pre, tokenizer, tmp_path):
    tokens, merges = bpe.train()
    vocabulary = {token: i for i, token in enumerate(tokens)}
    theirs = tokenizer(vocab=vocabulary, merges=merges)
    ours = load_tokenizer(write_gguf(tmp_path / "small.gguf", pre))
    for text in bpe.TEXTS:
        expected = theirs.encode(text, add_special_tokens=False)
        assert ours.encode(text) == ours.encode_prompt(text) == expected
        assert ours.decode(expected) == theirs.decode(expected)


def test_ids_of_smollm_are_those_of_digits_then_bytes(tmp_path):
    # The pre_tokenizer of HuggingFaceTB/SmolLM2-135M-Instruct's tokenizer.json.
    stated = {
        "type": "Sequence",
        "pretokenizers": [
            {"type": "Digits", "individual_digits": True},
            {
                "type": "ByteLevel",
                "add_prefix_space": False,
                "trim_offsets": True,
                "use_regex": True,
            },
        ],
    }
    # A vocabulary with tokens of several digits, which this model must not use.
    tokens, merges = bpe.train()
    assert any(len(token) > 1 and token.isdigit() for token in tokens)
    vocabulary = {token: i for i, token in enumerate(tokens)}
    plain = tokenizers.Tokenizer(models.BPE(vocabulary, merges))
    stored = json.loads(plain.to_str()) | {"pre_tokenizer": stated}
    theirs = tokenizers.Tokenizer.from_str(json.dumps(stored))
    path = write_gguf(tmp_path / "x.gguf", "smollm", tokens=tokens, merges=merges)
    ours = load_tokenizer(path)
    for text in bpe.TEXTS:
        assert ours.encode(text) == theirs.encode(text).ids


# By hand from the published patterns: GPT-2 takes digits together, SmolLM2 and Qwen2
# one by one, Llama 3 by threes; the last two know 'S and take a line break with the
# signs before it.
CUTS = {
    "gpt2": "it|'s| a| 1234567| IT|'|Sx|!?|\n\n| x",
    "smollm": "it|'s| a| |1|2|3|4|5|6|7| IT|'|Sx|!?|\n\n| x",
    "qwen2": "it|'s| a| |1|2|3|4|5|6|7| IT|'S|x|!?\n\n| x",
    "llama-bpe": "it|'s| a| |123|456|7| IT|'S|x|!?\n\n| x",
}


@pytest.mark.parametrize("pre", CUTS)
def test_texts_are_cut_as_published(pre, tmp_path):
    # Every piece of every cut is a token, made by merging its characters from the
    # left, its own first; so a text cut in the wrong place shows in its tokens.
    cuts = [CUTS[pre], *CUTS.values(), "'Sx"]
    all_pieces = [to_bytes(piece) for cut in cuts for piece in cut.split("|")]
    merges = [(p[:end], p[end]) for p in all_pieces for end in range(1, len(p))]
    merges = list(dict.fromkeys(merges))
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokens = list(dict.fromkeys([*bpe.SPECIAL, *alphabet, *map("".join, merges)]))
    path = write_gguf(tmp_path / "x.gguf", pre, tokens=tokens, merges=merges)
    found = load_tokenizer(path).encode(CUTS[pre].replace("|", ""))
    assert [tokens[i] for i in found] == [to_bytes(p) for p in CUTS[pre].split("|")]


def to_bytes(text):
    """GPT-2's printable stand-ins for bytes; only space and newline differ here."""
    return text.replace(" ", "\u0120").replace("\n", "\u010a")


def test_llama3_takes_a_piece_that_is_a_token_whole(tmp_path):
    # "ab" is a token that no merge makes: Llama 3 takes it, the others do not.
    tokens = [*bpe.SPECIAL, "a", "b", "ab"]
    for pre, expected in (("llama-bpe", [5]), ("qwen2", [3, 4])):
        path = tmp_path / f"{pre}.gguf"
        write_gguf(path, pre, tokens=tokens, merges=[])
        assert load_tokenizer(path).encode("ab") == expected


@pytest.mark.parametrize(
    ("pre", "options", "begins"),
    [
        ("llama-bpe", {}, True),
        ("llama-bpe", {"add_bos": False}, False),
        ("qwen2", {}, False),
        ("qwen2", {"add_bos": True}, True),
    ],
)
def test_raw_prompts_begin_with_bos_where_the_file_says_so(
    pre, options, begins, tmp_path
):
    ours = load_tokenizer(write_gguf(tmp_path / "x.gguf", pre, bos=1, **options))
    assert (ours.encode_prompt("12 a")[0] == 1) == begins
    assert ours.encode("12 a")[0] != 1


def test_end_pad_and_template_come_from_the_file(tmp_path):
    path = write_gguf(
        tmp_path / "x.gguf", "qwen2", eot=0, padding=1, template=templates.CHATML
    )
    ours = load_tokenizer(path)
    assert (ours.eos_ids, ours.pad_id) == ((2, 0), 1)
    assert ours.template_variables["eos_token"] == "<|im_end|>"
    messages = [{"role": "user", "content": "12<|im_end|>"}]
    ids = ours.encode_chat(messages)
    assert ids.count(2) == 2
    assert ours.decode(ids, keep_special=True) == ours.apply_chat(messages)
    plain = load_tokenizer(write_gguf(tmp_path / "y.gguf", "qwen2"))
    assert (plain.eos_ids, plain.pad_id, plain.template) == ((2,), 2, None)


def test_user_defined_tokens_are_whole_and_not_special(tmp_path):
    tokens, merges = bpe.train()
    types = [3, 3, 3] + [1] * (len(tokens) - 3) + [4]
    path = write_gguf(
        tmp_path / "x.gguf",
        "qwen2",
        tokens=[*tokens, "<think>"],
        merges=merges,
        types=types,
    )
    ours = load_tokenizer(path)
    assert ours.encode("<think>") == [len(tokens)]
    assert ours.decode([len(tokens)]) == "<think>"
    assert ours.vocab_size == len(tokens) + 1


def test_what_is_no_tokenizer_of_ours_is_explained(tmp_path):
    path = tmp_path / "x.gguf"
    path.write_bytes(b"not a gguf file")
    with pytest.raises(ValueError, match="is not a readable GGUF file"):
        load_tokenizer(path)
    write_gguf(path, "deepseek-llm", tokens=["a"], merges=[])
    with pytest.raises(ValueError, match="pre-tokenizer 'deepseek-llm'; we read kind"):
        load_tokenizer(path)
    write_gguf(path, "qwen2", model="llama")
    with pytest.raises(ValueError, match="tokenizer of kind 'llama'"):
        load_tokenizer(path)
    write_gguf(path, "qwen2", eos=None)
    with pytest.raises(ValueError, match="names no end token"):
        load_tokenizer(path)


def test_smollm2_prompts_have_the_ids_of_transformers(tmp_path):
    """Eight reference prompts, from the file's metadata alone."""
    ours = load_tokenizer(smollm2.gguf_path())
    prompts = json.loads(REFERENCE.read_text())["prompts"]
    assert len(prompts) == 8
    for prompt in prompts:
        messages = [{"role": "user", "content": prompt["text"]}]
        if prompt["kind"] == "chat":
            assert ours.apply_chat(messages) == prompt["rendered"]
            assert ours.encode_chat(messages) == prompt["ids"]
        else:
            assert ours.encode_prompt(prompt["text"]) == prompt["ids"]
        assert ours.decode(prompt["ids"], keep_special=True) == prompt["rendered"]
    assert (ours.eos_ids, ours.vocab_size) == ((2,), 49152)
    ours.save(tmp_path)
    theirs = AutoTokenizer.from_pretrained(tmp_path)
    for text in bpe.TEXTS:
        assert theirs.encode(text, add_special_tokens=False) == ours.encode(text)
