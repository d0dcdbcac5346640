"""The training loop: a generator of events, for others to show, log or ignore."""

from __future__ import annotations

import platform
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import count, islice
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer
from torch import Tensor, nn

from soar_dlm import files
from soar_dlm.errors import NonFiniteLogits, SettingsError
from soar_dlm.models.layouts import Shape, layout_config
from soar_dlm.models.loading import usable_device
from soar_dlm.models.masked_lm import output_column
from soar_dlm.models.stock import new_model
from soar_dlm.train.batches import Batch, Batches, Position
from soar_dlm.train.examples import Examples
from soar_dlm.train.folder import RunFolder
from soar_dlm.train.model_card import write_card
from soar_dlm.train.number_waves import write_waves
from soar_dlm.train.objective import Hidden, already_hidden, hide, masked_loss
from soar_dlm.train.optimizer import Optimizers, rate_share
from soar_dlm.train.recipe import Recipe
from soar_dlm.train.tokenizer import train_tokenizer
from soar_dlm.train.validation import Validation, check_fits, log_entry, validate


@dataclass(frozen=True)
class Progress:
    """One step: the ``loss`` of its batch, the positions it read (``tokens``) and the ``seconds`` it took."""

    step: int
    loss: float
    tokens: int
    seconds: float


class Trainer:
    """One run of a recipe in a folder.

    1. The tokenizer is learned from the first examples, or read back if the run resumes.
    2. Each step draws the next batch, hides part of its answers, and updates the weights.
    3. What is random in a step depends only on the seed and the step's number: a run that was killed resumes from its
       last saved state and reaches the same losses and weights as one that never stopped.
    4. At every validation the checkpoint is written, loaded with :func:`soar_dlm.load` and decoded: what is measured is
       what users get.
    """

    def __init__(self, recipe: Recipe, folder: str | Path, *, device: str | torch.device | None = None) -> None:
        """Read back the run in the folder, if there is one; only :meth:`run` writes."""
        self.recipe, self.folder = recipe, RunFolder(Path(folder))
        self.device = usable_device(device)
        self.folder.check(recipe)
        self.examples = [Examples(recipe.data_of(stage), recipe.seed) for stage in range(len(recipe.stages) + 1)]
        self.tokenizer = self.folder.tokenizer() or self._new_tokenizer()
        self.config = layout_config(recipe.model.layout, self._shape(), self.tokenizer.get_vocab())
        self.model = new_model(recipe.model.layout, self.config, recipe.seed)
        if recipe.model.number_waves:
            write_waves(self.model.model.embed_tokens.weight.data, self.tokenizer)
        self.model.to(self.device)
        self.model.train()
        self.optimizers = Optimizers(self.model, recipe.training)
        self.step, self._position = 0, Position()
        self._recent: list[float] = []  # losses since the last line of the log
        self._backbone = torch.compile(self.model.model, dynamic=True) if recipe.training.compile else self.model.model
        self._restore()

    def _new_tokenizer(self) -> Tokenizer:
        examples = (example for pool in count() for example in self.examples[0].pool(pool))
        first = islice(examples, self.recipe.tokenizer.texts)
        texts = (example.prompt + example.answer + example.suffix for example in first)
        fresh = train_tokenizer(texts, self.recipe.model.layout, self.recipe.tokenizer.vocabulary)
        return Tokenizer.from_str(fresh.to_str())  # as it will be read back

    def _shape(self) -> Shape:
        model = self.recipe.model
        return Shape(
            vocabulary=self.tokenizer.get_vocab_size(),
            width=model.width,
            layers=model.layers,
            heads=model.heads,
            kv_heads=model.kv_heads or model.heads,
            inner=model.inner or -(-model.width * 8 // 3 // 32) * 32,
            context=model.context,
            rope_theta=model.rope_theta,
        )

    @property
    def parameters(self) -> int:
        return sum(weight.numel() for weight in self.model.parameters())

    def check(self) -> None:
        """Refuse what would stop the run later: data or held-out problems that do not fit into the model's context."""
        for stage in range(self.recipe.stage_at(self.step)[0], len(self.examples)):
            self._batches(stage).check()
        check_fits(self.recipe, self.tokenizer)

    def run(self, until: int | None = None) -> Iterator[Progress | Validation]:
        """Train to the recipe's last step, or to an earlier one with the schedule unchanged.

        Meanwhile no other process may use the folder.
        """
        with files.made_folder(self.folder.training), files.locked(self.folder.path):
            if self.folder.stamp() != self._stamp:
                raise SettingsError(f"Another run has meanwhile trained in {str(self.folder.path)!r}; start again.")
            self.folder.prepare(self.recipe)
            files.write_text(self.folder.tokenizer_file, self.tokenizer.to_str(pretty=True))
            self.folder.cut_log(self.step)
            if self.step == 0:
                self.folder.append_log(self._header())
            yield from self._steps(min(until or self.recipe.steps, self.recipe.steps))

    def _steps(self, last: int) -> Iterator[Progress | Validation]:
        report = self.recipe.report
        stream = self._stream()
        while self.step < last:
            started = time.perf_counter()
            if self.step and self.recipe.stage_at(self.step)[1] == self.step:
                self._position = Position(self._position.pool + 1)
                stream = self._stream()
            self._position, batch = next(stream)
            loss = self._train_on(batch)
            self.step += 1
            self._recent.append(loss)
            yield Progress(self.step, loss, batch.ids.numel(), time.perf_counter() - started)
            if self.step % report.log == 0:
                mean = sum(self._recent) / len(self._recent)
                self.folder.append_log({"step": self.step, "loss": round(mean, 6)})
                self._recent.clear()
            if self.step % report.validate == 0 or self.step == last:
                yield self._validate()
            if self.step % report.save == 0 or self.step == last:
                self._save()
        self.write()

    def _stream(self) -> Iterator[tuple[Position, Batch]]:
        """The batches of the current stage, from the current position on."""
        return self._batches(self.recipe.stage_at(self.step)[0]).stream(self._position)

    def _batches(self, stage: int) -> Batches:
        return Batches(
            self.examples[stage],
            self.tokenizer,
            self.config["eos_token_id"],
            self.recipe.training.batch_tokens,
            self.recipe.model.context,
            self.tokenizer.token_to_id("<|expand|>") if self.recipe.model.variable_length else None,
            self.config.get("bos_token_id"),
        )

    def _train_on(self, batch: Batch) -> float:
        training = self.recipe.training
        mask_id = self.config["mask_token_id"]
        if batch.hidden is not None:
            hidden = already_hidden(batch.ids, batch.canvas, batch.hidden, mask_id)
        else:
            generator = torch.Generator().manual_seed(self.recipe.seed * 1_000_003 + self.step)
            hidden = hide(batch.ids, batch.canvas, mask_id, training.lowest_noise, generator)
        hidden = hidden.to(self.device)
        with torch.autocast(self.device.type, torch.bfloat16, enabled=training.precision == "bfloat16"):
            loss = masked_loss(self._logits(hidden), hidden, training.loss)
        if not torch.isfinite(loss):
            raise NonFiniteLogits(
                f"The loss is {loss.item()} at step {self.step + 1}. Lower training.muon_rate and training.adam_rate; "
                "the last saved state remains."
            )
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self.model.parameters(), training.clip)
        self.optimizers.step(rate_share(self.step, self.recipe))
        return loss.item()

    def _logits(self, batch: Hidden) -> Tensor:
        """Logits at the hidden places only: [P, V]."""
        states = self._backbone(input_ids=batch.inputs).last_hidden_state
        column = output_column(batch.column, 0, self.recipe.model.layout.predicts_next)
        logits: Tensor = self.model.lm_head(states[batch.row, column])
        return logits

    def _validate(self) -> Validation:
        self.write()
        found = validate(self.folder.path, self.recipe, self.step, self.device)
        self.folder.append_log(log_entry(found))
        return found

    def write(self) -> None:
        """Write the checkpoint as it is now, with its card."""
        self.folder.write_checkpoint(self.recipe, self.config, self.model, self.tokenizer)
        write_card(self.folder, self.recipe, self.parameters, self.step)

    def _header(self) -> dict[str, Any]:
        return {
            "recipe": self.recipe.name,
            "seed": self.recipe.seed,
            "parameters": self.parameters,
            "vocabulary": self.tokenizer.get_vocab_size(),
            "torch": torch.__version__,
            "transformers": transformers.__version__,
            "python": platform.python_version(),
            "threads": torch.get_num_threads(),
            "device": str(self.device),
        }

    def _save(self) -> None:
        self.folder.save_state(
            {
                "step": self.step,
                "position": asdict(self._position),
                "recent": self._recent,
                "model": self.model.state_dict(),
                "optimizers": self.optimizers.state(),
            }
        )
        self._stamp = self.folder.stamp()

    def _restore(self) -> None:
        self._stamp = self.folder.stamp()
        state = self.folder.state()
        if state is None:
            return
        try:
            self.model.load_state_dict(state["model"])
            self.optimizers.restore(state["optimizers"])
            self.step, self._position = int(state["step"]), Position(**state["position"])
            self._recent = list(map(float, state["recent"]))
        except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
            raise self.folder.broken_state(error) from error
