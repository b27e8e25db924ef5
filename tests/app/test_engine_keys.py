"""An engine without a key that can be sent is refused by name, and nothing is sent."""

from __future__ import annotations

from pathlib import Path

import pytest

from crocevia.app.engines import EnginePool
from crocevia.core.catalogue import EngineSpec
from crocevia.core.errors import Code, GatewayError, Reason
from crocevia.runtime.catalogue import Catalogue, CatalogueHolder
from tests.aio import run

FROM_ENVIRONMENT = EngineSpec(
    name="e", kind="openai-chat", base_url="http://127.0.0.1:1/v1", api_key_env="PROVIDER_KEY"
)
STORED = EngineSpec(name="e", kind="openai-chat", base_url="http://127.0.0.1:1/v1")


class Declared(CatalogueHolder):
    """A catalogue that is what it is."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._current = catalogue

    @property
    def current(self) -> Catalogue:
        return self._current

    def subscribe(self, subscriber: object) -> None:
        """Nothing changes."""


def pool(catalogue: Catalogue, seen: list[tuple[str, Exception]]) -> EnginePool:
    return EnginePool(Declared(catalogue), Path(), report=lambda name, error: seen.append((name, error)))


@pytest.mark.parametrize("value", [None, "", "  \n"])
def test_an_engine_whose_variable_is_not_set_is_named_at_start_and_refused(
    value: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PROVIDER_KEY", raising=False)
    if value is not None:
        monkeypatch.setenv("PROVIDER_KEY", value)
    seen: list[tuple[str, Exception]] = []

    async def work() -> None:
        engines = pool(Catalogue(revision=1, engines={"e": FROM_ENVIRONMENT}), seen)
        engines.check_keys()
        with pytest.raises(GatewayError) as refused:
            engines.get("e")
        assert (refused.value.code, refused.value.reason) == (Code.UNAVAILABLE, Reason.ENGINE_KEY_MISSING)
        assert refused.value.details == {"engine": "e", "variable": "PROVIDER_KEY"}
        await engines.close()

    run(work())
    assert [(name, error.reason) for name, error in seen if isinstance(error, GatewayError)] == [
        ("e", Reason.ENGINE_KEY_MISSING)
    ]


@pytest.mark.parametrize("spec", [FROM_ENVIRONMENT, STORED])
@pytest.mark.parametrize(
    ("value", "sent"),
    [("sk-1", "sk-1"), ("sk-1\n", "sk-1"), (" sk-1\r\n", "sk-1"), ("sk\n1", None), ("sk-\x00", None), ("sk-é", None)],
)
def test_a_key_is_sent_without_what_surrounds_it_or_not_at_all(spec: EngineSpec, value: str, sent: str | None) -> None:
    catalogue = Catalogue(revision=1, engines={"e": spec}, engine_keys={"e": value} if spec is STORED else {})
    environment = {"PROVIDER_KEY": value}
    if sent is None:
        with pytest.raises(GatewayError) as refused:
            catalogue.check_key("e", environment)
        assert refused.value.reason is Reason.ENGINE_KEY_MALFORMED
        assert value not in repr(refused.value) + str(refused.value.details)
    else:
        assert catalogue.check_key("e", environment) == sent


def test_an_engine_that_names_no_key_needs_none() -> None:
    assert Catalogue(revision=1, engines={"e": STORED}).check_key("e", {}) is None
