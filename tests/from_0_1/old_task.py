"""OldTask: say here what is evolved, and what a good answer is."""

from __future__ import annotations

import flowevolve as fe

ROWS = [f"Sentence number {number}, which could have been said in far fewer words than these." for number in range(30)]


class OldTask:
    """Its parameters are the keys of a config's [task] beside ``name``."""

    def __init__(self, most_words: int = 10) -> None:
        examples = [fe.Example(str(number), {"text": text}) for number, text in enumerate(ROWS)]
        self.name = "old_task"
        self.data = fe.Dataset(train=examples[:15], val=examples[15:])
        self._most_words = most_words

    def seed(self) -> fe.Artifact:
        """What evolution starts from."""
        return fe.Artifact({"instruction": "Shorten the text."})

    async def rollout(self, artifact: fe.Artifact, example: fe.Example, llm: fe.ChatModel) -> fe.Rollout:
        """One example with one prompt; what blocks belongs in `flowevolve.clock.in_thread`."""
        text = str(example.data["text"])
        output = await llm([fe.Message("system", artifact["instruction"]), fe.Message("user", text)])
        trace = (fe.Call("instruction", {"text": text}, output),)
        return fe.Rollout(example.id, output, self._judge(output), trace)

    def _judge(self, output: str) -> fe.Score:
        words = len(output.split())
        if words == 0:
            return fe.Score(0.0, "The answer is empty.", passed=False)
        passed = words <= self._most_words
        return fe.Score(
            min(1.0, self._most_words / words), f"{words} words; {self._most_words} are allowed.", passed=passed
        )
