"""The parts that read files: ``loading``, ``presets``, ``recipes``, ``results``; and ``lines`` of JSON."""

from __future__ import annotations

import json
import os
from pathlib import Path

import soar_dlm as soar
from benchmarks.malformed.chooser import Chooser
from benchmarks.malformed.damage import damage_bytes, damage_json, damage_line
from benchmarks.malformed.room import MODEL, Case, NotSoar, Room, command, refused
from soar_dlm.presets import read_preset

INDEX = "model.safetensors.index.json"
ELSEWHERE = (
    "evil.bin",
    "../llada/model.safetensors",
    "/etc/passwd",
    "link.safetensors",
    "",
    ".safetensors",
    "sub/x.safetensors",
)


def loading(choose: Chooser, room: Room) -> Case:
    """A checkpoint with one damaged file, loaded and, where that succeeds, asked for two tokens."""
    folder = room.fresh(choose.pick((room.llada_files, room.dreamon_files, room.sharded_files)))
    file = choose.pick(sorted(path for path in folder.iterdir()))
    if choose.number(0, 2) == 0:
        file = folder / "config.json"
    if file.name == INDEX and choose.number(0, 1):
        done = _index_elsewhere(choose, folder)
    elif file.suffix == ".json" and choose.number(0, 3):
        done = damage_json(choose, file)
    else:
        done = damage_bytes(choose, file)

    def run() -> None:
        soar.load(folder, device="cpu").generate("ab", max_new_tokens=2)

    return Case(f"load {folder.name} with {file.name}: {done}", run)


def _index_elsewhere(choose: Chooser, folder: Path) -> str:
    """An index that names a file it must not name."""
    os.symlink("/etc/passwd", folder / "link.safetensors")
    (folder / "evil.bin").write_bytes(b"\x80\x04cos\nsystem\n")
    content = json.loads((folder / INDEX).read_text())
    name, weight = choose.pick(ELSEWHERE), choose.pick(sorted(content["weight_map"]))
    content["weight_map"][weight] = name
    (folder / INDEX).write_text(json.dumps(content))
    return f"{weight} in {name!r}"


def _toml(choose: Chooser, path: Path) -> str:
    """Damage a TOML file: a value of one of its lines, a line, or its bytes."""
    lines = path.read_text().splitlines()
    kind = choose.number(0, 3)
    if kind == 0:
        return damage_bytes(choose, path)
    at = choose.number(0, len(lines) - 1)
    if kind == 1 or "=" not in lines[at]:
        lines[at] = choose.pick(("", "x = 1", "[model]", "[[stages]]", "a = [", "strategy = []", lines[at] * 2, "é=1"))
    else:
        key = lines[at].partition("=")[0].strip()
        lines[at] = f"{key} = {choose.pick(TOML_VALUES)}"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return f"line {at}: {lines[at][:80]}"


TOML_VALUES = (
    *("true", "0", "-1", "1", "3", "2.5", "nan", "inf", "-inf", "1e-46", "1e308", "9223372036854775807", "1000000000"),
    *('""', '"x"', '"llada"', '"soar"', "[]", "[1]", '["x"]', "[[]]", "{}", "{a = 1}", "1979-05-27", "07:32:00"),
    *('"[/x]"', '"../x"', '"' + "a" * 5000 + '"', "[" * 5000 + "]" * 5000, "9" * 5000, '"\\ud800"', '"mini-sums"'),
)


def presets(choose: Chooser, room: Room) -> Case:
    path = room.fresh(room.preset)
    done = _toml(choose, path)
    if choose.number(0, 1):
        return Case(f"read_preset with {done}", lambda: read_preset(path))
    args = ("generate", "-m", MODEL, "-n", "2", "--device", "cpu", "x", "--preset", str(path))
    return Case(f"generate --preset with {done}", lambda: refused(command(*args)))


def recipes(choose: Chooser, room: Room) -> Case:
    path = room.fresh(room.recipe)
    done = _toml(choose, path)
    args = ("train", str(path), "-o", str(path.parent / "model"), "--device", "cpu", "--dry-run")
    return Case(f"train --dry-run with {done}", lambda: refused(command(*args)))


def results(choose: Chooser, room: Room) -> Case:
    """A damaged folder of results, read by every command that reads one."""
    swept = bool(choose.number(0, 1))
    folder = room.fresh(room.sweep if swept else room.results)
    file = choose.pick(("manifest.json", "results.jsonl"))
    damage = damage_bytes if choose.number(0, 3) == 0 else damage_json if file == "manifest.json" else damage_line
    done = damage(choose, folder / file)
    measured = ("-m", MODEL, "-t", "mini-sums", "--limit", "4", "--chunk", "2", "-n", "4", "--device", "cpu")
    ways: tuple[tuple[str, ...], ...] = (
        ("table", str(folder), "--format", choose.pick(("terminal", "markdown", "latex", "json"))),
        ("tune", str(folder), "-o", str(folder.parent / "tuned.toml")),
        ("sweep", *measured, "--thresholds", "0.8,0.9", "-o", str(folder)),
        ("eval", *measured, "-s", "greedy,soar", "-o", str(folder.parent)),
    )
    args = choose.pick(ways)
    return Case(f"{args[0]} of {'sweep' if swept else 'eval'} with {file}: {done}", lambda: refused(command(*args)))


def lines(choose: Chooser, room: Room) -> Case:
    """Damaged JSON lines: a record for each line, all of it strict JSON."""
    path = room.fresh(room.lines)
    done = damage_bytes(choose, path) if choose.number(0, 2) == 0 else damage_line(choose, path)
    output = path.parent / "out.jsonl"
    trace = ("--trace", str(path.parent / "trace.jsonl")) if choose.number(0, 3) == 0 else ()
    args = ("generate", "-m", MODEL, "-n", "2", "--device", "cpu", "-i", str(path), "-o", str(output), *trace)

    def run() -> None:
        code = command(*args)
        for line in output.read_bytes().decode("utf-8").split("\n") if output.exists() else ():
            if line:
                json.loads(line, parse_constant=_no_constants)
        refused(code)

    return Case(f"generate -i with {done}", run)


def _no_constants(name: str) -> None:
    raise NotSoar(f"the output has {name}, which is not JSON")
