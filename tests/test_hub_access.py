"""Checkpoints from the Hub: every access takes the same options, and no code is ever run."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
import transformers

from soar_dlm.errors import CheckpointError, SettingsError
from soar_dlm.lm import load
from soar_dlm.models import source
from soar_dlm.models.random_checkpoint import write_dream
from tests.checkpoints import edit_json
from tests.test_adapters import DREAM_MODULES, TARGETS, write_adapter


def cached(cache: Path, repository: str, revision: str, commit: str) -> Path:
    """Where huggingface_hub keeps the files of a revision."""
    folder = cache / f"models--{repository.replace('/', '--')}"
    (folder / "refs").mkdir(parents=True, exist_ok=True)
    (folder / "refs" / revision).write_text(commit)
    return folder / "snapshots" / commit


def test_a_model_comes_from_another_cache(tmp_path: Path) -> None:
    write_dream(cached(tmp_path, "someone/dream", "main", "a" * 40))
    lm = load("someone/dream", cache_dir=tmp_path, local_files_only=True, token="secret")
    assert lm.revision == "a" * 40
    assert lm.generate("hi", max_new_tokens=3).token_ids
    with pytest.raises(CheckpointError, match="Could not load 'someone/dream'"):
        load("someone/dream", local_files_only=True)
    with pytest.raises(SettingsError, match="local_files_only must be true or false"):
        load("someone/dream", local_files_only="yes")  # type: ignore[arg-type]


def test_an_adapter_and_its_base_come_from_the_hub_at_their_own_revisions(tmp_path: Path) -> None:
    pytest.importorskip("peft")
    write_dream(cached(tmp_path, "someone/base", "main", "a" * 40), seed=1)
    second = write_dream(cached(tmp_path, "someone/base", "v2", "b" * 40), seed=2)
    folder = cached(tmp_path, "someone/adapter", "v7", "c" * 40)
    folder.parent.mkdir()
    write_adapter(folder, second, DREAM_MODULES, TARGETS["dream"])
    local = load(folder).generate("hi", max_new_tokens=5).token_ids
    edit_json(folder / "adapter_config.json", base_model_name_or_path="someone/base", revision="v2")
    lm = load("someone/adapter", cache_dir=tmp_path, revision="v7")
    assert lm.revision == "c" * 40
    assert lm.generate("hi", max_new_tokens=5).token_ids == local
    edit_json(folder / "adapter_config.json", revision=None)
    other = load("someone/adapter", cache_dir=tmp_path, revision="v7").generate("hi", max_new_tokens=5)
    assert other.token_ids != local, "without a revision of its own, the base is main"


def test_every_access_gets_the_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A private model needs its token for config, tokenizer, weights and decoding defaults alike."""
    write_dream(cached(tmp_path, "someone/dream", "v1", "a" * 40))
    given = {"token": "secret", "cache_dir": tmp_path, "local_files_only": True, "revision": "v1"}
    seen: dict[str, list[dict[str, Any]]] = {}

    def spy(owner: Any, attribute: str, label: str) -> None:
        real = getattr(owner, attribute)

        def spied(*args: Any, **options: Any) -> Any:
            seen.setdefault(label, []).append({name: options.get(name) for name in given})
            return real(*args, **options)

        monkeypatch.setattr(owner, attribute, spied)

    spy(source, "cached_file", "files")
    spy(transformers.PretrainedConfig, "get_config_dict", "config")
    spy(transformers.Qwen2ForCausalLM, "from_pretrained", "weights")
    spy(transformers.Qwen2Tokenizer, "from_pretrained", "tokenizer")
    load("someone/dream", **given)  # type: ignore[arg-type]
    assert seen.keys() == {"files", "config", "weights", "tokenizer"}
    for label, accesses in seen.items():
        assert all(access == given for access in accesses), label


def test_remote_code_is_not_needed(tmp_path: Path) -> None:
    folder = write_dream(tmp_path)
    with pytest.warns(UserWarning, match="trust_remote_code is not needed") as caught:
        load(folder, trust_remote_code=True)
    assert caught[0].filename == __file__, "the warning points at the caller"
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        load(folder, trust_remote_code=False)
