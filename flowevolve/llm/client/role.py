"""A role: what a caller asks for by name, behind which are one model or several."""

from __future__ import annotations

from flowevolve.llm.client.ensemble import Ensemble
from flowevolve.llm.client.model import Model

Role = Model | Ensemble
"""What a role's name stands for."""
