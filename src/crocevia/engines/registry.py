"""From a declared engine to a working one. A kind is one line here, and its module is loaded on first use."""

from __future__ import annotations

from importlib import import_module
from typing import cast

from crocevia.core.calls import Engine
from crocevia.core.catalogue import EngineKind, EngineSpec
from crocevia.core.errors import GatewayError, Reason
from crocevia.engines.context import EngineContext

# module:function, each `(spec, context) -> Engine`.
KINDS: dict[EngineKind, str] = {
    "anthropic": "crocevia.engines.anthropic.messages:build",
    "openai-chat": "crocevia.engines.openai.chat:build",
    "openai-responses": "crocevia.engines.openai.responses:build",
    "openai-images": "crocevia.engines.openai.images:build",
    "openai-embeddings": "crocevia.engines.openai.embeddings:build",
    "llama": "crocevia.engines.llama.engine:build",
    "scripted": "crocevia.engines.scripted.engine:build",
}


def build(spec: EngineSpec, context: EngineContext) -> Engine:
    """The engine that `spec` declares. Raises GatewayError(UNSUPPORTED) for a kind that makes no calls."""
    place = KINDS.get(spec.kind)
    if place is None:
        raise GatewayError(Reason.UNSUPPORTED, param="kind", what=spec.kind)
    module, _, function = place.partition(":")
    return cast("Engine", getattr(import_module(module), function)(spec, context))


def check_engine(spec: EngineSpec) -> None:
    """Raises GatewayError if its script could not be played."""
    if spec.traits.scripted and spec.script:
        from crocevia.engines.scripted.steps import parse

        parse(spec.script, engine=spec.name)
