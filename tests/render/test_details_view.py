"""The modal of a proposal: evidence, ranked options, why not the same GPU in another size, another option to take."""

import json
from dataclasses import replace
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from rightsizer.domain.option import Excluded, Option, OptionKind, Risk, Target
from rightsizer.domain.proposal import Proposal, ProposalState
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import ComponentFinding, ComponentPacking, Finding
from rightsizer.render.blocks import Block, reason_form
from rightsizer.render.details_page import details_page
from rightsizer.render.details_view import component_lines, other_sizes, proposal_view
from rightsizer.render.sentences import as_title
from sandbox.strict import judge
from tests.render.test_slack import spoilt
from tests.samples import option, proposal, recommendation

ELSEWHERE = option(kind=OptionKind.SERVERLESS, in_place=False, client_change="call another endpoint")
RISKY = option(target=Target("ml.g4dn.xlarge", 1), risk=Risk.HIGH)
SMALLER = option(target=Target("ml.g5.2xlarge", 1))


def asked(*options: Option, **more: object) -> Proposal:
    found = recommendation(options=(option(), *options))
    return replace(proposal(recommendation=found), **more)  # type: ignore[arg-type]


def takes(view: Block) -> list[str]:
    return [b["accessory"]["value"] for b in view["blocks"] if "accessory" in b]


def test_another_option_can_be_taken_where_it_is_done_here_and_its_risk_allows() -> None:
    view = proposal_view(asked(SMALLER, ELSEWHERE, RISKY, revision=3))
    assert takes(view) == ["p-5f2c9a7d1e3b4c60~3~1"]
    said = json.dumps(view, ensure_ascii=False)
    for part in ("1. run on 1 × ml.g5.xlarge", "2. run on 1 × ml.g5.2xlarge", "its owner carries it out"):
        assert part in said
    assert judge("slack", "views.open", {"trigger_id": "1.2.a", "view": view}) is None


def test_nothing_is_taken_from_what_is_decided_or_may_not_be_changed() -> None:
    assert takes(proposal_view(asked(SMALLER, state=ProposalState.APPROVED))) == []
    assert takes(proposal_view(asked(SMALLER, approvable=False, enable="tag it"))) == []


def test_the_obvious_question_has_an_answer() -> None:
    bigger = Excluded("ml.g5.4xlarge", Reason(Code.NOT_CHEAPER, "it is not cheaper"))
    other = Excluded("ml.g6.xlarge", Reason(Code.TOO_SLOW, "too slow"))
    found = replace(asked(SMALLER).recommendation, excluded=(bigger, other))
    assert other_sizes(found) == [
        "It is the recommended one: ml.g5.xlarge.",
        "ml.g5.2xlarge is an option: saves $4,141 a month, low risk.",
        "ml.g5.4xlarge: it is not cheaper",
    ]
    none = replace(found, options=(), excluded=(other,))
    assert other_sizes(none) == ["No other size of ml.g5 was looked at: none is listed with a price."]
    assert other_sizes(replace(found, instance_type="")) == ["It runs on no instance type of its own."]


@given(st.text(min_size=1, max_size=4000) | st.sampled_from(["&" * 4000, "<!channel>" * 300, "|" * 3000]))
def test_no_text_of_others_breaks_a_limit_of_slacks(words: str) -> None:
    view = proposal_view(spoilt(words))
    assert judge("slack", "views.open", {"trigger_id": "1.2.a", "view": view}) is None
    assert "<!channel>" not in json.dumps([b for b in view["blocks"] if b["type"] == "section"])


def test_the_form_that_asks_why_is_one_that_slack_takes() -> None:
    assert judge("slack", "views.open", {"trigger_id": "1.2.a", "view": reason_form("{}")}) is None


def test_components_have_a_line_each_with_how_their_copies_pack() -> None:
    why = Reason(Code.IDLE, "no request in 14.0 days")
    parts = tuple(ComponentFinding(f"model-{n}", 2, Finding.IDLE, why, needed=1) for n in range(12))
    found = recommendation(components=parts, packing=ComponentPacking(4, 2, 3, Decimal("100.00")))
    lines = component_lines(found)
    assert lines[0] == "the copies fit on 2 to 3 of 4 instances by what they reserve; $100 a month is reserved by none"
    assert lines[1] == "model-0: idle, no request in 14.0 days"
    assert lines[-1] == "and 2 more on the page"
    view = proposal_view(proposal(recommendation=found))
    assert "model-9" in json.dumps(view)
    assert judge("slack", "views.open", {"trigger_id": "1.2.a", "view": view}) is None
    page = str(details_page(proposal(recommendation=found)))
    assert "Inference components" in page
    assert "2 (1 needed)" in page


def test_names_of_figures_begin_with_a_capital_and_units_keep_their_letters() -> None:
    assert [as_title(name) for name in ("peak rate planned", "vCPU needed", "GPU memory", "late requests")] == [
        "Peak rate planned",
        "vCPU needed",
        "GPU memory",
        "Late requests",
    ]
