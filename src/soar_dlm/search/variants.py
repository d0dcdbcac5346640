"""Strategies that are another one with some settings changed."""

from __future__ import annotations

from functools import partial

from soar_dlm.search.position_beam import PositionBeam
from soar_dlm.search.soar import Soar

pbs_parallel = partial(PositionBeam, tokens_per_step=2)
soar_llada = partial(Soar, released="llada")
soar_dream = partial(Soar, released="dream")
