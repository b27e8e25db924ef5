"""What a call costs, to the nano-dollar."""

from __future__ import annotations

import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crocevia.core.catalogue import EngineSpec, ModelSpec, Prices
from crocevia.core.usage import Usage
from crocevia.policy.prices import FREE, Rates, ceiling, cost, declared, find, find_provider, matches, nano
from crocevia.runtime.money.prices import PriceBook, rates_of, table

ROOT = Path(__file__).resolve().parents[2]
NOW = 1_796_000_000.0  # in November 2026
TODAY = "2026-11-30"


def test_cached_tokens_have_their_own_price_and_are_parts_of_the_input() -> None:
    rates = declared(Prices(input=5, output=25))
    usage = Usage(input_tokens=12_307, output_tokens=550, cache_write_tokens=12_304, cache_read_tokens=0)
    exact = (Decimal(3) * 5 + Decimal(12_304) * Decimal("6.25") + Decimal(550) * 25) / 1_000_000
    assert cost(usage, rates) == nano(exact)
    assert declared(Prices(input=5, output=25, cache_read=0, cache_write=9)).cache_read == 0


@pytest.mark.parametrize("field", ["input_tokens", "output_tokens"])
def test_unknown_is_null_never_zero(field: str) -> None:
    known = {"input_tokens": 10, "output_tokens": 10} | {field: None}
    assert cost(Usage(**known), declared(Prices(input=1, output=1))) is None
    assert cost(Usage(input_tokens=10, output_tokens=10), None) is None
    assert cost(Usage(), FREE) == 0


prices = st.decimals(min_value=0, max_value=1000, places=4, allow_nan=False).map(float)
tokens = st.integers(0, 3_000_000)


@given(given=prices, said=prices, prompt=tokens, answer=tokens, parts=st.tuples(st.floats(0, 1), st.floats(0, 1)))
def test_a_ceiling_is_never_below_the_cost(
    given: float, said: float, prompt: int, answer: int, parts: tuple[float, float]
) -> None:
    rates = declared(Prices(input=given, output=said))
    read = int(prompt * parts[0])
    written = int((prompt - read) * parts[1])
    usage = Usage(input_tokens=prompt, output_tokens=answer, cache_read_tokens=read, cache_write_tokens=written)
    found = cost(usage, rates)
    assert found is not None and 0 <= found <= ceiling(prompt, answer, rates)


@given(st.lists(st.tuples(tokens, tokens), min_size=1, max_size=50))
def test_sums_of_calls_do_not_drift(calls: list[tuple[int, int]]) -> None:
    rates = declared(Prices(input=0.1, output=0.3))
    total = sum(cost(Usage(input_tokens=one, output_tokens=two), rates) or 0 for one, two in calls)
    exact = sum(Decimal(one) * 100 + Decimal(two) * 300 for one, two in calls)
    assert total == exact


def test_a_long_prompt_has_the_prices_of_its_tier() -> None:
    rates = Rates(100, 200, 10, 125, ((200_000, Rates(200, 300, 20, 250)),))
    assert rates.at(200_000).input == 100
    assert rates.at(200_001).input == 200


def test_the_list_knows_models_by_provider_and_date() -> None:
    assert find(table(), "anthropic", "claude-opus-5-5", TODAY) == Rates(4_000_000, 20_000_000, 200_000, 5_000_000)
    assert find(table(), "anthropic", "claude-opus-5-5-20260901", TODAY) is not None
    before, after = (find(table(), "anthropic", "claude-opus-4-6", day) for day in ("2026-03-01", TODAY))
    assert before is not None and after is not None and before.above and not after.above
    assert find(table(), "openai", "a-model-of-nobody", TODAY) is None
    assert find(table(), "nobody", "gpt-5", TODAY) is None


def test_the_address_says_whose_price_it_is() -> None:
    assert find_provider(table(), "https://api.groq.com/openai/v1") == "groq"
    assert find_provider(table(), "https://api.anthropic.com") == "anthropic"
    assert find_provider(table(), "http://127.0.0.1:9999/v1") is None


def test_every_row_of_the_list_can_be_matched_and_priced() -> None:
    for provider in table().providers:
        for listed in provider.models:
            matches(listed.match, "nothing")
            assert all(rows[0][1][0] is not None for _, rows in listed.prices)


def test_the_operator_wins_our_engines_cost_nothing_and_strangers_are_unknown() -> None:
    hosted = EngineSpec(name="e", kind="anthropic")
    brain = ModelSpec(name="m", engine="e", upstream="claude-opus-5-5")
    assert rates_of(brain, hosted, NOW) == find(table(), "anthropic", "claude-opus-5-5", TODAY)
    told = ModelSpec(name="m", engine="e", upstream="claude-opus-5-5", prices=Prices(input=0, output=0))
    assert rates_of(told, hosted, NOW) == FREE
    for kind in ("llama", "scripted"):
        assert rates_of(brain, EngineSpec(name="e", kind=kind), NOW) == FREE  # type: ignore[arg-type]
    assert rates_of(ModelSpec(name="m", engine="e", upstream="unheard-of"), hosted, NOW) is None
    assert rates_of(brain, None, NOW) is None


def test_a_price_that_changed_is_seen_with_the_next_catalogue() -> None:
    class View:
        engines = {"e": EngineSpec(name="e", kind="openai-chat")}  # noqa: RUF012

    views = [View()]
    book = PriceBook(lambda: views[-1], clock=lambda: NOW)
    old = ModelSpec(name="m", engine="e", upstream="x", prices=Prices(input=1000, output=1))
    new = ModelSpec(name="m", engine="e", upstream="x", prices=Prices(input=1, output=1))
    assert book.rates(old) == declared(old.prices or Prices(input=0, output=0))
    views.append(View())
    assert book.rates(new) == declared(new.prices or Prices(input=0, output=0))


def test_the_list_in_the_package_is_what_the_script_writes_today() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "make_prices.py"), "--check"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_serving_loads_the_list_without_its_library() -> None:
    program = (
        "import sys; from crocevia.runtime.money.prices import table; table(); import crocevia.app\n"
        "print('genai_prices' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == (
        "False\n"
    )
