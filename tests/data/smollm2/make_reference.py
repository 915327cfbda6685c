"""Recomputes reference.npz with transformers, to compare: python FILE MODEL_DIR OUT."""

import json
import pathlib
import sys

import numpy as np
import torch
import transformers

HERE = pathlib.Path(__file__).parent
NEW_TOKENS = 32


def reference_of(model, tokenizer, text: str) -> dict[str, np.ndarray]:
    ids = tokenizer(text, add_special_tokens=False, return_tensors="pt").input_ids
    prompt = ids.shape[1]
    for _ in range(NEW_TOKENS):
        ids = torch.cat([ids, model(ids).logits[:, -1:].argmax(-1)], dim=1)
    logits = model(ids).logits[0].double()
    logprobs = logits.log_softmax(-1)
    chosen = logprobs[:-1].gather(-1, ids[0, 1:, None])[:, 0].numpy()
    new, last = slice(prompt - 1, -1), logits[prompt - 1].numpy()
    top2 = logits[new].topk(2).values
    kept = np.unique([*np.argsort(-last)[:64], *range(0, len(last), 96)])
    return {
        "prompt_ids": ids[0, :prompt].numpy().astype(np.int32),
        "prompt_logprobs": chosen[: prompt - 1].astype(np.float32),
        "logit_ids": kept.astype(np.int32),
        "logits": last[kept].astype(np.float32),
        "logsumexp": logits[prompt - 1].logsumexp(-1).numpy(),
        "greedy_ids": ids[0, prompt:].numpy().astype(np.int32),
        "greedy_logprobs": chosen[prompt - 1 :].astype(np.float32),
        "greedy_entropy": -(logprobs.exp() * logprobs).sum(-1)[new].float().numpy(),
        "greedy_margin": (top2[:, 0] - top2[:, 1]).float().numpy(),
    }


@torch.no_grad()
def main(model_directory: str, out: str) -> None:
    tokenizer = transformers.AutoTokenizer.from_pretrained(model_directory)
    model = transformers.AutoModelForCausalLM.from_pretrained(
        model_directory, dtype=torch.float32, attn_implementation="eager"
    )
    prompts = json.loads((HERE / "reference.json").read_text())["prompts"]
    arrays = {
        f"{name}_{i}": value
        for i, prompt in enumerate(prompts)
        for name, value in reference_of(model, tokenizer, prompt["rendered"]).items()
    }
    fourth = torch.tensor(arrays["prompt_ids_4"])[None].long()
    states = model(fourth, output_hidden_states=True).hidden_states
    arrays["hidden_4"] = torch.stack([state[0, -1] for state in states]).numpy()
    np.savez_compressed(out, **arrays)


if __name__ == "__main__":
    main(*sys.argv[1:])
