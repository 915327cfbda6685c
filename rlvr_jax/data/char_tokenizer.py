"""A tokenizer of single characters, made here: no download, for small decoders."""

import string

import tokenizers
from tokenizers import AddedToken, Regex, decoders, models, pre_tokenizers

from rlvr_jax.data.tokenizer import Tokenizer
from rlvr_jax.errors import UserError

PRINTABLE = "\n" + string.digits + string.ascii_letters + string.punctuation + " "
PAD, EOS = "<pad>", "<eos>"

# The content of all turns, a line each; the assistant's ends with the end token.
_TEMPLATE = (
    "{% for message in messages %}{{ message['content'] }}"
    "{{ '<eos>' if message['role'] == 'assistant' else '\\n' }}{% endfor %}"
)


class CharTokenizer(Tokenizer):
    """One token a character: 0 is padding, 1 the end, then the alphabet in order."""

    def __init__(self, alphabet: str = PRINTABLE) -> None:
        """Makes the vocabulary.

        Args:
          alphabet: all characters that texts may have, each once.

        Raises:
          UserError: a character comes twice, or there is none.
        """
        if not alphabet or len(set(alphabet)) < len(alphabet):
            twice = sorted({c for c in alphabet if alphabet.count(c) > 1})
            raise UserError(
                f"CharTokenizer: needs an alphabet of different characters, got {twice}"
                " more than once"
                if twice
                else "CharTokenizer: needs at least one character"
            )
        vocabulary = {text: i for i, text in enumerate([PAD, EOS, *alphabet])}
        backend = tokenizers.Tokenizer(models.WordLevel(vocabulary))
        backend.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
        backend.decoder = decoders.Fuse()
        backend.add_special_tokens(
            [AddedToken(text, special=True, normalized=False) for text in (PAD, EOS)]
        )
        super().__init__(backend, eos_ids=(1,), pad_id=0, template=_TEMPLATE)
