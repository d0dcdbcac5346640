"""Damage to valid files: to their bytes, to the values in them, to what they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.malformed.chooser import JSON_STRANGE, Chooser

BYTES = (b"", b"\xff\xfe\x00", b"\xef\xbb\xbf{}", b"null", b"[]", b"{", b"\0" * 64, b"NaN", b"1" * 5000, b"[" * 5000)
ADDED = ("x", "", "transformers_weights", "auto_map", "num_labels", "quantization_config", "_attn_implementation")
NESTED = (b'{"a":' * 5000 + b"1" + b"}" * 5000, b"[" * 5000 + b"]" * 5000)


def damage_bytes(choose: Chooser, path: Path) -> str:
    """Change a file as disks, editors and downloads do; says what was done."""
    content = path.read_bytes()
    kind = choose.pick(("cut", "flip", "insert", "replace", "repeat", "gone", "folder", "nested"))
    at = choose.number(0, max(len(content) - 1, 0))
    if kind == "cut":
        path.write_bytes(content[:at])
    elif kind == "flip":
        path.write_bytes(content[:at] + bytes([choose.number(0, 255)]) + content[at + 1 :])
    elif kind == "insert":
        path.write_bytes(content[:at] + choose.pick(BYTES) + content[at:])
    elif kind == "replace":
        path.write_bytes(choose.pick(BYTES))
    elif kind == "repeat":
        path.write_bytes(content + content[at:])
    elif kind == "nested":
        path.write_bytes(choose.pick(NESTED))
    else:
        path.unlink()
        if kind == "folder":
            path.mkdir()
    return f"{kind} at {at}"


def damage_json(choose: Chooser, path: Path) -> str:
    """Replace, remove or add a value anywhere in a JSON file; says which."""
    content = json.loads(path.read_text(encoding="utf-8"))
    done = damage_value(choose, content)
    path.write_text(json.dumps(content), encoding="utf-8")
    return done


def damage_line(choose: Chooser, path: Path) -> str:
    """Damage one line of a file of JSON lines, as text or in one of its values."""
    lines = path.read_text(encoding="utf-8").splitlines()
    at = choose.number(0, len(lines) - 1)
    kind = choose.pick(("value", "value", "cut", "twice", "gone", "swap", "text"))
    done = f"{kind} in line {at}"
    if kind == "value":
        entry = json.loads(lines[at])
        done += f": {damage_value(choose, entry)}"
        lines[at] = json.dumps(entry)
    elif kind == "cut":
        lines[at] = lines[at][: choose.number(0, len(lines[at]))]
    elif kind == "twice":
        lines.insert(at, lines[at])
    elif kind == "gone":
        del lines[at]
    elif kind == "swap":
        lines[0], lines[at] = lines[at], lines[0]
    else:
        lines[at] = choose.pick(("", "{", "null", "[]", "5", '{"a": NaN}', "\x85", "[" * 5000, "9" * 5000, '"\\ud800"'))
    path.write_text("\n".join(lines) + choose.pick(("\n", "")), encoding="utf-8", newline="")
    return done


def damage_value(choose: Chooser, content: Any) -> str:
    """Walk down into a value, and replace, remove or add one there."""
    where: list[str] = []
    while True:
        keys = list(content) if isinstance(content, dict) else list(range(len(content)))
        if not keys:
            return "nothing to change"
        key = choose.pick(keys)
        where.append(str(key)[:40])
        inner = content[key]
        if isinstance(inner, (dict, list)) and inner and choose.number(0, 3):
            content = inner
            continue
        kind = choose.pick(("replace", "replace", "replace", "remove", "add"))
        if kind == "remove":
            del content[key]
            return f"{kind} {'.'.join(where)}"
        new = choose.pick(JSON_STRANGE)
        if kind == "add" and isinstance(content, dict):
            content[choose.pick(ADDED)] = new
        else:
            content[key] = new
        return f"{kind} {'.'.join(where)} by {str(new)[:60]!r}"
