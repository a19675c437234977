"""Whether a start brings the code and the models that ran before the stop; differences as sentences for people."""

import json
from collections.abc import Mapping

from rightsizer.domain.hours_record import EndpointBefore, ModelBefore
from rightsizer.domain.live_state import EndpointSight


def code_differences(before: EndpointBefore, endpoint: EndpointSight) -> tuple[str, ...]:
    """Sentences about images that mean other code than before the stop; empty where the code is the same."""
    was = dict(before.images)
    pairs = dict.fromkeys(pair for variant in endpoint.variants for pair in variant.resolved_images)
    return tuple(
        f"the image {name} was {was[name]} before it was stopped, and is {now} since it was created again"
        for name, now in pairs
        if name in was and was[name] != now
    )


def model_problem(before: EndpointBefore, now: Mapping[str, ModelBefore]) -> str:
    """A sentence about the first of its models that is gone or was made anew; empty where none is."""
    for was in before.models:
        model = now.get(was.name)
        if model is None:
            return f"model {was.name} was deleted while it was stopped"
        if _content(model) != _content(was):
            return f"model {was.name} was made anew with other content while it was stopped"
    return ""


def data_differences(before: EndpointBefore, now: Mapping[str, ModelBefore]) -> tuple[str, ...]:
    """Sentences about model data that was written while it was stopped; what could not be listed says nothing."""
    pairs = ((was, now.get(was.name)) for was in before.models)
    return tuple(
        f"the model data of {was.name} was written while it was stopped, and it serves the new one since"
        for was, model in pairs
        if model is not None and was.data and model.data and was.data != model.data
    )


def _content(model: ModelBefore) -> str:
    return json.dumps(model.body, sort_keys=True, default=str)
