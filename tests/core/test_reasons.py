"""Every reason has its sentence, and every place that gives a reason gives the details that its sentence needs."""

import ast
import string
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from crocevia.core.errors import Code, GatewayError, Reason, Word
from crocevia.core.texts import Language, render, sentences

SOURCE = Path(__file__).parents[2] / "src" / "crocevia"

# What gives a reason as its first argument, the details as keywords; and the keywords that are no details.
RAISES = {"GatewayError", "super().__init__"}
SAYS = {"say", "Refusal", "place.wrong"}
NO_DETAILS = {"code", "param", "retry_after", "retryable"}
# A place in a script adds them by itself.
SCRIPT = {"engine", "rule", "step"}


class Use(NamedTuple):
    where: str
    reason: Reason | Word
    details: set[str]


def placeholders(key: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(sentences("en")[key]) if name}


def named(node: ast.expr) -> list[Reason | Word]:
    """The reasons that an expression spells: `Reason.X`, or either branch of a condition."""
    if isinstance(node, ast.IfExp):
        return named(node.body) + named(node.orelse)
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        enum = {"Reason": Reason, "Word": Word}.get(node.value.id)
        return [] if enum is None else [enum[node.attr]]
    return []


def modules() -> Iterator[tuple[Path, ast.Module]]:
    for path in sorted(SOURCE.rglob("*.py")):
        yield path.relative_to(SOURCE), ast.parse(path.read_text(encoding="utf-8"))


def uses() -> Iterator[Use]:
    """Every call that names its reason."""
    for path, tree in modules():
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call) or not node.args or ast.unparse(node.func) not in RAISES | SAYS:
                continue
            details = {keyword.arg for keyword in node.keywords if keyword.arg is not None}
            if ast.unparse(node.func) in RAISES:
                details -= NO_DETAILS
            for reason in named(node.args[0]):
                implied = SCRIPT & placeholders(reason) if ast.unparse(node.func) == "place.wrong" else set()
                yield Use(f"{path}:{node.lineno}", reason, details | implied)


def test_every_place_gives_the_details_that_the_sentence_needs_and_no_others() -> None:
    found = list(uses())
    assert len(found) > 500
    assert [use for use in found if use.details != placeholders(use.reason)] == []


def test_every_reason_is_given_somewhere() -> None:
    given = Counter(reason for _, tree in modules() for node in ast.walk(tree) for reason in expressed(node))
    assert [reason for reason in (*Reason, *Word) if not given[reason]] == []


def expressed(node: ast.AST) -> list[Reason | Word]:
    return named(node) if isinstance(node, ast.Attribute) else []


@pytest.mark.parametrize("language", ["en", "it"])
def test_a_language_has_a_sentence_for_every_reason_and_nothing_else(language: Language) -> None:
    assert sentences(language).keys() == {*Reason, *Word}


@pytest.mark.parametrize("code", Code)
def test_every_code_is_a_reason_that_has_it(code: Code) -> None:
    assert Reason(code.value).code is code


def test_a_reason_is_its_key_and_knows_its_code() -> None:
    assert Reason("file_not_found") is Reason.FILE_NOT_FOUND
    assert (Reason.FILE_NOT_FOUND.value, Reason.FILE_NOT_FOUND.code) == ("file_not_found", Code.NOT_FOUND)
    assert Reason.PATH_WRONG.code is Code.INVALID_REQUEST


def test_an_error_has_the_code_of_its_reason_and_says_its_sentence() -> None:
    error = GatewayError(Reason.FILE_TOO_LARGE, param="content", limit=5)
    assert (error.code, error.param) == (Code.TOO_LARGE, "content")
    assert render(error.message, "en") == "The file is larger than 5 bytes."


def test_an_error_of_another_field_is_the_same_error() -> None:
    error = GatewayError(Reason.FILES_BUSY, retry_after=5).at("files[1]")
    assert (error.reason, error.code, error.param, error.retry_after) == (
        Reason.FILES_BUSY,
        Code.UNAVAILABLE,
        "files[1]",
        5,
    )
