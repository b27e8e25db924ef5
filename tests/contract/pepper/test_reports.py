"""What Pepper says about itself, and about a request before it is made."""

from __future__ import annotations

from typing import Any

import pytest

from crocevia.core.catalogue import Prices
from tests.aio import run
from tests.app.serving import read_answer, request, serving
from tests.contract.pepper.claude import App, asks, says, talking, thought, whole
from tests.contract.requirements import requirement
from tests.doors.pepper.asgi import Exchange, ask
from tests.doors.pepper.house import ALL_ALLOWED, HELLO, House, Puppet, house

PRICED = {"prices": Prices(input=5.0, output=25.0)}


def told(place: House, **how: Any) -> Exchange:
    return run(ask(place.agent, path="/capacita.php", method=how.pop("method", "GET"), raw=b"", **how))


def examined(place: House, body: Any, **how: Any) -> Exchange:
    exchange = run(ask(place.agent, body, path="/agent/verifica", **how), timeout=30)
    place.nothing_left()
    assert place.engine.requests == []
    assert place.records.opened == []
    return exchange


@requirement("P-CAP-1", "P-REQ-6")
@pytest.mark.parametrize("voice", [True, False])
def test_capabilities_say_what_the_projects_model_can_do(voice: bool) -> None:
    place = house(
        Puppet(documents=True, images=True),
        reserve=Puppet(name="spare"),
        model={
            "voice_in_apps": voice,
            "novelty": "Ragiona.",
            "reasoning": "always",
            "max_pages": 100,
            "context_window": 200_000,
        },
        permissions=ALL_ALLOWED,
        hourly_limit=200,
        daily_budget_usd=2.0,
        max_concurrency=8,
    )
    exchange = told(place)
    assert exchange.status == 200
    assert exchange.headers["content-type"] == "application/json"
    assert exchange.json() == {
        "progetto": "casa",
        "modalita": "agente",
        "pepper": {
            "versione": "Pepper 7",
            "novita": "Ragiona.",
            "voce_nelle_app": voice,
            "ragionamento": "sempre",
            "riserva": "Pepper 6",
            "contesto": 200_000,
            "max_tokens": {"predefinito": 4096, "minimo": 256, "massimo": 32000},
            "streaming": True,
            "attrezzi": True,
            "blocchi": True,
            "documenti": {
                "abilitati": True,
                "accettati": True,
                "massimo": 5,
                "megabyte": 10,
                "tipi": ["application/pdf"],
                "pagine": 100,
                "interi": True,
            },
            "immagini": {
                "abilitati": True,
                "accettati": True,
                "massimo": 5,
                "megabyte": 5,
                "tipi": ["image/gif", "image/jpeg", "image/png", "image/webp"],
            },
            "citazioni": True,
            "ricerca_web": True,
        },
        "limiti": {"richieste_ora": 200, "spesa_giorno_usd": 2.0, "contemporanee": 8, "corpo_megabyte": 32},
    }


@requirement("P-CAP-1")
def test_what_is_not_set_is_null_and_what_is_not_allowed_false() -> None:
    found = told(house()).json()
    assert set(found["limiti"].values()) == {None, 32}
    pepper = found["pepper"]
    assert [pepper[name] for name in ("novita", "riserva", "contesto")] == [None] * 3
    assert pepper["ragionamento"] == "spento"
    assert not pepper["documenti"]["abilitati"] and not pepper["documenti"]["interi"]
    assert not pepper["immagini"]["abilitati"] and not pepper["immagini"]["accettati"]
    assert not pepper["ricerca_web"]


@requirement("P-CAP-1")
def test_capabilities_need_the_key_and_know_projects_of_every_mode() -> None:
    assert told(house(), key=None).error() == (401, "non_autorizzato")
    assert told(house(), key="altra").error() == (401, "non_autorizzato")
    assert told(house(), key="altra", project="vecchia").json()["modalita"] == "standard"
    refused = told(house(), method="POST")
    assert refused.error() == (405, "metodo_non_valido")
    assert told(house(), method="HEAD").body == b""


@requirement("P-CAP-1", "P-VER-1")
def test_both_reports_are_mounted_with_and_without_php() -> None:
    async def work() -> None:
        async with serving() as place:
            for path in ("/capacita", "/capacita.php"):
                async with place.open() as (reader, writer):
                    writer.write(request(path, b"", method="GET"))
                    status, _, body = await read_answer(reader)
                    assert (status, b'"voce_nelle_app":false' in body) == (200, True)
            for path in ("/agent/verifica", "/agent/verifica.php"):
                status, _, body = await place.post(path, HELLO)
                assert (status, b'"accettata":true' in body) == (200, True)

    run(work())


@requirement("P-VER-1")
def test_a_good_request_is_told_who_would_answer_at_what_price() -> None:
    place = house(
        model={**PRICED, "instructions": "Sei Pepper.", "voice_in_apps": True, "reasoning": "on"},
        daily_budget_usd=10.0,
    )
    report = examined(place, HELLO | {"system": "Regole.", "tools": [{"name": "t"}], "max_tokens": 1000}).json()
    assert report["accettata"] is True
    assert report["problemi"] == report["ragionamento_perso"] == []
    assert report["istruzioni"] == "Sei Pepper.\n\nRegole."
    assert report["risponde"] == {
        "versione": "Pepper 7",
        "al_posto_di": None,
        "riserva": None,
        "ragiona": True,
        "max_tokens": 16000,
    }
    size = report["dimensione"]
    assert (size["messaggi"], size["attrezzi"], size["allegati"]) == (1, 1, 0)
    assert size["byte"] > 100 and 10 < size["token_ingresso"] < 200
    cost = report["costo"]
    assert 16000 * 25e-6 <= cost["massimo_usd"] <= 16000 * 25e-6 + 200 * 6.25e-6
    assert (cost["budget_usd"], cost["residuo_usd"], cost["basta"]) == (10.0, 10.0, True)
    assert cost["residuo_dopo_usd"] == pytest.approx(10.0 - cost["massimo_usd"])


@requirement("P-VER-1")
def test_the_report_and_the_call_agree_about_the_reservation() -> None:
    place = house(model=PRICED, daily_budget_usd=10.0)
    most = examined(place, HELLO).json()["costo"]["massimo_usd"]
    run(ask(place.agent, HELLO))
    assert place.records.opened[0].reserved_usd == most


@requirement("P-VER-1")
def test_every_message_that_would_be_refused_is_named_at_once() -> None:
    call = {"id": "c1", "name": "t", "arguments": {}}
    messages = [
        {"role": "user", "content": " "},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "user", "content": "allora?"},
        {"role": "tool", "tool_call_id": "c9", "content": "x"},
        {"role": "user", "content": [{"tipo": "documento", "dati": "aa"}]},
    ]
    tools = [{"name": "a"}, {"name": "a"}, {"name": "b", "parameters": []}]
    report = examined(house(), {"messages": messages, "tools": tools}).json()
    assert report["accettata"] is False
    assert [(p["stato"], p["codice"], p["campo"]) for p in report["problemi"]] == [
        (400, "richiesta_non_valida", "messages[0].content"),
        (400, "richiesta_non_valida", "messages[1].tool_calls"),
        (400, "richiesta_non_valida", "messages[3].tool_call_id"),
        (403, "documenti_non_abilitati", None),
        (400, "richiesta_non_valida", "tools[1].name"),
        (400, "richiesta_non_valida", "tools[2].parameters"),
    ]
    assert all(p["spiegazione"].endswith(".") and "{" not in p["spiegazione"] for p in report["problemi"])


@requirement("P-VER-1")
def test_a_file_that_would_be_refused_is_named() -> None:
    content = [{"tipo": "documento", "dati": "YQ=="}]
    report = examined(house(permissions=ALL_ALLOWED), {"messages": [{"role": "user", "content": content}]}).json()
    assert [p["campo"] for p in report["problemi"]] == ["messages[0].content[0]"]
    assert report["dimensione"]["allegati"] == 1


@requirement("P-VER-1")
def test_a_budget_that_does_not_suffice_is_a_problem() -> None:
    place = house(model=PRICED, daily_budget_usd=5.0)
    place.gateway.spend.ledger.remember("casa", place.gateway.spend.budget(_casa(place)), 5 * 10**9, 1_000_000)
    report = examined(place, HELLO).json()
    assert [(p["stato"], p["codice"]) for p in report["problemi"]] == [(429, "budget_esaurito")]
    assert (report["costo"]["residuo_usd"], report["costo"]["basta"]) == (0.0, False)
    unpriced = examined(house(daily_budget_usd=5.0), HELLO).json()
    assert [p["stato"] for p in unpriced["problemi"]] == [503]
    assert unpriced["costo"]["massimo_usd"] is None


def _casa(place: House) -> Any:
    return place.gateway.authenticate(b"chiave")


@requirement("P-VER-1")
def test_verifying_counts_against_nothing() -> None:
    place = house(hourly_limit=1, max_concurrency=1)
    for _ in range(3):
        assert examined(place, HELLO).status == 200
    assert run(ask(place.agent, HELLO)).status == 200


@requirement("P-VER-1")
def test_who_asks_and_what_is_no_request_are_refused_as_in_the_call() -> None:
    assert examined(house(), HELLO, method="GET").error() == (405, "metodo_non_valido")
    assert examined(house(), HELLO, key=None).error() == (401, "non_autorizzato")
    assert examined(house(), HELLO, key="altra", project="vecchia").error() == (403, "agente_non_abilitato")
    assert examined(house(), None, raw=b"{").error() == (400, "richiesta_non_valida")
    large = b" " * (1024 * 1024)
    assert examined(house(), None, raw=[large] * 33).error() == (413, "richiesta_troppo_grande")


async def examine(app: App) -> dict[str, Any]:
    body = {"messages": app.messages, "tools": app.tools, "system": app.system}
    exchange = await ask(app.place.agent, body, path="/agent/verifica")
    assert exchange.status == 200
    found: dict[str, Any] = exchange.json()
    return found


@requirement("P-VER-1")
def test_reasoning_that_would_be_lost_is_named_with_its_reason() -> None:
    async def work() -> None:
        plays = (whole(thought("x", "s1"), asks()), whole(thought("y", "s2"), says("Fatto.")))
        async with talking(*plays, spare=whole(says("ok"))) as app:
            app.user("prepara casa")
            await app.call()
            app.results()
            assert (await examine(app))["ragionamento_perso"] == []
            await app.call()
            app.user("e ora?")
            app.messages[0]["content"] = "altro"
            report = await examine(app)
            assert [(lost["messaggio"], lost["motivo"]) for lost in report["ragionamento_perso"]] == [
                (1, "cronologia_cambiata"),
                (3, "cronologia_cambiata"),
            ]
            assert (report["accettata"], report["risponde"]["versione"]) == (True, "Pepper 7")
            del app.messages[3:]
            del app.messages[1]["blocchi"]
            report = await examine(app)
            assert report["app_senza_blocchi"] is True
            assert report["ragionamento_perso"][0]["motivo"] == "blocchi_mancanti"
            assert report["risponde"]["versione"] == "Pepper 6"
            assert report["risponde"]["al_posto_di"] == "Pepper 7"
            assert report["risponde"]["ragiona"] is False
            assert len(app.provider.requests) == 2

    run(work())
