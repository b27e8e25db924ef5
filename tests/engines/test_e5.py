"""The embedded model of vectors, for real where it is installed."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import pytest

from crocevia.core.embeddings import Embedded, EmbeddingRequest
from crocevia.core.errors import Code, GatewayError
from crocevia.engines.e5.engine import SIZE, E5Engine, is_installed
from tests.aio import run

pytestmark = pytest.mark.skipif(not is_installed(), reason="the local extra is not installed")


async def embed(engine: E5Engine, *texts: str, **more: Any) -> Embedded:
    request = EmbeddingRequest(model="", texts=texts, **more)
    return await engine.embed(request, deadline=asyncio.get_running_loop().time() + 30)


def likeness(left: memoryview, right: memoryview) -> float:
    return sum(a * b for a, b in zip(left.cast("B").cast("f"), right.cast("B").cast("f"), strict=True))


def test_what_means_the_same_is_near_whatever_the_language() -> None:
    async def scene() -> None:
        engine = E5Engine()
        try:
            texts = ("The gate is open.", "Il cancello è aperto.", "My cat likes jazz music.", "")
            made = await embed(engine, *texts)
            gate, cancello, cat, _ = made.vectors
            assert len(gate) == SIZE * 4 and math.isclose(likeness(gate, gate), 1, abs_tol=1e-3)
            assert likeness(gate, cancello) > likeness(gate, cat) + 0.05
            assert made.tokens is not None and made.tokens > 15
            again = await embed(engine, "The gate is open.")
            assert math.isclose(likeness(gate, again.vectors[0]), 1, abs_tol=1e-2)
        finally:
            await engine.close()

    run(scene(), timeout=50)


def test_another_size_is_refused_and_a_killed_child_is_replaced() -> None:
    async def scene() -> None:
        engine = E5Engine()
        try:
            with pytest.raises(GatewayError) as refused:
                await embed(engine, "x", dimensions=7)
            assert (refused.value.code, refused.value.param) == (Code.UNSUPPORTED, "dimensions")
            await embed(engine, "x")
            process = engine._process
            assert process is not None
            process.kill()
            await process.wait()
            assert len((await embed(engine, "x\0y")).vectors) == 1
            with pytest.raises(GatewayError) as late:
                await engine.embed(EmbeddingRequest(model="", texts=("x",)), deadline=0)
            assert late.value.code is Code.UPSTREAM_TIMEOUT
            assert len((await embed(engine, "x")).vectors) == 1
        finally:
            await engine.close()
        assert engine._process is None

    run(scene(), timeout=50)
