"""``/v1/models``: the one model that is served."""

from __future__ import annotations

import time
from typing import Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel

from soar_dlm.async_lm import AsyncLM
from soar_dlm.serve.failures import Refused

router = APIRouter(tags=["OpenAI"])
_STARTED = int(time.time())


class Model(BaseModel):
    id: str
    object: Literal["model"] = "model"
    created: int = _STARTED
    owned_by: Literal["soar-dlm"] = "soar-dlm"


class Models(BaseModel):
    object: Literal["list"] = "list"
    data: list[Model]


@router.get("/v1/models")
async def models(request: Request) -> Models:
    """The model's name, by which requests ask for it."""
    lm: AsyncLM = request.app.state.lm
    return Models(data=[Model(id=lm.lm.name)])


@router.get("/v1/models/{name:path}")
async def model(name: str, request: Request) -> Model:
    """The model, if it has this name."""
    return Model(id=served(request.app.state.lm, name))


def served(lm: AsyncLM, name: str) -> str:
    """The name of the model that is asked for; another one is not found."""
    if name != lm.lm.name:
        raise Refused(
            404, f"There is no model {name!r} here; this is {lm.lm.name!r}.", param="model", code="model_not_found"
        )
    return name
