"""Taking a silent variant out is said in words, and never carried out by the program."""

from rightsizer.dimensions.remove_variant import RemoveVariant
from rightsizer.domain.option import OptionKind
from rightsizer.render import effects, sentences
from tests.samples import option

REMOVED = option(kind=OptionKind.REMOVE_VARIANT, in_place=False)


def test_its_owner_does_it_and_undoes_it() -> None:
    assert RemoveVariant.applies_to == frozenset()
    assert sentences.change(REMOVED) == "be taken out of the endpoint by its owner"
    assert effects.rollback_text(REMOVED) == "can be rolled back by its owner, who deploys the old configuration again"


def test_a_deployment_without_it_starts_the_other_variants_anew() -> None:
    assert effects.restart_text(REMOVED) == "the model starts on new instances"
    assert not RemoveVariant().is_watched(OptionKind.REMOVE_VARIANT)
