"""gepa's own reflection prompt, from the package gepa that the user has installed."""

from __future__ import annotations

from collections.abc import Sequence

from flowevolve._util.errors import InputError
from flowevolve.core.artifact import Artifact
from flowevolve.core.templates import Prompt, Shorten, Template, Templates
from flowevolve.prompts.reflection import ReflectionExample, WriteReflection


def gepas_reflection() -> WriteReflection:
    """A function that writes the prompt that gepa would send, with gepa's template and its rendering of examples.

    Raises:
        InputError: if gepa is not installed, or has no such template.
    """
    try:
        from gepa.strategies.instruction_proposal import InstructionProposalSignature as Signature  # noqa: PLC0415
    except ImportError as error:
        raise InputError(
            'algorithm.reflection_prompt: "gepa" takes the prompt of the package gepa, which is not installed; '
            "pip install 'flowevolve[gepa]'"
        ) from error
    version = Template("gepa", Signature.default_prompt_template).version

    def write(
        templates: Templates, component: str, artifact: Artifact, examples: Sequence[ReflectionExample]
    ) -> Prompt:
        def fill(shorten: Shorten) -> Prompt:
            given = {
                "current_instruction_doc": artifact[component],
                "dataset_with_feedback": [_record(each, shorten) for each in examples],
            }
            return Prompt(str(Signature.prompt_renderer(given)), version)

        return templates.fitted(fill)

    return write


def _record(example: ReflectionExample, shorten: Shorten) -> dict[str, object]:
    """An example in the form that gepa's adapters use."""
    return {
        "Inputs": {name: shorten(value) for name, value in example.inputs.items()},
        "Generated Outputs": shorten(example.output),
        "Feedback": shorten(example.feedback),
    }
