"""What capabilities promise is emitted: turns that between them say everything that this runtime says."""

from __future__ import annotations

import pytest

from crocevia.doors.atp.events import EVENT_TYPES
from tests.contract.atp import (
    test_turns_approvals as approvals,
)
from tests.contract.atp import (
    test_turns_context as context,
)
from tests.contract.atp import (
    test_turns_messages as messages,
)
from tests.contract.atp import (
    test_turns_team as team,
)
from tests.doors.atp.schema import SEEN


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_every_event_type_that_is_announced_is_emitted_and_none_besides() -> None:
    SEEN.clear()
    messages.test_a_message_opens_a_turn_whose_events_come_in_order(3)
    approvals.test_an_approval_that_nobody_gives_expires_closed_and_the_turn_goes_on()
    approvals.test_nothing_happens_before_the_user_agrees_or_after_they_refuse(True, 3)
    approvals.test_a_question_that_the_orchestrator_passes_over_is_a_no()
    team.test_a_steer_is_read_at_the_next_boundary(3)
    team.test_a_steer_finds_the_member_it_is_meant_for_or_nobody()
    team.test_what_a_lost_attempt_said_is_taken_back()
    context.test_a_file_that_an_agent_writes_is_told_of(3)
    context.test_a_context_near_the_window_is_summarised_and_the_summary_paid_for()
    assert set(SEEN) == set(EVENT_TYPES)
