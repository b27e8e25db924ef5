from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from crocevia.core.answers import AnswerFold, fold
from crocevia.core.events import (
    ProviderBlock,
    ReasoningDelta,
    Stopped,
    StopReason,
    TextDelta,
    ToolCallDelta,
    ToolCallDone,
    ToolCallStarted,
    UsageReported,
)
from crocevia.core.messages import ToolCall
from crocevia.core.usage import Usage

CALL = ToolCall(id="c1", name="get_home_status", arguments=Raw(b"{}"))


def test_a_whole_answer_is_the_fold_of_its_events() -> None:
    block = ProviderBlock("anthropic", Raw(b'{"type":"thinking"}'))
    answer = fold(
        [
            ReasoningDelta("hm"),
            TextDelta("sto "),
            TextDelta("guardando"),
            ToolCallStarted(0, "c1", "get_home_status"),
            ToolCallDelta(0, "{}"),
            ToolCallDone(0, CALL),
            block,
            UsageReported(Usage(input_tokens=3, output_tokens=7)),
            Stopped(StopReason.TOOL_USE),
        ]
    )
    assert (answer.text, answer.reasoning) == ("sto guardando", "hm")
    assert answer.tool_calls == (CALL,)
    assert answer.blocks == (block,)
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (3, 7)
    assert answer.stop is StopReason.TOOL_USE


def test_a_call_that_never_completed_is_not_part_of_the_answer() -> None:
    answer = fold([ToolCallStarted(0, "c1", "write"), ToolCallDelta(0, '{"path":'), Stopped(StopReason.MAX_TOKENS)])
    assert answer.tool_calls == ()


def test_a_cut_answer_can_be_read_at_any_moment() -> None:
    state = AnswerFold()
    state.add(TextDelta("so far"))
    assert state.answer().text == "so far"
    assert state.answer().stop is None


@given(st.lists(st.text()))
def test_text_is_the_concatenation_of_its_deltas(pieces: list[str]) -> None:
    assert fold(TextDelta(piece) for piece in pieces).text == "".join(pieces)


def test_later_cumulative_usage_replaces_earlier_and_is_never_added() -> None:
    start = Usage(input_tokens=3, cache_write_tokens=12304, output_tokens=1)
    final = Usage(input_tokens=3, cache_write_tokens=12304, output_tokens=550)
    answer = fold([UsageReported(start), UsageReported(final)])
    assert answer.usage == Usage(input_tokens=3, cache_write_tokens=12304, output_tokens=550)


def test_a_figure_that_is_not_repeated_is_kept() -> None:
    answer = fold([UsageReported(Usage(input_tokens=9)), UsageReported(Usage(output_tokens=2))])
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (9, 2)


def test_the_sum_of_two_calls_keeps_what_is_known_and_says_it_is_partial() -> None:
    total = Usage(input_tokens=5, output_tokens=1) + Usage(output_tokens=2)
    assert (total.input_tokens, total.output_tokens, total.estimated) == (5, 3, True)
    assert (Usage() + Usage()).input_tokens is None
