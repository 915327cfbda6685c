"""A small byte-level BPE vocabulary, and texts that tell tokenizers apart."""

import functools
import json

import tokenizers
from tokenizers import models, pre_tokenizers, trainers

SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
CORPUS = [
    "The quick brown fox can't jump 1234567 times; they've 12 and 345.\n\n",
    "def add(a, b):\n    return a + b\n\n\tprint(x)  # 'tis IT'S I'LL we're\r\n",
    "Größe caf\u00e9 \u4f60\u597d 2024-01-02 $3.50 100% a_b-c  \n   x",
]
TEXTS = [
    *CORPUS,
    "1 + 1 = 2\n2 + 2 = 4",
    "  leading and   inner    spaces ",
    "IT'S they'Ve 'LL can't",
    "\n\n\n \n\t\t x\r\n\r\ny",
    "cafe\u0301 vs caf\u00e9, \u0664\u0665 \u2167 \u00bd",
    "emoji \U0001f600\U0001f468\u200d\U0001f469 end",
    "!!!??? ... --> <tag> </tag> a<|b|>c",
    "12345678901234567890",
    "",
    " ",
]


@functools.cache
def train() -> tuple[list[str], list[tuple[str, str]]]:
    """Tokens in the order of their ids, and merges; cut by GPT-2's pattern."""
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=600,
        special_tokens=SPECIAL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(CORPUS * 3, trainer)
    model = json.loads(tokenizer.to_str())["model"]
    tokens = sorted(model["vocab"], key=model["vocab"].get)
    return tokens, [(left, right) for left, right in model["merges"]]
