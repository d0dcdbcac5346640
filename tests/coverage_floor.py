"""Fail when a room's test coverage falls below a floor: coverage_floor.py REPORT.json PERCENT ROOM..."""

from __future__ import annotations

import json
import sys
from pathlib import Path


def main() -> None:
    report, floor, rooms = Path(sys.argv[1]), float(sys.argv[2]), sys.argv[3:]
    files = json.loads(report.read_text())["files"]
    low = False
    for room in rooms:
        parts = [entry["summary"] for name, entry in files.items() if f"soar_dlm/{room}/" in name]
        covered = sum(part["covered_lines"] + part.get("covered_branches", 0) for part in parts)
        total = sum(part["num_statements"] + part.get("num_branches", 0) for part in parts)
        share = 100 * covered / max(total, 1)
        low |= share < floor
        print(f"coverage of {room}/: {share:.1f}% (at least {floor:g}%)")
    sys.exit(low)


if __name__ == "__main__":
    main()
