"""Every requirement of a protocol has a test, and every contract test has a requirement."""

from __future__ import annotations

from pathlib import Path

from tests.contract.atp.requirements import REQUIREMENTS as ATP
from tests.contract.pepper.requirements import REQUIREMENTS as PEPPER
from tests.contract.pepper.requirements_classic import REQUIREMENTS as CLASSIC
from tests.contract.pepper.requirements_money import REQUIREMENTS as MONEY
from tests.contract.requirements import check_both_ways
from tests.contract.responses.requirements import REQUIREMENTS as RESPONSES

HERE = Path(__file__).parent


def test_pepper_requirements_and_tests_match_both_ways() -> None:
    check_both_ways(PEPPER + MONEY + CLASSIC, HERE / "pepper")


def test_atp_requirements_and_tests_match_both_ways() -> None:
    check_both_ways(ATP, HERE / "atp")


def test_responses_requirements_and_tests_match_both_ways() -> None:
    check_both_ways(RESPONSES, HERE / "responses")
