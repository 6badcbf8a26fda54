"""A real model that thinks: SmolLM2 on a real vLLM, with a chat template that opens its thinking. `make test-vllm` runs it.

A model of this size neither ends its thinking by itself nor writes in the form that was asked for, so the server is told
the form of its replies. Each has a draft in its thinking, in the same form as the answer.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from flowevolve.config.run import parse_config
from flowevolve.journal.reading import RecordedRun
from flowevolve.runner.run import run
from tests.vllm.conftest import ROOT

pytestmark = [pytest.mark.anyio, pytest.mark.real_vllm]

TEMPLATE = """\
{% for message in messages %}<|im_start|>{{ message['role'] }}
{{ message['content'] }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
<think>
{% endif %}"""
FLAGS = ("--dtype=bfloat16", "--max-model-len=8192", "--max-num-seqs=8", "--enforce-eager")
DRAFT = "DRAFT that nobody may take"
ANSWER = f"{DRAFT}\n</think>\n\n[A-Za-z ,.]{{10,80}}"
INSTRUCTION = f"I try:\n```\n{DRAFT}\n```\n</think>\n\n```\n[A-Za-z ,.]{{20,120}}\n```"


def reply_form(regex: str) -> dict[str, object]:
    return {"structured_outputs": {"regex": regex}}


async def test_thinking_is_taken_off_and_no_draft_is_evaluated(tmp_path: Path) -> None:
    template = tmp_path / "thinking.jinja"
    template.write_text(TEMPLATE, encoding="utf-8")
    config = parse_config(
        {
            "llm": {
                "backend": "vllm",
                "model": "smollm2",
                "max_tokens": 64,
                "concurrency": 8,
                "extra": reply_form(ANSWER),
                "roles": {"reflection": {"max_tokens": 96, "extra": reply_form(INSTRUCTION)}},
            },
            "vllm": {
                "executable": str(ROOT / ".venv-vllm"),
                "model": str(ROOT / ".models" / "smollm2-135m"),
                "device": "cpu",
                "flags": [*FLAGS, f"--chat-template={template}"],
                "environment": {"HF_HUB_OFFLINE": "1", "VLLM_CPU_KVCACHE_SPACE": "1"},
                "startup_seconds": 300.0,
            },
            "algorithm": {"max_in_flight": 4},
            "budget": {"proposals": 4, "minutes": 5},
        },
        "test",
    )
    result = await run(config, out=tmp_path / "run")
    assert result.report.error is None
    with RecordedRun(tmp_path / "run") as recorded:
        calls = [call for call in recorded.calls() if call.reply is not None]
        proposals = [event.data for event in recorded.proposals()]
    assert proposals
    assert DRAFT not in str(proposals)
    assert {call.role for call in calls} == {"task", "reflection"}
    for call in calls:
        assert DRAFT in (call.thinking or "")
        assert call.reply is not None
        assert DRAFT not in call.reply
        assert "think>" not in call.reply
        assert not [message for message in call.messages or () if DRAFT in message.content]
