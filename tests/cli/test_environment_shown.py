"""The environment of an endpoint in `explain`, in `--json` and on the details page."""

from dataclasses import replace

from rich.console import Console

from rightsizer.domain.history import History
from rightsizer.domain.policy import Policy
from rightsizer.recommender.proposal import ChangePermission, proposal_for
from rightsizer.render.details_page import details_page
from rightsizer.terminal.document import recommendation_document
from rightsizer.terminal.tables import explanation
from tests.recommender import kit

FOUND = kit.judge(
    replace(kit.endpoint("ml.g6.xlarge", 2, p95_s=2.0), tags={"env": "dev"}),
    [kit.window(kit.steady(memory=90.0))],
    kit.prices(),
    kit.catalogue(),
    {},
    History(),
    Policy(),
    kit.NOW,
)
SAID = "development (tag env=dev): one instance is enough: no second Availability Zone is kept"


def test_explain_says_which_environment_was_read_and_what_it_changed() -> None:
    console = Console(width=200)
    with console.capture() as capture:
        console.print(explanation(FOUND))
    assert SAID in capture.get()


def test_the_json_has_name_source_and_effects() -> None:
    assert recommendation_document(FOUND)["environment"] == {
        "name": "development",
        "source": "tag env=dev",
        "effects": ["one instance is enough: no second Availability Zone is kept"],
    }
    older = replace(FOUND, environment=None)
    assert recommendation_document(older)["environment"] is None


def test_the_details_page_says_it_beside_the_evidence() -> None:
    proposal = proposal_for(FOUND, ChangePermission(True, ""), 7, kit.NOW)
    assert proposal is not None
    assert SAID in details_page(proposal)
