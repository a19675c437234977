"""An evaluation knows what was asked about its endpoints and waits."""

from rightsizer.domain.history import History, OpenQuestion
from rightsizer.flows.evaluate import with_open_questions
from tests.samples import option


def test_the_history_of_an_endpoint_tells_its_open_question_and_that_of_no_other() -> None:
    asked = OpenQuestion(option(), "chat-1|2026-11-01")
    read = with_open_questions(lambda _: History(tests_this_month=3), {"chat": asked})
    assert read("chat") == History(tests_this_month=3, asked=asked)
    assert read("search") == History(tests_this_month=3)
