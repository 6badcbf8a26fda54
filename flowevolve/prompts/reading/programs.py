"""Reads whole programs in replies: the block of code that is meant, put between the parent's marks if it has any."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from flowevolve._util.thinking import split_thinking
from flowevolve.core.reply_reading import Reason, UnparsableReplyError
from flowevolve.programs.blocks import evolvable_lines, has_marks
from flowevolve.programs.features import syntax_error
from flowevolve.programs.names import (
    DYNAMIC,
    bound_names,
    is_docstring,
    names_bound_within,
    names_of_arguments,
    parsed,
    star_imports,
    used_names,
)
from flowevolve.programs.splicing import splice
from flowevolve.prompts.reading.choosing import chosen, without, without_drafts
from flowevolve.prompts.reading.edits import SLASHES, LeftOut
from flowevolve.prompts.reading.elisions import elision, named_elision
from flowevolve.prompts.reading.fences import LANGUAGES, TEXT_LABELS, Block, blocks, unwrapped
from flowevolve.prompts.reading.fields import tagged
from flowevolve.prompts.reading.file_names import file_named, file_named_above

_NO_PROGRAMS = frozenset(
    {"bash", "sh", "shell", "console", "zsh", "text", "txt", "plaintext", "output", "markdown", "md", "json", "jsonc"}
    | {"yaml", "yml", "diff", "patch", "mermaid", "latex", "tex", "html", "xml", "toml"}
)
_CODE_ENDINGS = SLASHES | {"py", "jsx", "tsx", "rb", "jl"}
"""The endings of files whose text is code."""
_PYTHON = frozenset({"python", "py", "python3"})
_CODE_LINE = re.compile(
    r"^(?:import |from \S+ import |def |class |async def |@\w|#!|\"\"\"|'''|if __name__|[A-Z_][A-Z0-9_]* *= )"
)
_OTHER_CODE = re.compile(
    r"^\s*(?:#include|#pragma|//|/\*|(?:using|import|package|use|fn|int|void|const|function|class|public|template)\s)"
)
_PROSE = re.compile(r"^(?:[A-Z*>#-][^=(){}\[\]]*[.:!?)*`]|\s*[-*\d][.)]? .*)$")
_FILE_HEADING = re.compile(
    r"^[\s#*`>-]*(?:file(?:name)?\s*:\s*)?[`*]*([\w./-]+\.\w{1,5})[`*]*\s*:?[\s*`]*$", re.IGNORECASE
)
_REMARK = re.compile(r"^\s*(?:#+|//|/\*)\s*(?:file(?:name)?\s*:\s*)?([\w./-]+\.\w{1,5})\b", re.IGNORECASE)
_TRIES = 6
_MOST_BLOCKS = 50
"""If there are more blocks than this, it is not checked which of them are parts of others."""


@dataclass(frozen=True, slots=True)
class ReadProgram:
    """The program read from a reply, as texts by file name, and the parts of the reply that were left out."""

    files: Mapping[str, str]
    left_out: tuple[LeftOut, ...] = ()


def read_whole(answer: str, parent: Mapping[str, str]) -> ReadProgram:
    """The program in a reply (given without its thinking): for one file, the block of code that is meant; for several
    files, the blocks that name them.

    Raises:
        UnparsableReplyError: if there is no program, more than one, or one with parts left out; or if it defines
            nothing that the parent does, so that nothing would call it.
    """
    found = {name: text for name, text in _texts(answer, parent).items() if text.strip()}
    if not found:
        raise UnparsableReplyError(
            f"no fenced block with a program in the reply; its files are {', '.join(parent)}", Reason.MISSING
        )
    files = dict(parent)
    left_out: list[LeftOut] = []
    for name, text in found.items():
        _refuse_elisions(elision(text, parent[name]))
        spliced = splice(parent[name], text, python=name.endswith(".py"))
        files[name] = ended_like(parent[name], spliced.text)
        _refuse_elisions(named_elision(files[name], parent[name]))
        if name.endswith(".py"):
            _refuse_fragments(files[name], parent[name])
        if spliced.ignored:
            message = f"{name}: what the reply has outside of the EVOLVE-BLOCK marks was left out"
            left_out.append(LeftOut(Reason.FROZEN, message))
    _refuse_another(files, parent)
    return ReadProgram(files, tuple(left_out))


def read_program_text(answer: str, language: str) -> str:
    """The program in a reply whose parent is not known.

    Raises:
        UnparsableReplyError: if there is no program, more than one, or one with parts left out; or if it is Python and
            does not compile.
    """
    answer = unwrapped(answer)
    if not language:
        labels = {block.language for block in blocks(answer)}
        language = "python" if labels & _PYTHON else next(iter(sorted(labels & LANGUAGES - _NO_PROGRAMS)), "")
    text = _one_text(answer, None, language)
    if not text.strip():
        raise UnparsableReplyError("the block of the program is empty", Reason.EMPTY)
    _refuse_elisions(elision(text))
    wrong = syntax_error(text) if language in _PYTHON else None
    if wrong is not None:
        raise UnparsableReplyError(f"the program does not compile: {wrong}", Reason.DOES_NOT_COMPILE)
    return text.strip("\n") + "\n"


def python_programs(reply: str, *, was_cut: bool = False) -> list[str]:
    """The blocks of Python in a reply to a prompt for several programs, without drafts. They need not parse. If none is
    labelled as Python, they are the blocks without a label that define something.

    Blocks in thinking don't count, nor, in a reply that ``was_cut`` off at the token limit, does a block without an
    end.
    """
    answer = unwrapped(split_thinking(reply).answer.replace("\r\n", "\n"))
    every = [block for block in blocks(answer) if block.closed or not was_cut]
    found = [block for block in every if block.language in _PYTHON and block.body.strip()]
    found = found or [block for block in every if not block.language and _defines(block.body)]
    return [block.body.strip() + "\n" for block in without_drafts(found, answer.split("\n"))]


def _defines(text: str) -> bool:
    tree = parsed(text)
    return tree is not None and bool(_defined(tree))


def looks_whole(answer: str, parent: Mapping[str, str]) -> bool:
    """Whether a reply has a whole program and not just some lines: it has the marks, or all that the parent defines.

    For a file that defines nothing, or can't be parsed as Python, more than half of its length is enough.
    """
    for name, old in parent.items():
        try:
            text = _texts(answer, parent).get(name, "")
        except UnparsableReplyError:
            return False
        if not text.strip():
            continue
        if has_marks(text) and has_marks(old):
            return True
        tree, before = parsed(text), parsed(old)
        if name.endswith(".py") and tree is not None and before is not None:
            wanted = _defined(before, evolvable_lines(old))
            if wanted and wanted <= _defined(tree):
                return True
            if not wanted and 2 * len(text) > len(old) and _is_program(text):
                return True
        elif 2 * len(text) > len(old):
            return True
    return False


def ended_like(old: str, new: str) -> str:
    """The new text with as many newlines at its end as the old one, as a fenced block loses them."""
    return new.rstrip("\n") + old[len(old.rstrip("\n")) :]


def _texts(answer: str, parent: Mapping[str, str]) -> dict[str, str]:
    if len(parent) == 1:
        ((name, old),) = parent.items()
        return {name: _one_text(answer, old, "python" if name.endswith(".py") else "", name)}
    found: dict[str, list[Block]] = {}
    lines = answer.split("\n")
    end = 0
    for block in blocks(answer, parent):
        named = _file_of(block, lines[end : block.start], parent)
        end = block.stop
        if named is not None:
            found.setdefault(named, []).append(block)
    for name, each in found.items():
        _refuse_several(name, each, parent.keys() - found.keys())
    return {
        name: _meant(each, answer, parent[name], f"block of {name}", python=name.endswith(".py")).body
        for name, each in found.items()
    }


def _refuse_several(name: str, found: Sequence[Block], others: Collection[str]) -> None:
    """Raises: UnparsableReplyError if a block of a file has a remark alone on its line that names one of the others."""
    remarks = (_REMARK.fullmatch(line) for block in found for line in block.body.split("\n") if line[:1] in "#/")
    other = next((remark[1] for remark in remarks if remark is not None and remark[1] in others), None)
    if other is not None:
        message = f"the block of {name} has {other} in it, too; write each file in a block of its own"
        raise UnparsableReplyError(message, Reason.AMBIGUOUS)


def _file_of(block: Block, above: Sequence[str], known: Mapping[str, str]) -> str | None:
    """The file that a block is for, by its label, the lines above it, or the remark that it begins with."""
    if block.label in known:
        return block.label
    nearest = next((line for line in reversed(above) if line.strip()), "")
    first = block.body.lstrip("\n").partition("\n")[0]
    headings = [match[1] for match in (_FILE_HEADING.match(nearest), _REMARK.match(first)) if match]
    named = file_named(block.label, known) or next((name for name in headings if name in known), None)
    explained = file_named_above(above, known)
    if named is None and explained is not None and _could_be(block, known[explained], python=explained.endswith(".py")):
        return explained
    return named


def _could_be(block: Block, old: str, *, python: bool) -> bool:
    """Whether a block below an explanation that names a file is the whole file, and no quotation, output or command."""
    whole = _has_all(block.body, old) if python else 2 * len(block.body) > len(old)
    return block.language not in _NO_PROGRAMS and whole


def _one_text(answer: str, parent: str | None, language: str, name: str = "") -> str:
    python = language in _PYTHON
    found = [block for block in blocks(answer, [name] if name else ()) if block.body.strip()]
    programs = [block for block in found if block.language not in _NO_PROGRAMS - {language} or block.label == name]
    if not programs and len(found) == 1 and _may_be(found[0], name) and (not python or _is_program(found[0].body)):
        programs = found
    if programs:
        block = _meant(programs, answer, parent, "program", python=python)
        return _mended(block, answer) if python else block.body
    if found:
        raise UnparsableReplyError("no fenced block with a program in the reply", Reason.MISSING)
    inner = tagged(answer, "program", "code", "python", "file")
    if len(inner) == 1:
        return inner[0]
    text = _unfenced_python(answer) if python or not language else None
    if text is None and not python and _OTHER_CODE.match(answer) and answer.count("{") == answer.count("}") > 0:
        text = answer
    if text is None:
        raise UnparsableReplyError("no fenced block with a program in the reply", Reason.MISSING)
    return text


def _may_be(block: Block, name: str) -> bool:
    """Whether a block with the label of something other than a program may be the file of this name all the same."""
    return block.language in TEXT_LABELS or name.rpartition(".")[2].lower() not in _CODE_ENDINGS


def _meant(found: Sequence[Block], answer: str, parent: str | None, what: str, *, python: bool) -> Block:
    """The block that is the program, or what ``what`` calls it. If the reply does not say which, blocks are ruled out
    that are part of another one, are not Python though they should be, or lack what the parent has.
    """
    try:
        return chosen(found, answer, what)
    except UnparsableReplyError as error:
        if len(found) > _MOST_BLOCKS:
            raise
        left = without(found, lambda each: any(_is_part(each, other, parent) for other in found if other is not each))
        left = without(left, lambda each: python and each.language not in _PYTHON)
        left = without(left, lambda each: not _has_all(each.body, parent))
        left = without(left, lambda each: python and not _is_program(each.body))
        if len(left) == len(found):
            raise error
        return chosen(left, answer, what)


def _is_part(block: Block, other: Block, parent: str | None) -> bool:
    """Whether a block quotes lines of another one. If it skips some in between and still has all that the parent has,
    it is another program and no quotation.
    """
    lines, theirs = ([line.strip() for line in each.body.split("\n") if line.strip()] for each in (block, other))
    if len(block.body) >= len(other.body) or not set(lines) <= set(theirs):
        return False
    quoted = "\n".join(["", *lines, ""]) in "\n".join(["", *theirs, ""])
    return quoted or parent is None or not _has_all(block.body, parent)


def _has_all(text: str, parent: str | None) -> bool:
    """Whether a program has marks as its parent does, or defines all that the parent defines between its marks."""
    if parent is None:
        return True
    if has_marks(parent) and has_marks(text):
        return True
    old, new = parsed(parent), parsed(text)
    if old is None or new is None:
        return old is None
    return _defined(old, evolvable_lines(parent)) <= _defined(new)


def _defined(tree: ast.Module, within: Sequence[range] | None = None) -> set[str]:
    """The names of a program's functions and classes, in these lines of it or in all."""
    definitions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return {
        name
        for node in tree.body
        if isinstance(node, definitions)
        if within is None or any(node.lineno - 1 in lines for lines in within)
        for name in bound_names(node)
    }


def _mended(block: Block, answer: str) -> str:
    """The text of a block of Python. If it does not parse, the text is extended beyond a fence that ended it too early
    or, if the block has no end, shortened by the remarks that follow the code.
    """
    if parsed(block.body) is not None:
        return block.body
    lines = answer.split("\n")
    ends = [number for number in range(block.stop, len(lines)) if lines[number].strip() in ("```", "~~~")]
    for end in ends[:_TRIES]:
        text = "\n".join(lines[block.start + 1 : end])
        if parsed(text) is not None:
            return text
    return block.body if block.closed else _without_remarks(block.body)


def _without_remarks(text: str) -> str:
    """The text without paragraphs of prose at its end, if the rest parses."""
    lines = text.rstrip().split("\n")
    cut = len(lines)
    while cut and (not lines[cut - 1].strip() or _PROSE.match(lines[cut - 1])):
        cut -= 1
    kept = "\n".join(lines[:cut])
    return kept if 0 < cut < len(lines) and parsed(kept) is not None else text


def _unfenced_python(answer: str) -> str | None:
    """The program in a reply without fences, perhaps with prose before and after it; None if there is none."""
    lines = answer.strip("\n").split("\n")
    first = next((number for number, line in enumerate(lines) if _CODE_LINE.match(line)), None)
    while first is not None and first > 0 and lines[first - 1].startswith("#"):
        first -= 1
    if first is None or any(line.strip() and line[:1].isspace() for line in lines[:first]):
        return None
    text = "\n".join(lines[first:])
    text = text if parsed(text) is not None else _without_remarks(text)
    return text if _is_program(text) else None


def _is_program(text: str) -> bool:
    """Whether a text is Python that does something, and not a word or two that happen to parse."""
    tree = parsed(text)
    return tree is not None and any(not isinstance(node, ast.Expr) for node in tree.body)


def _refuse_fragments(text: str, parent: str) -> None:
    """Raises: UnparsableReplyError if a program uses a function or class that only its parent defines, other than in
    code that runs only if the file is run as a script.
    """
    old, new = parsed(parent), parsed(text)
    if old is None or new is None or any(map(star_imports, new.body)):
        return
    used = {name for node in new.body if not _is_run_as_script(node) for name in used_names(node, annotations=False)}
    lost = _defined(old) - _named_in(new) - names_of_arguments(new)
    missing = sorted((lost & used) - set(dir(builtins)))
    if missing and not used & DYNAMIC:
        raise UnparsableReplyError(
            f"the program is not complete: it uses {', '.join(missing)}, which it does not define", Reason.ELIDED
        )


def _refuse_another(files: Mapping[str, str], parent: Mapping[str, str]) -> None:
    """Raises: UnparsableReplyError if a program, in all its files, defines nothing that its parent defines, and runs
    nothing itself, so that nothing can call it.
    """
    old = [parsed(text) for name, text in parent.items() if name.endswith(".py")]
    new = [parsed(text) for name, text in files.items() if name.endswith(".py")]
    before, after = [tree for tree in old if tree is not None], [tree for tree in new if tree is not None]
    if len(before) + len(after) < len(old) + len(new):
        return
    wanted = {name for tree in before for name in _defined(tree)}
    lost = wanted - {name for tree in after for name in _named_in(tree) | names_of_arguments(tree)}
    body = [node for tree in after for node in tree.body]
    if wanted and lost == wanted and body and all(map(_is_plain_definition, body)):
        raise UnparsableReplyError(
            f"the reply is another program: it defines nothing of what the program does ({', '.join(sorted(wanted))})",
            Reason.WRONG_FORM,
        )


def _named_in(tree: ast.Module) -> set[str]:
    return {name for node in tree.body for name in names_bound_within(node)}


def _is_run_as_script(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and "__name__" in used_names(node)


def _is_plain_definition(node: ast.stmt) -> bool:
    """Whether a statement only imports, defines or documents something, and can't have it called by other code."""
    match node:
        case ast.Import() | ast.ImportFrom():
            return True
        case ast.FunctionDef(decorator_list=[]):
            return True
    return is_docstring(node)


def _refuse_elisions(left_out: str | None) -> None:
    if left_out is not None:
        raise UnparsableReplyError(
            f"the program is not complete: {left_out[:60]!r} stands for a part of it", Reason.ELIDED
        )
