"""Well-known models: architectures of language models and encoders, and networks by the operations of one request.

The figures are those of the public `config.json` of each model; models.csv names the page. A parameter count is
computed from the configuration and held against the published one by a test. Vision, speech and diffusion models
stand in networks.csv with their published parameters, and their operations where those are published.
"""

import csv
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
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


@dataclass(frozen=True, slots=True)
class Network:
    """A model without an entry among the architectures, by published figures."""

    name: str
    kind: str
    """``vision``, ``deep-learning`` for speech and diffusion, or ``llm`` where only the size is kept."""
    parameters: float
    active: float | None
    """Parameters that one token passes in a mixture of experts; None for a dense model."""
    gflop: float | None
    """Operations of one item in units of 10^9; a multiplication and an addition are two. None where not published."""
    item: str
    """What one item is, such as an image of 224 x 224."""
    url: str
    precision: str = ""
    """The precision in which the weights are published where it is none of 16 bits, such as ``fp8``; else empty."""


@cache
def networks() -> Mapping[str, Network]:
    """The known networks by name."""
    return {
        row["name"]: Network(
            row["name"],
            row["kind"],
            float(row["parameters"]),
            float(row["active"]) if row["active"] else None,
            float(row["gflop"]) if row["gflop"] else None,
            row["item"],
            row["url"],
            row["precision"],
        )
        for row in _rows("networks.csv")
    }


@cache
def _networks_as_compared() -> Mapping[str, Network]:
    """The known networks by the letters, figures and points of their names."""
    return {_bare(key): network for key, network in networks().items()}


@lru_cache(64)
def find_network(name: str) -> Network | None:
    """The network that a name means, also as ``microsoft/resnet-50`` or ``resnet50``; else None."""
    known = _networks_as_compared()
    return next((known[plain] for each in _shorter(name) if (plain := _bare(each)) in known), None)


@dataclass(frozen=True, slots=True)
class Algorithm:
    """A small network that an algorithm of SageMaker trains, and the processor that its page names first (rule C12)."""

    trains_on_cpu: bool
    answers_on_cpu: bool


ALGORITHMS: Mapping[str, Algorithm] = {
    "deepar": Algorithm(trains_on_cpu=True, answers_on_cpu=True),
    "blazingtext": Algorithm(trains_on_cpu=True, answers_on_cpu=True),
    "objectvec": Algorithm(trains_on_cpu=True, answers_on_cpu=False),
    "ntm": Algorithm(trains_on_cpu=False, answers_on_cpu=True),
    "ipinsights": Algorithm(trains_on_cpu=False, answers_on_cpu=True),
    "autogluon": Algorithm(trains_on_cpu=False, answers_on_cpu=True),
    "autogluontabular": Algorithm(trains_on_cpu=False, answers_on_cpu=True),
    "tabtransformer": Algorithm(trains_on_cpu=False, answers_on_cpu=True),
    "seqseq": Algorithm(trains_on_cpu=False, answers_on_cpu=False),
}
"""Algorithms by their name in small letters only."""


def find_algorithm(framework: str) -> Algorithm | None:
    """The algorithm that a framework names, also as ``DeepAR`` or ``object2vec``; else None."""
    return ALGORITHMS.get(re.sub(r"[^a-z]", "", framework.lower()))


CLOSED = re.compile(
    r"(openai[/ ])?(gpt|chatgpt)[- ]?(3\.5|4|5)|o[134]-|(anthropic[/. ])?claude|(google[/ ])?gemini[- ]|amazon[./ ]nova"
)
"""Beginnings of names of models whose weights nobody can have."""


def is_closed(name: str) -> bool:
    """Whether the name is that of a model that only its vendor serves."""
    return CLOSED.match(name.strip().lower()) is not None


def size_in_name(name: str) -> float | None:
    """Parameters that a name tells, as ``falcon-40b`` and ``GPT-Neo-2.7B`` do; None where it tells none for certain.

    ``8x7b`` counts as eight times seven, an upper bound. ``17B-16E`` tells only the parameters of one token's experts.
    """
    plain = name.lower().rsplit("/", 1)[-1].replace("_", "-")
    if re.search(r"\d[bm]-\d+e\b", plain):
        return None
    found = re.search(r"(?<![a-z0-9.])(?:(\d+)x)?(\d+(?:\.\d+)?)([bm])(?![a-z0-9])", plain)
    if found is None:
        return None
    size = float(found[1] or 1) * float(found[2]) * (1e9 if found[3] == "b" else 1e6)
    return size if 1e6 <= size <= 1e14 else None


def active_in_name(name: str) -> float | None:
    """Parameters of one token's experts that a name tells, as ``30B-A3B`` and ``17B-16E`` do; else None."""
    plain = name.lower().rsplit("/", 1)[-1].replace("_", "-")
    found = re.search(r"\d[bm]?-a(\d+(?:\.\d+)?)b(?![a-z0-9])|(?<![a-z0-9.])(\d+(?:\.\d+)?)b-\d+e(?![a-z0-9])", plain)
    return float(found[1] or found[2]) * 1e9 if found else None


def names_a_mixture(name: str) -> bool:
    """Whether the name tells that the model is a mixture of experts."""
    plain = name.lower().rsplit("/", 1)[-1]
    return active_in_name(name) is not None or bool(
        re.search(r"(?<![a-z0-9])\d+x\d+(?:\.\d+)?b|(?<![a-z])moe(?![a-z])", plain)
    )


PRECISIONS = (
    ("fp8", r"fp8|f8"),
    ("int4", r"awq|gptq|int4|4-?bits?|nf4|mxfp4|nvfp4|w4a16|q4(-[a-z0-9-]*)?"),
    ("int8", r"int8|8-?bits?|w8a8|q8(-0)?"),
    ("bf16", r"bf16"),
    ("fp16", r"fp16"),
    ("", r"bnb|gguf|ggml|dynamic|quantized(-[a-z0-9.-]+)?"),
)
"""Precisions, and how names of repositories write them; the last ones tell no precision."""
VARIANTS = r"instruct|chat|hf|it|uncased|cased|v0\.[1-3]|v1\.0|4k|8k|128k|preview|base|\d{4}|finetuned-.*|ft-.*|sft"
"""What may follow the name of a model and change neither its architecture nor its size."""
ENDING = re.compile(rf"-({'|'.join(form for _, form in PRECISIONS)}|{VARIANTS})$")


def precision_in_name(name: str) -> str:
    """The precision that the name of a repository tells, as ``-AWQ`` and ``-FP8`` do; empty where it tells none."""
    plain = _last(name)
    return next((word for word, form in PRECISIONS if word and re.search(rf"-({form})(-|$)", plain)), "")


def _last(name: str) -> str:
    """The repository's last part in small letters, with hyphens between its words."""
    return re.sub(r"[_\s]+|(?<=quantized)\.", "-", name.strip().lower().rsplit("/", 1)[-1])


def _shorter(name: str) -> Iterator[str]:
    """The name as it is, then without one word after another that changes neither architecture nor size."""
    plain = _last(name).removeprefix("meta-").removeprefix("openai-")
    while plain:
        yield plain
        rest = ENDING.sub("", plain)
        plain = rest if rest != plain else ""


def _bare(name: str) -> str:
    """The name as it is compared: small letters, figures and points only."""
    return re.sub(r"[^a-z0-9.]", "", name.lower())


@cache
def architectures() -> Mapping[str, Architecture]:
    """The known architectures by name."""
    return {architecture.name: architecture for architecture in _read()}


@lru_cache(64)
def find_architecture(name: str) -> Architecture | None:
    """The architecture that a name means, also a repository as ``meta-llama/Llama-3.1-8B-Instruct``; else None."""
    known = architectures()
    return next((known[each] for short in _shorter(name) if (each := SAME_AS.get(short, short)) in known), None)


SAME_AS: Mapping[str, str] = {
    "llama-3.1-8b": "llama-3-8b",
    "llama-3.1-70b": "llama-3-70b",
    "llama-3.3-70b": "llama-3-70b",
    "llama-2-7b": "llama-2-7b",
    "phi-3-mini-4k": "phi-3-mini",
    "mistral-7b-v0.1": "mistral-7b",
    "mistral-small-24b-2501": "mistral-small-24b",
    "codellama-7b": "llama-2-7b",
    "codellama-13b": "llama-2-13b",
    "deepseek-r1-distill-llama-8b": "llama-3-8b",
    "deepseek-r1-distill-llama-70b": "llama-3-70b",
    "deepseek-r1-distill-qwen-7b": "qwen2.5-7b",
    "deepseek-r1-distill-qwen-14b": "qwen2.5-14b",
    "deepseek-r1-distill-qwen-32b": "qwen2.5-32b",
    "bert": "bert-base",
    "distilbert": "distilbert-base",
    "roberta": "roberta-base",
    "minilm": "all-minilm-l6-v2",
    "bge-large": "bge-large-en-v1.5",
    "bge-large-en": "bge-large-en-v1.5",
    "bge-base": "bert-base",
    "bge-base-en": "bert-base",
    "bge-base-en-v1.5": "bert-base",
    "e5-base-v2": "bert-base",
    "gte-base": "bert-base",
    "e5-large-v2": "bert-large",
    "gte-large": "bert-large",
    "uae-large-v1": "bert-large",
    "mxbai-embed-large-v1": "bert-large",
    "bge-m3": "xlm-roberta-large",
    "bge-reranker-large": "xlm-roberta-large",
    "bge-reranker-v2-m3": "xlm-roberta-large",
    "multilingual-e5-large": "xlm-roberta-large",
    "bge-reranker": "xlm-roberta-base",
    "multilingual-e5": "xlm-roberta-base",
    "llamaguard-7b": "llama-2-7b",
    "llama-guard-3-8b": "llama-3-8b",
    "qwq-32b": "qwen2.5-32b",
}
"""Names that mean an architecture of the table."""


def estimated_architecture(parameters: float, active: float | None = None) -> Architecture:
    """A decoder of about so many parameters, scaled from the nearest known dense one; the name says which.

    A mixture of experts has the layers of a dense model of its `active` parameters, and as many experts as fill it.
    """
    used = active if active is not None and active < parameters else parameters
    dense = [
        architecture
        for architecture in architectures().values()
        if architecture.experts == 1 and architecture.kind == "llm" and architecture.gated
    ]
    near = min(dense, key=lambda architecture: abs(math.log(used / architecture.parameters)))
    layers = max(1, round(near.layers * (used / near.parameters)))
    made = replace(near, name=f"estimated from {near.name}", layers=layers, published_parameters=0)
    if used == parameters:
        return made
    expert = layers * made.feed_forward * made.hidden * 3
    experts = 1 + max(1, round((parameters - made.parameters) / expert))
    return replace(made, name=f"{made.name} with {experts} experts", experts=experts)


def _read() -> Iterable[Architecture]:
    for row in _rows("models.csv"):
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


def _rows(name: str) -> Iterator[dict[str, str]]:
    with resources.files(__package__).joinpath(name).open(encoding="utf-8") as file:
        yield from csv.DictReader(file)
