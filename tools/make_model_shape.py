"""make_model_shape.py OUT [--weights]: a model with the shape of Qwen3-8B and random weights, for measuring speed.

Writes its configuration and a tokenizer, which is all that `vllm serve OUT --load-format dummy` needs; with --weights
the weights too (16 GB), for servers that can't make them up. Nothing is downloaded. The tokenizer is the tiny model's,
filled up with words that no text has, so that every token the model can write has a text. Needs what
make_tiny_model.py needs.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch
from make_tiny_model import END, PAD, tokenizer
from tokenizers import Tokenizer
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

VOCABULARY, CONTEXT = 151_936, 40_960
"""The sizes of Qwen3-8B, as all sizes below: https://huggingface.co/Qwen/Qwen3-8B/blob/main/config.json."""


def filled_up(small: PreTrainedTokenizerFast) -> PreTrainedTokenizerFast:
    """The same tokenizer, with as many tokens as the model has."""
    content = json.loads(small.backend_tokenizer.to_str())
    vocabulary: dict[str, int] = content["model"]["vocab"]
    vocabulary |= {f"Ġunused{number}": number for number in range(len(small), VOCABULARY)}
    return PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer.from_str(json.dumps(content)),
        eos_token=END,
        pad_token=PAD,
        model_max_length=CONTEXT,
        chat_template=small.chat_template,
    )


def configuration(end: int, pad: int) -> Qwen3Config:
    return Qwen3Config(
        architectures=["Qwen3ForCausalLM"],
        dtype="bfloat16",
        vocab_size=VOCABULARY,
        hidden_size=4096,
        intermediate_size=12288,
        num_hidden_layers=36,
        num_attention_heads=32,
        num_key_value_heads=8,
        head_dim=128,
        max_position_embeddings=CONTEXT,
        rope_parameters={"rope_type": "default", "rope_theta": 1_000_000},
        tie_word_embeddings=False,
        bos_token_id=None,
        eos_token_id=end,
        pad_token_id=pad,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--weights", action="store_true", help="write random weights too, 16 GB")
    arguments = parser.parse_args()
    words = filled_up(tokenizer())
    config = configuration(words.eos_token_id, words.pad_token_id)
    if arguments.weights:
        torch.manual_seed(0)
        with torch.device("cuda" if torch.cuda.is_available() else "cpu"):
            Qwen3ForCausalLM(config).to(torch.bfloat16).save_pretrained(arguments.out)
    else:
        config.save_pretrained(arguments.out)
    words.save_pretrained(arguments.out)


if __name__ == "__main__":
    main()
