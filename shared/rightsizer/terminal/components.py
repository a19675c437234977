"""What a person may ask of an endpoint of inference components: a proposal, which waits for its approval."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Literal

import typer

from rightsizer import bootstrap
from rightsizer.domain.option import ScaleIn
from rightsizer.render import sentences
from rightsizer.terminal import document
from rightsizer.terminal import tables as show
from rightsizer.terminal.app import app, examples, print_json
from rightsizer.terminal.options import Given, order


class Strategy(StrEnum):
    """How instances are given back."""

    CONSOLIDATION = "consolidation"
    IDLE_RELEASE = "idle-release"


STRATEGIES: Mapping[Strategy, Literal["CONSOLIDATION", "IDLE_RELEASE"]] = {
    Strategy.CONSOLIDATION: "CONSOLIDATION",
    Strategy.IDLE_RELEASE: "IDLE_RELEASE",
}


class Placement(StrEnum):
    """How copies are placed on instances."""

    BINPACK = "binpack"
    SPREAD = "spread"


PLACEMENTS: Mapping[Placement, Literal["BINPACK", "SPREAD"]] = {
    Placement.BINPACK: "BINPACK",
    Placement.SPREAD: "SPREAD",
}


@app.command(
    epilog=examples(
        "rightsizer components chat --scale-in consolidation --cooldown 30",
        "rightsizer components chat --placement binpack --component summariser",
    )
)
@order
def components(
    given: Given,
    endpoint: Annotated[str, typer.Argument(metavar="ENDPOINT", help="Name of an endpoint with inference components.")],
    scale_in: Annotated[
        Strategy | None,
        typer.Option(
            "--scale-in", help="Move copies together to free instances, or give back only those that are empty."
        ),
    ] = None,
    placement: Annotated[
        Placement | None, typer.Option("--placement", help="Pack copies on few instances, or spread them.")
    ] = None,
    step: Annotated[int | None, typer.Option("--step", help="Instances to give back at a time, 1 to 100.")] = None,
    cooldown: Annotated[
        int | None, typer.Option("--cooldown", help="Minutes between two such steps, 5 to 1440.")
    ] = None,
    variant: Annotated[str, typer.Option("--variant", help="Which variant, where there are several.")] = "",
    component: Annotated[
        list[str] | None,
        typer.Option("--component", help="Only this component; repeat it for several. Without it, all."),
    ] = None,
) -> None:
    """Propose how inference components use their instances.

    Either how instances are given back (--scale-in) or where copies are placed (--placement). It is only proposed:
    nothing happens until somebody approves it.
    """
    at = given.desk()
    if (scale_in is None) is (placement is None):
        raise typer.BadParameter(
            "give either --scale-in or --placement, not both and not neither: a change does one of them"
        )
    if scale_in is not None:
        wanted = ScaleIn(variant or endpoint, STRATEGIES[scale_in], step, cooldown)
        made = at.asking.scale_in(endpoint, variant, wanted, at.who, bootstrap.now())
    if placement is not None:
        made = at.asking.placement(endpoint, PLACEMENTS[placement], component or (), at.who, bootstrap.now())
    option = made.recommendation.options[0]
    if given.as_json:
        row = {
            "id": made.id,
            "endpoint": endpoint,
            "state": made.state.value,
            "recommended": document.of_option(option),
        }
        print_json({"version": document.VERSION, "proposal": row})
        return
    show.say(f"Proposed: {endpoint} can {sentences.change(option)} ({made.id}). {option.not_checked[0].capitalize()}.")
    show.say(f"Nothing happens until somebody approves it: rightsizer approve {made.id}")
