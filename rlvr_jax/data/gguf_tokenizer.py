"""The tokenizer inside a GGUF file, rebuilt from its metadata.

A GGUF file holds the tokens, their merges and the name of a pre-tokenizer, whose rules
stand in no file. The rules here were written after the public ones of the models that
use them: SmolLM2, Qwen2 and Llama 3 (each tokenizer.json's `pre_tokenizer`), GPT-2.
"""

import dataclasses
import pathlib
from typing import Any

import gguf
import tokenizers
from tokenizers import (
    AddedToken,
    Regex,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
)

from rlvr_jax.data.tokenizer import Tokenizer
from rlvr_jax.errors import UserError

_CONTROL, _USER_DEFINED = 3, 4
_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|%s"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


@dataclasses.dataclass(frozen=True)
class PreTokenizer:
    """How a text is cut before merges apply."""

    before_bytes: Any
    """Cuts the text into pieces; None leaves it to GPT-2's own pattern alone."""
    gpt2_pattern: bool
    """Also cut by GPT-2's pattern (words, numbers, signs, spaces)."""
    nfc: bool = False
    ignore_merges: bool = False
    """A piece that is a token is taken whole, even where merges do not lead to it."""
    adds_bos: bool = False
    """Unless the file says otherwise."""


PRE_TOKENIZERS = {
    "gpt2": PreTokenizer(None, gpt2_pattern=True),
    "smollm": PreTokenizer(pre_tokenizers.Digits(individual_digits=True), True),
    "qwen2": PreTokenizer(
        pre_tokenizers.Split(Regex(_WORDS % r"\p{N}"), "isolated"), False, nfc=True
    ),
    "llama-bpe": PreTokenizer(
        pre_tokenizers.Split(Regex(_WORDS % r"\p{N}{1,3}"), "isolated"),
        False,
        ignore_merges=True,
        adds_bos=True,
    ),
}


def load(path: pathlib.Path) -> Tokenizer:
    """Builds the tokenizer of a .gguf file.

    Args:
      path: the file.

    Returns:
      The tokenizer; its template is the file's.

    Raises:
      UserError: not a GGUF file, no byte-level BPE vocabulary, an unknown
        pre-tokenizer, or no end token.
    """
    try:
        fields = gguf.GGUFReader(path).fields
    except (ValueError, IndexError, OSError) as error:
        raise UserError(
            f"{path}: is not a readable GGUF file ({error}); model.path takes a "
            "Hugging Face model directory or a .gguf file"
        ) from error

    def value(name: str, default: Any = None) -> Any:
        field = fields.get(f"tokenizer.{name}")
        return default if field is None else field.contents()

    kind, name = value("ggml.model"), value("ggml.pre", "gpt2")
    if kind != "gpt2" or name not in PRE_TOKENIZERS:
        raise UserError(
            f"{path}: has a tokenizer of kind {kind!r} with pre-tokenizer {name!r}; we "
            f"read kind 'gpt2' with {', '.join(PRE_TOKENIZERS)}. Use the model's "
            "Hugging Face directory instead"
        )
    tokens = value("ggml.tokens")
    ends = [value(f"ggml.{end}_token_id") for end in ("eos", "eot", "eom")]
    eos_ids = tuple(dict.fromkeys(int(i) for i in ends if i is not None))
    if not eos_ids:
        raise UserError(f"{path}: names no end token (tokenizer.ggml.eos_token_id)")
    bos_id = value("ggml.bos_token_id")
    rules = PRE_TOKENIZERS[name]
    adds_bos = bos_id is not None and value("ggml.add_bos_token", rules.adds_bos)
    backend = _backend(
        rules,
        tokens,
        merges=value("ggml.merges") or [],
        types=value("ggml.token_type", [1] * len(tokens)),
        bos=tokens[bos_id] if adds_bos else None,
    )
    ids = {
        "bos_token": bos_id,
        "eos_token": eos_ids[0],
        "pad_token": value("ggml.padding_token_id", eos_ids[0]),
        "unk_token": value("ggml.unknown_token_id"),
    }
    return Tokenizer(
        backend,
        eos_ids=eos_ids,
        pad_id=int(ids["pad_token"]),
        template=value("chat_template"),
        template_variables={k: tokens[i] for k, i in ids.items() if i is not None},
    )


def _backend(
    rules: PreTokenizer,
    tokens: list[str],
    *,
    merges: list[str],
    types: list[int],
    bos: str | None,
) -> tokenizers.Tokenizer:
    backend = tokenizers.Tokenizer(
        models.BPE(
            vocab={token: i for i, token in enumerate(tokens)},
            merges=[(left, right) for left, right in map(str.split, merges)],
            ignore_merges=rules.ignore_merges,
        )
    )
    to_bytes = pre_tokenizers.ByteLevel(
        add_prefix_space=False, use_regex=rules.gpt2_pattern
    )
    backend.pre_tokenizer = (
        pre_tokenizers.Sequence([rules.before_bytes, to_bytes])
        if rules.before_bytes
        else to_bytes
    )
    if rules.nfc:
        backend.normalizer = normalizers.NFC()
    backend.decoder = decoders.ByteLevel()
    if bos is not None:
        backend.post_processor = processors.TemplateProcessing(
            single=f"{bos} $A", special_tokens=[(bos, tokens.index(bos))]
        )
    backend.add_tokens(
        [
            AddedToken(token, special=kind == _CONTROL, normalized=False)
            for token, kind in zip(tokens, types, strict=True)
            if kind in (_CONTROL, _USER_DEFINED)
        ]
    )
    return backend
