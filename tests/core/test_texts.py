import string

import pytest

from crocevia.core.errors import Code, Reason, say
from crocevia.core.texts import render, sentences


def fields(sentence: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(sentence) if name}


def test_both_languages_have_the_same_keys_and_the_same_arguments() -> None:
    english, italian = sentences("en"), sentences("it")
    assert english.keys() == italian.keys()
    assert {key: fields(text) for key, text in english.items()} == {key: fields(text) for key, text in italian.items()}


@pytest.mark.parametrize("code", Code)
def test_every_code_has_a_sentence_in_both_languages(code: Code) -> None:
    assert sentences("en")[code]
    assert sentences("it")[code]


def test_a_missing_argument_stays_visible_instead_of_failing() -> None:
    assert render(say(Reason.TOO_LARGE), "en") == "The request is larger than {limit}."
    assert render(say(Reason.TOO_LARGE, limit="32 MB"), "it") == "La richiesta supera 32 MB."
