"""make_tiny_model.py OUT: a chat model of half a million random weights, its tokenizer trained on Python's own sources.

It says nothing of sense, but a server treats it like any other model. Nothing is downloaded. Needs torch, transformers
and tokenizers, which vLLM brings. The same machine and versions make the same model.
"""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import torch
from tokenizers import ByteLevelBPETokenizer
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

VOCABULARY = 2048
CONTEXT = 4096
"""Both in tokens."""
START, END, PAD = "<|im_start|>", "<|im_end|>", "<|pad|>"
TEMPLATE = (
    "{% for message in messages %}" + START + "{{ message.role }}\n{{ message.content }}" + END + "\n{% endfor %}"
    "{% if add_generation_prompt %}" + START + "assistant\n{% endif %}"
)


def sources() -> Iterator[str]:
    for path in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))[:60]:
        yield path.read_text(encoding="utf-8", errors="replace")


def tokenizer() -> PreTrainedTokenizerFast:
    trained = ByteLevelBPETokenizer()
    trained.train_from_iterator(sources(), vocab_size=VOCABULARY, special_tokens=[PAD, START, END], show_progress=False)
    return PreTrainedTokenizerFast(
        tokenizer_object=trained._tokenizer,
        eos_token=END,
        pad_token=PAD,
        model_max_length=CONTEXT,
        chat_template=TEMPLATE,
    )


def main() -> int:
    if len(sys.argv) != 2:
        print("usage: make_tiny_model.py OUT", file=sys.stderr)
        return 2
    out = Path(sys.argv[1])
    words = tokenizer()
    torch.manual_seed(0)
    model = Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=len(words),
            hidden_size=128,
            intermediate_size=256,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            head_dim=32,
            max_position_embeddings=CONTEXT,
            tie_word_embeddings=True,
            bos_token_id=None,
            eos_token_id=words.eos_token_id,
            pad_token_id=words.pad_token_id,
        )
    )
    model.to(torch.bfloat16).save_pretrained(out)
    words.save_pretrained(out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
