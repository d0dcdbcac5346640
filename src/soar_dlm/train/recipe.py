"""A training recipe: all settings of a run, read from a TOML file and checked before anything starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields, is_dataclass, replace
from math import inf
from pathlib import Path
from typing import Any, get_args, get_type_hints

from soar_dlm import checks, files
from soar_dlm.errors import SettingsError, UnknownName, shown
from soar_dlm.models.families import DREAM, DREAMON, LLADA, Family
from soar_dlm.search.catalogue import make_strategy

FAMILIES = {family.name: family for family in (LLADA, DREAM, DREAMON)}
PRECISIONS = ("float32", "bfloat16")
LOSSES = ("mean", "elbo")
MOST_PARAMETERS = 300_000_000
"""What one process on one device can be expected to train."""
MOST_STEPS = 1_000_000_000


def _shares(name: str, shares: Any) -> None:
    for source, share in checks.table(name, shares).items():
        checks.real_number(f"The share of {source!r} in {name}", share, 0, 1e9, open_low=True)


@dataclass(frozen=True)
class ModelRecipe:
    """The transformer.

    ``kv_heads`` defaults to ``heads``, ``inner`` to 8/3 of the width rounded up to a multiple of 32, ``rope_theta`` to
    that of the family's published models; small models for short texts learn positions faster with a smaller one.
    ``number_waves`` initialises the embeddings of number tokens from their values; see
    :mod:`soar_dlm.train.number_waves`.
    """

    family: str = "llada"
    width: int = 192
    layers: int = 6
    heads: int = 6
    kv_heads: int | None = None
    inner: int | None = None
    context: int = 512
    rope_theta: float | None = None
    number_waves: bool = False

    def __post_init__(self) -> None:
        checks.known_name("family", self.family, FAMILIES)
        for name, most in (("width", 65_536), ("layers", 1024), ("heads", 1024), ("context", 131_072)):
            checks.whole_number(f"model.{name}", getattr(self, name), 1, most)
        for name, most in (("kv_heads", 1024), ("inner", 262_144)):
            if getattr(self, name) is not None:
                checks.whole_number(f"model.{name}", getattr(self, name), 1, most)
        if self.rope_theta is not None:
            checks.real_number("model.rope_theta", self.rope_theta, 1, 1e12, open_low=True)
        checks.true_or_false("model.number_waves", self.number_waves)
        if self.width % (2 * self.heads):
            raise SettingsError(f"model.width {self.width} must be a multiple of twice model.heads {self.heads}.")
        if self.heads % (self.kv_heads or self.heads):
            raise SettingsError(f"model.heads {self.heads} must be a multiple of model.kv_heads {self.kv_heads}.")

    @property
    def layout(self) -> Family:
        return FAMILIES[self.family]

    @property
    def variable_length(self) -> bool:
        """Whether the model learns to expand and delete."""
        return self.layout is DREAMON


@dataclass(frozen=True)
class TokenizerRecipe:
    """At most ``vocabulary`` tokens, special tokens included, learned from the first ``texts`` examples."""

    vocabulary: int = 1280
    texts: int = 20_000

    def __post_init__(self) -> None:
        checks.whole_number("tokenizer.vocabulary", self.vocabulary, 270, 262_144)
        checks.whole_number("tokenizer.texts", self.texts, 1, 1_000_000)


@dataclass(frozen=True)
class DataRecipe:
    """Where examples come from, with their shares.

    ``tasks`` names tasks of the library; ``files`` names JSON-lines files with "prompt" and "answer", or only "text".
    ``full_canvas`` is the share of a task's answers that are filled with EOS to the task's whole canvas; the others
    get a canvas of random length, up to ``longest_canvas``.
    """

    tasks: Mapping[str, float] = field(default_factory=dict)
    files: Mapping[str, float] = field(default_factory=dict)
    full_canvas: float = 0.75
    longest_canvas: int = 128

    def __post_init__(self) -> None:
        _shares("data.tasks", self.tasks)
        _shares("data.files", self.files)
        if not self.tasks and not self.files:
            raise SettingsError("There is nothing to train on; set data.tasks or data.files, with their shares.")
        checks.real_number("data.full_canvas", self.full_canvas, 0, 1)
        checks.whole_number("data.longest_canvas", self.longest_canvas, 1, 131_072)


@dataclass(frozen=True)
class TrainingRecipe:
    """How the weights are found.

    ``loss`` is "mean" (cross-entropy averaged over all masked tokens of a batch) or "elbo" (each row's sum divided by
    its noise level and length, the likelihood bound). Learning rates rise over ``warmup`` steps, stay, and fall
    linearly to 0 over the last ``decay`` share of the steps. ``batch_tokens`` counts positions, prompts included.
    """

    steps: int = 1000
    batch_tokens: int = 8192
    muon_rate: float = 0.02
    adam_rate: float = 0.003
    weight_decay: float = 0.01
    momentum: float = 0.95
    warmup: int = 100
    decay: float = 0.4
    clip: float = 1.0
    loss: str = "mean"
    lowest_noise: float = 0.001
    precision: str = "bfloat16"
    compile: bool = False

    def __post_init__(self) -> None:
        checks.whole_number("training.steps", self.steps, 1, MOST_STEPS)
        checks.whole_number("training.batch_tokens", self.batch_tokens, 1, 16_777_216)
        checks.whole_number("training.warmup", self.warmup, 0, MOST_STEPS)
        for name in ("muon_rate", "adam_rate", "clip"):
            checks.real_number(f"training.{name}", getattr(self, name), 0, inf, open_low=True)
        for name in ("weight_decay", "momentum", "decay"):
            checks.real_number(f"training.{name}", getattr(self, name), 0, 1)
        checks.real_number("training.lowest_noise", self.lowest_noise, 0, 1, open_low=True)
        checks.true_or_false("training.compile", self.compile)
        checks.known_name("training.loss", self.loss, LOSSES)
        checks.known_name("training.precision", self.precision, PRECISIONS)


@dataclass(frozen=True)
class StageRecipe:
    """A stage after the first: ``steps`` more steps, with rates that fall to 0 from the share ``rate`` of their peak.

    ``tasks`` replaces the recipe's tasks and shares, if given. Later stages strengthen what the first left weak.
    """

    steps: int
    rate: float = 0.3
    tasks: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        checks.whole_number("stages.steps", self.steps, 1, MOST_STEPS)
        checks.real_number("stages.rate", self.rate, 0, 1, open_low=True)
        _shares("stages.tasks", self.tasks)


@dataclass(frozen=True)
class ReportRecipe:
    """What is reported: the loss every ``log`` steps, accuracy and a sample every ``validate`` steps.

    Validation decodes ``problems`` held-out problems of each task with ``strategy``. The state is saved every ``save``
    steps.
    """

    log: int = 10
    validate: int = 500
    problems: int = 64
    strategy: str = "adaptive"
    save: int = 250

    def __post_init__(self) -> None:
        for name in ("log", "validate", "save"):
            checks.whole_number(f"report.{name}", getattr(self, name), 1, MOST_STEPS)
        checks.whole_number("report.problems", self.problems, 1, 10_000)
        make_strategy(self.strategy)  # an unknown name must not wait for the first validation


@dataclass(frozen=True)
class Recipe:
    """The whole recipe. ``name``, ``about`` and ``license`` appear on the model card."""

    name: str
    about: str = ""
    license: str = "apache-2.0"
    seed: int = 0
    model: ModelRecipe = field(default_factory=ModelRecipe)
    tokenizer: TokenizerRecipe = field(default_factory=TokenizerRecipe)
    data: DataRecipe = field(default_factory=DataRecipe)
    training: TrainingRecipe = field(default_factory=TrainingRecipe)
    stages: tuple[StageRecipe, ...] = ()
    report: ReportRecipe = field(default_factory=ReportRecipe)

    def __post_init__(self) -> None:
        checks.whole_number("seed", self.seed, 0, 2**40)
        for name in ("name", "about", "license"):
            checks.string(name, getattr(self, name))
        if not self.name:
            raise SettingsError('A recipe needs a name, such as name = "my-model".')
        if self.parameters > MOST_PARAMETERS:
            raise SettingsError(
                f"This recipe makes a model of about {self.parameters:,} parameters; soar train takes up to "
                f"{MOST_PARAMETERS:,}. Lower model.width, model.layers or tokenizer.vocabulary."
            )

    @property
    def parameters(self) -> int:
        """About how many parameters the model has."""
        model = self.model
        inner = model.inner or model.width * 8 // 3
        return model.width * (model.layers * (4 * model.width + 3 * inner) + 2 * self.tokenizer.vocabulary)

    @property
    def steps(self) -> int:
        """The steps of all stages."""
        return self.training.steps + sum(stage.steps for stage in self.stages)

    def stage_at(self, step: int) -> tuple[int, int]:
        """The stage of a step (both counted from 0), and the first step of that stage."""
        first, following = 0, self.training.steps
        for number, stage in enumerate(self.stages, start=1):
            if step < following:
                return number - 1, first
            first, following = following, following + stage.steps
        return len(self.stages), first

    def data_of(self, stage: int) -> DataRecipe:
        """Where the examples of a stage come from."""
        tasks = self.stages[stage - 1].tasks if stage else {}
        return replace(self.data, tasks=tasks) if tasks else self.data

    def as_dict(self) -> dict[str, Any]:
        """All settings as plain JSON values, defaults included."""
        return asdict(self) | {"stages": [asdict(stage) for stage in self.stages]}


def read_recipe(path: str | Path) -> Recipe:
    """The recipe in a TOML file; unknown names and impossible values are refused. Paths are relative to the file."""
    file = Path(path)
    content = files.read_toml(file, "the recipe")
    named = content.get("data", {}).get("files") if isinstance(content.get("data"), dict) else None
    if isinstance(named, dict):
        content["data"]["files"] = {str(file.parent / name): share for name, share in named.items()}
    recipe: Recipe = _built(Recipe, content, "")
    return recipe


def _built(kind: Any, values: Any, where: str) -> Any:
    """A dataclass from a table, and the dataclasses inside it from the tables inside."""
    if not isinstance(values, Mapping):
        raise SettingsError(f"{where.rstrip('.') or 'The recipe'} must be a table of settings, not {shown(values)}.")
    known = {entry.name: entry for entry in fields(kind)}
    for name in values:
        if name not in known:
            raise UnknownName("setting of a recipe called", f"{where}{name}", [f"{where}{entry}" for entry in known])
    missing = [
        name
        for name, entry in known.items()
        if entry.default is MISSING and entry.default_factory is MISSING and name not in values
    ]
    if missing:
        raise SettingsError(f"The recipe lacks {', '.join(where + name for name in missing)}.")
    types = get_type_hints(kind)
    return kind(**{name: _value(types[name], value, f"{where}{name}.") for name, value in values.items()})


def _value(kind: Any, value: Any, where: str) -> Any:
    """A setting as it is, a table as its dataclass, a list of tables as a tuple of dataclasses."""
    if is_dataclass(kind):
        return _built(kind, value, where)
    inner = next((part for part in get_args(kind) if is_dataclass(part)), None)
    if inner is None:
        return value
    if not isinstance(value, list):
        raise SettingsError(f"{where.rstrip('.')} must be a list of tables, each under [[{where.rstrip('.')}]].")
    return tuple(_built(inner, entry, where) for entry in value)
