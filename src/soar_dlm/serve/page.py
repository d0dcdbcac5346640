"""The page at ``/``."""

from __future__ import annotations

from pathlib import Path

from fastapi import FastAPI
from starlette.staticfiles import StaticFiles

STATIC = Path(__file__).parent / "static"


def mount(app: FastAPI) -> None:
    """Serve the files of the page, last of all routes."""
    app.mount("/", StaticFiles(directory=STATIC, html=True), name="page")
