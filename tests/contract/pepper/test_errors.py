"""The error table, row by row, and the order of refusals."""

from __future__ import annotations

from typing import Any

import pytest

from crocevia.core.errors import Code, GatewayError, Reason
from crocevia.core.events import ReasoningDelta, Stopped, StopReason
from crocevia.doors.pepper.errors import TABLE, failure
from tests.aio import run
from tests.contract.requirements import requirement
from tests.doors.pepper.asgi import Exchange, ask
from tests.doors.pepper.house import HELLO, House, Puppet, house

PUBLISHED = {
    (400, "richiesta_non_valida"),
    (401, "non_autorizzato"),
    (403, "agente_non_abilitato"),
    (403, "documenti_non_abilitati"),
    (403, "immagini_non_abilitate"),
    (404, "non_trovato"),
    (405, "metodo_non_valido"),
    (413, "richiesta_troppo_grande"),
    (422, "richiesta_rifiutata"),
    (429, "troppe_richieste"),
    (429, "budget_esaurito"),
    (502, "errore_ai"),
    (503, "servizio_non_disponibile"),
}


def asked(place: House, body: Any = HELLO, **how: Any) -> Exchange:
    exchange = run(ask(place.agent, body, **how))
    place.nothing_left()
    return exchange


@requirement("P-ERR-BODY")
@pytest.mark.parametrize("code", list(Code))
def test_every_code_has_a_row_of_the_table_and_an_italian_sentence(code: Code) -> None:
    assert TABLE[code] in PUBLISHED
    assert failure(GatewayError(Reason(code))).message.endswith(".")


@requirement("P-ERR-BODY")
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("code", list(Code))
def test_every_failure_before_the_first_word_has_its_status_and_form(code: Code, stream: bool) -> None:
    details = dict(allowed="POST", project="casa", limit=1, seconds=9, model="m", what="x")
    error = GatewayError(Reason(code), **details)  # type: ignore[arg-type]
    exchange = asked(house(Puppet(([ReasoningDelta("mm")], error))), HELLO | {"stream": stream})
    assert exchange.error() == TABLE[code]
    assert list(exchange.json()) == ["error"]
    assert set(exchange.json()["error"]) == {"code", "message"}
    assert "{" not in exchange.json()["error"]["message"]
    assert exchange.headers["content-type"] == "application/json"
    assert exchange.headers["cache-control"] == "no-store"
    assert ("retry-after" in exchange.headers) == (exchange.status in (429, 503))
    assert int(exchange.headers.get("retry-after", "1")) >= 1


@requirement("P-ERR-400")
@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b'"x"',
        b"\xff\xfe",
        b'{"messages":[{"role":"user","content":"\xc3"}]}',
        b'{"messages":[{"role":"user","content":"\\ud800"}]}',
        b'{"messages":[{"role":"user","content":"x"}],"max_tokens":NaN}',
        b'{"messages":[{"role":"user","content":"x"}],"max_tokens":1e999}',
        b'{"messages":[{"role":"user","content":"x"}],"max_tokens":"10"}',
        b'{"messages":[{"role":"user","content":"x"}],"max_tokens":1.5}',
        b'{"messages":[{"role":"user","content":"x"}],"stream":1}',
        b'{"messages":[{"role":"user","content":"x"}],"system":[]}',
        b'{"messages":[{"role":"user","content":"x"}],"session_id":7}',
        b'{"messages":[{"role":"user","content":"x"}],"tools":{}}',
        b'{"messages":[{"role":"user","content":"x"}],"tools":[{"name":"t","parameters":{"x":NaN}}]}',
        b'{"messages":[{"role":"user","content":"x"}],"tools":[{"name":"t","parameters":{"x":"\\udc00"}}]}',
        b'{"messages":[{"role":"user","content":"x"}],"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"messages":' + b"[" * 100_000,
    ],
)
def test_what_is_not_a_request_is_400(raw: bytes) -> None:
    place = house()
    assert asked(place, raw=raw).error() == (400, "richiesta_non_valida")
    assert place.engine.requests == []


@requirement("P-ERR-401")
@pytest.mark.parametrize(
    ("key", "project"),
    [(None, "casa"), ("", "casa"), ("sbagliata", "casa"), ("altra", "casa"), ("chiave", "nessuno"), ("chiave", None)],
)
def test_a_key_that_does_not_open_the_project_is_401(key: str | None, project: str | None) -> None:
    assert asked(house(), key=key, project=project).error() == (401, "non_autorizzato")


@requirement("P-ON-1")
def test_a_standard_project_is_403() -> None:
    exchange = asked(house(), key="altra", project="vecchia")
    assert exchange.error() == (403, "agente_non_abilitato")
    assert "'vecchia'" in exchange.json()["error"]["message"]


@requirement("P-ERR-405")
@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "PUT", "DELETE", "PATCH"])
def test_anything_but_post_is_405(method: str) -> None:
    exchange = asked(house(), method=method, key=None)
    assert exchange.status == 405
    assert method == "HEAD" or exchange.error() == (405, "metodo_non_valido")
    assert exchange.headers["allow"] == "POST"


LARGE = b" " * (1024 * 1024)


@requirement("P-ERR-413")
@pytest.mark.parametrize("declared", [True, False])
def test_more_than_32_mb_is_413_whether_declared_or_not(declared: bool) -> None:
    headers = {"content-length": str(33 * len(LARGE))} if declared else None
    exchange = asked(house(), raw=[LARGE] * 33, headers=headers)
    assert exchange.error() == (413, "richiesta_troppo_grande")
    assert "32 MB" in exchange.json()["error"]["message"]
    assert exchange.headers["connection"] == "close"


@requirement("P-ERR-413")
def test_a_body_in_pieces_below_the_limit_is_read_whole() -> None:
    pieces = [b'{"messages":[{"role":"user","content":"', b"x" * 40_000, b'"}]}', b""]
    assert asked(house(), raw=pieces).status == 200


@requirement("P-ERR-422")
@pytest.mark.parametrize("stream", [True, False])
def test_a_model_that_declines_is_422(stream: bool) -> None:
    exchange = asked(house(Puppet(([Stopped(StopReason.REFUSAL)],))), HELLO | {"stream": stream})
    assert exchange.error() == (422, "richiesta_rifiutata")


@requirement("P-ERR-429")
def test_the_hourly_limit_says_exactly_when_the_next_call_passes() -> None:
    place = house(hourly_limit=2)
    assert [asked(place).status for _ in range(2)] == [200, 200]
    place.clock[0] += 100.5
    refused = asked(place)
    assert refused.error() == (429, "troppe_richieste")
    wait = int(refused.headers["retry-after"])
    assert 3490 < wait <= 3600
    place.clock[0] += wait - 1.01
    assert asked(place).status == 429
    place.clock[0] += 1.01
    assert asked(place).status == 200
    assert len(place.engine.requests) == 3


@requirement("P-ERR-502")
@pytest.mark.parametrize("code", [c for c in Code if c.value.startswith("upstream")])
def test_a_provider_that_fails_is_502(code: Code) -> None:
    place = house(Puppet((GatewayError(Reason(code)),)))
    assert asked(place).error() == (502, "errore_ai")
    assert place.records.settled[0].outcome == code.value
    assert place.records.settled[0].ended_by == "model"


@requirement("P-ERR-503")
def test_a_store_that_takes_nothing_and_a_draining_server_are_503() -> None:
    place = house()
    place.records.failing = True
    assert asked(place).error() == (503, "servizio_non_disponibile")
    place.records.failing = False
    assert asked(place).status == 200
    place.gateway.draining = True
    assert asked(place).error() == (503, "servizio_non_disponibile")


@requirement("P-ERR-503")
def test_a_fault_of_ours_is_503_and_tells_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    place = house(Puppet((RuntimeError("segreto"),)))
    exchange = asked(place)
    assert exchange.error() == (503, "servizio_non_disponibile")
    assert b"segreto" not in exchange.body
    logged = "".join(capsys.readouterr())
    assert "RuntimeError" in logged
    assert "segreto" not in logged
    assert place.records.settled[0].outcome == "internal"


@requirement("P-ORD-1")
def test_refusals_come_in_their_order() -> None:
    """Each request has every later fault too."""
    large = {"raw": [LARGE] * 33, "headers": {"content-length": str(33 * len(LARGE))}}
    rows: list[tuple[int, dict[str, Any]]] = [
        (405, {"method": "GET", "key": None, **large}),
        (401, {"key": None, **large}),
        (401, {"key": "sbagliata", **large}),
        (401, {"key": "sbagliata", "raw": b"{"}),
        (413, {"project": "altrove", **large}),
        (400, {"project": "altrove", "raw": b"{"}),
        (401, {"project": "altrove", "body": {"messages": []}}),
        (403, {"key": "altra", "project": "vecchia", "body": {"messages": []}}),
        (400, {"body": {"messages": []}}),
    ]
    assert [asked(house(hourly_limit=0), **how).status for _, how in rows] == [status for status, _ in rows]
    assert asked(house(hourly_limit=0)).status == 429
