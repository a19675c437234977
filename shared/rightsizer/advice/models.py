"""Architectures of well-known models, and the counts that follow from a configuration.

The figures are those of the public `config.json` of each model; models.csv names the page. A parameter count is
computed from the configuration and held against the published one by a test.
"""

import csv
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources

from rightsizer.domain.checks import not_empty
from rightsizer.errors import InputError


@dataclass(frozen=True, slots=True)
class Architecture:
    """Dimensions of a transformer. Encoders have no KV cache in serving; their `kind` is ``transformer``."""

    name: str
    kind: str
    """``llm`` for a decoder that generates tokens, ``transformer`` for an encoder."""
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    """Heads of keys and values; fewer than `heads` with grouped-query attention."""
    head_dim: int
    feed_forward: int
    vocabulary: int
    experts: int = 1
    experts_used: int = 1
    """Experts that one token passes; equal to `experts` in a dense model."""
    gated: bool = True
    """Whether the feed-forward block has three matrices (SwiGLU) in place of two."""
    tied: bool = False
    """Whether the output matrix is the embedding."""
    bias: bool = False
    """Whether query, key and value projections carry a bias."""
    published_parameters: int = 0
    """0 where the architecture is an estimate from a parameter count."""
    url: str = ""

    def __post_init__(self) -> None:
        not_empty("Architecture.name", self.name)
        for field in ("layers", "hidden", "heads", "kv_heads", "head_dim", "feed_forward", "vocabulary"):
            if getattr(self, field) < 1:
                raise InputError(f"Architecture.{field} of {self.name} must be at least 1, got {getattr(self, field)}")

    @property
    def parameters(self) -> int:
        """Weights in all: matrices, norms and embeddings; position tables of old models are left out."""
        return self._count(self.experts)

    @property
    def parameters_used(self) -> int:
        """Weights that one token passes: fewer than `parameters` in a mixture of experts."""
        return self._count(self.experts_used)

    @property
    def embedding_parameters(self) -> int:
        """Weights of the embedding and of an output matrix of its own."""
        return self.vocabulary * self.hidden * (1 if self.tied else 2)

    def _count(self, experts: int) -> int:
        attention = self.hidden * self.head_dim * 2 * (self.heads + self.kv_heads)
        feed = experts * self.feed_forward * self.hidden * (3 if self.gated else 2)
        router = self.hidden * self.experts if self.experts > 1 else 0
        bias = self.head_dim * (self.heads + 2 * self.kv_heads) if self.bias else 0
        layer = attention + feed + router + bias + 2 * self.hidden
        return self.layers * layer + self.embedding_parameters + self.hidden


@cache
def architectures() -> Mapping[str, Architecture]:
    """The known architectures by name."""
    return {each.name: each for each in _read()}


def find_architecture(name: str) -> Architecture | None:
    """The architecture that a name means, also a repository as ``meta-llama/Llama-3.1-8B-Instruct``; else None."""
    plain = name.lower().rsplit("/", 1)[-1].removeprefix("meta-").replace("_", "-")
    for ending in (
        "-instruct",
        "-chat-hf",
        "-chat",
        "-hf",
        "-it",
        "-uncased",
        "-cased",
        "-v0.1",
        "-v0.2",
        "-v0.3",
        "-4k",
    ):
        plain = plain.removesuffix(ending).removesuffix("-instruct")
    return architectures().get(SAME_AS.get(plain, plain))


SAME_AS: Mapping[str, str] = {
    "llama-3.1-8b": "llama-3-8b",
    "llama-3.1-70b": "llama-3-70b",
    "llama-3.3-70b": "llama-3-70b",
    "llama-2-7b": "llama-2-7b",
    "phi-3-mini-4k": "phi-3-mini",
    "bert": "bert-base",
}
"""Names that mean an architecture of the table."""


def estimated_architecture(parameters: float) -> Architecture:
    """A decoder of about so many parameters, scaled from the nearest known dense one; the name says which."""
    dense = [each for each in architectures().values() if each.experts == 1 and each.kind == "llm" and each.gated]
    near = min(dense, key=lambda each: abs(math.log(parameters / each.parameters)))
    layers = max(1, round(near.layers * (parameters / near.parameters)))
    name = f"estimated from {near.name}"
    return replace(near, name=name, layers=layers, published_parameters=0)


def _read() -> Iterable[Architecture]:
    with resources.files(__package__).joinpath("models.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            yield Architecture(
                name=row["name"],
                kind=row["kind"],
                layers=int(row["layers"]),
                hidden=int(row["hidden"]),
                heads=int(row["heads"]),
                kv_heads=int(row["kv_heads"]),
                head_dim=int(row["head_dim"]),
                feed_forward=int(row["feed_forward"]),
                vocabulary=int(row["vocabulary"]),
                experts=int(row["experts"]),
                experts_used=int(row["experts_used"]),
                gated=row["gated"] == "1",
                tied=row["tied"] == "1",
                bias=row["bias"] == "1",
                published_parameters=int(row["published_parameters"]),
                url=row["url"],
            )
