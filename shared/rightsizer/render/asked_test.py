"""A shadow test that is offered before a change, as people read it: what it costs, lasts and tells, and the choice."""

from rightsizer.domain.older_option import with_older_facts
from rightsizer.domain.option import Option
from rightsizer.domain.plan import order_command
from rightsizer.domain.proposal import Proposal
from rightsizer.domain.recommendation import Recommendation
from rightsizer.render import effects, sentences

TWICE = "each request is served twice meanwhile"
CARE = "Do not run it where a request writes, bills or sends something."
"""What only the owner can know, and has to be said before they allow it."""
FOLLOWS = "Where it proves well, the change follows."


def offer_text(recommendation: Recommendation) -> str:
    """The offered test in one sentence: length, cost, what it tells and does. Empty where none is offered."""
    option = recommendation.chosen_option
    if option is None or not recommendation.offers_test:
        return ""
    text = f"; it tells {option.test_tells}" if option.test_tells else ""
    return f"{_length(option)}{text}; {TWICE}, and {effects.TEST_DEPLOYS}"


def _length(option: Option) -> str:
    """``2 h on ml.g5.xlarge for about $9.10``; the cost only where it was stored."""
    hours = with_older_facts(option).test_hours
    lasts = f"{hours:g} h on" if hours is not None else "on"
    cost = f" for about {sentences.money(option.test_usd)}" if option.test_usd else ""
    return f"{lasts} {option.target.instance_type}{cost}"


def risk_text(option: Option) -> str:
    """Performance risk and a lost zone: ``low (1 of 4) after the test, high (3 of 4) without it``."""
    text, zone = sentences.risk(option.performance_risk), ", and one Availability Zone in place of two"
    if option.untested_risk is not None and option.test_usd:
        text += f" after the test, {sentences.risk(option.untested_risk)} without it"
    return text + (zone if option.leaves_one_zone else "")


def test_confirmation(recommendation: Recommendation) -> str:
    """Text that a person confirms before a test is run."""
    option = recommendation.chosen_option
    done = f"{effects.TEST_DEPLOYS}, and {TWICE}"
    return f"{_length(option)}; {done}. {CARE} {FOLLOWS}" if option is not None else ""


def untested_warning(recommendation: Recommendation) -> str:
    """Warning before a change is approved without its test. Empty where none is offered."""
    option = recommendation.chosen_option
    if option is None or not recommendation.offers_test or option.untested_risk is None:
        return ""
    return f"Without the test the performance risk is {sentences.risk(option.untested_risk)}."


def commands(proposal: Proposal) -> list[tuple[str, str]]:
    """The commands that say yes, each with what it does. Empty where nobody may."""
    if not proposal.approvable:
        return []
    approve = order_command("approve", proposal.id, proposal.ref.region)
    if not proposal.recommendation.offers_test:
        return [(approve, "")]
    test = order_command("test", proposal.id, proposal.ref.region)
    found = [(test, "the shadow test first; where it proves well, the change follows")]
    if proposal.may_skip_test:
        option = proposal.recommendation.chosen_option
        risk = option.untested_risk if option is not None else None
        text = f", at performance risk {int(risk)} of 4" if risk is not None else ""
        found.append((approve, f"the change without the test{text}"))
    return found
