"""The classic API as a caller sees it."""

from __future__ import annotations

import asyncio
import base64
import json
import re
from typing import Any

import pytest
from msgspec import Raw

from crocevia.core.catalogue import Permissions, Prices
from crocevia.core.errors import GatewayError, Reason
from crocevia.core.events import ProviderBlock, Stopped, StopReason, UsageReported
from crocevia.core.messages import AssistantMessage, FilePart, UserMessage
from crocevia.core.usage import Usage
from crocevia.runtime.classic.websearch import WebSearch
from tests.aio import run
from tests.app.serving import serving
from tests.contract.requirements import requirement
from tests.documents.zoo import pdf
from tests.doors.pepper.asgi import ask, start
from tests.doors.pepper.classic_house import ASKED, ClassicHouse, classic_house
from tests.doors.pepper.house import END, HELLO, USAGE, Puppet, house, say, tool

ALL = Permissions(documents=True, images=True, web_search=True)


def said(*answers: str) -> Puppet:
    return Puppet(*((say(text), [USAGE, END]) for text in answers))


def texts(place: ClassicHouse, call: int = -1) -> list[str]:
    """What the engine was given, message by message."""
    messages = place.house.engine.requests[call].messages
    return [m.text or "" for m in messages if isinstance(m, UserMessage | AssistantMessage)]


@requirement("P-CLS-1", "P-CLS-2", "P-CLS-4", "P-CLS-10")
@pytest.mark.parametrize(
    ("model", "system"),
    [
        ({}, "Riassumi in una riga."),
        ({"instructions": "Sei Pepper."}, "Riassumi in una riga."),
        ({"instructions": "Sei Pepper.", "voice_in_apps": True}, "Sei Pepper.\n\nRiassumi in una riga."),
    ],
)
def test_a_recipe_and_a_content_make_an_answer(model: dict[str, Any], system: str) -> None:
    async def work() -> None:
        async with classic_house(said("Ombrello."), model=model | {"novelty": "nuovo"}) as place:
            answer = await place.ask()
            assert answer.status == 200
            assert answer.json() == {
                "risposta": "Ombrello.",
                "conversazione": None,
                "versione": "Pepper 7",
                "usage": {
                    "input_tokens": 12,
                    "output_tokens": 3,
                    "cache_read_input_tokens": None,
                    "cache_creation_input_tokens": None,
                },
            }
            asked = place.house.engine.requests[0]
            assert (asked.system, texts(place), asked.tools, asked.options.stream) == (
                system,
                ["Piove a Roma."],
                (),
                False,
            )
            opened = place.house.records.opened[0]
            assert (opened.door, opened.encode, opened.project) == ("pepper", "riassunto", "casa")
            place.house.nothing_left()

    run(work())


@requirement("P-CLS-1")
def test_an_answer_cut_by_the_limit_says_so() -> None:
    async def work() -> None:
        async with classic_house(Puppet((say("Ombr"), [USAGE, Stopped(StopReason.MAX_TOKENS)]))) as place:
            assert (await place.ask({"max_tokens": 1})).json()["troncato"] is True
            assert place.house.engine.requests[0].options.max_tokens == 256

    run(work())


@requirement("P-CLS-3", "P-CLS-6")
def test_both_modes_and_both_addresses_answer_and_the_body_names_the_project() -> None:
    async def work() -> None:
        async with classic_house() as place:
            for named, header, key, status in (
                ("casa", None, "chiave", 200),
                ("vecchia", None, "altra", 200),
                (None, "casa", "chiave", 200),
                ("casa", "vecchia", "chiave", 200),
                ("casa", None, "altra", 401),
                (None, None, "chiave", 401),
                ("casa", None, None, 401),
            ):
                answer = await place.ask({"progetto": named}, project=header, key=key)
                assert answer.status == status, (named, header, key)
        async with serving() as server:
            for path in ("/api", "/api.php"):
                status, headers, body = await server.post(path, ASKED)
                assert (status, json.loads(body)["error"]["code"]) == (400, "richiesta_non_valida")
                assert headers["cache-control"] == "no-store"

    run(work())


@requirement("P-CLS-5")
@pytest.mark.parametrize(
    "body",
    [
        {"encode": "ignota"},
        {"encode": None},
        {"encode": ""},
        {"contenuto": None},
        {"contenuto": ""},
        {"contenuto": "  \n"},
        {"contenuto": []},
        {"contenuto": {}},
        {"contenuto": [{"tipo": "altro"}]},
        {"contenuto": [{"tipo": "testo"}]},
        {"contenuto": [{"tipo": "testo", "testo": " "}]},
        {"conversazione": ""},
        {"conversazione": " a"},
        {"conversazione": "a\nb"},
        {"conversazione": "x" * 201},
        {"conversazione": 7},
        {"max_tokens": "tanti"},
        {"progetto": ["casa"]},
    ],
)
def test_what_is_wrong_is_told_and_paid_by_nobody(body: dict[str, Any]) -> None:
    async def work() -> None:
        async with classic_house() as place:
            answer = await place.ask(body)
            assert answer.error() == (400, "richiesta_non_valida")
            assert not place.house.engine.requests and not place.house.records.opened

    run(work())


@requirement("P-CLS-5")
def test_other_failures_have_the_codes_of_the_agent_call() -> None:
    async def work() -> None:
        for engine, expected in (
            (Puppet((GatewayError(Reason.UPSTREAM_FAILED),)), (502, "errore_ai")),
            (Puppet(([Stopped(StopReason.REFUSAL)],)), (422, "richiesta_rifiutata")),
        ):
            async with classic_house(engine) as place:
                assert (await place.ask()).error() == expected
                place.house.nothing_left()
        async with classic_house() as place:
            wrong = await ask(place.endpoint, ASKED, method="GET", project=None)
            assert wrong.error() == (405, "metodo_non_valido")
            assert wrong.headers["allow"] == "POST, DELETE"
            assert (await ask(place.endpoint, raw=b"{", project=None)).error() == (400, "richiesta_non_valida")

    run(work())


@requirement("P-CLS-7")
@pytest.mark.parametrize("days", [0, 7])
def test_a_conversation_goes_on_where_it_stopped(days: int) -> None:
    async def work() -> None:
        async with classic_house(said("uno", "due", "tre"), keep_texts_days=days) as place:
            first = await place.ask({"contenuto": "a", "conversazione": "c 1"})
            assert first.json()["conversazione"] == "c 1"
            await place.ask({"contenuto": "b", "conversazione": "c 1"})
            assert texts(place) == ["a", "uno", "b"]
            await place.ask({"contenuto": "c", "conversazione": "altra"})
            assert texts(place) == ["c"]
            await place.ask({"contenuto": "d", "conversazione": "c 1", "progetto": "vecchia"}, key="altra")
            assert texts(place) == ["d"]
            await place.ask({"contenuto": "e"})
            assert texts(place) == ["e"]
            assert place.house.records.opened[0].session_id == "c 1"

    run(work())


@requirement("P-CLS-7")
def test_a_call_that_failed_is_not_remembered_and_history_is_bounded() -> None:
    async def work() -> None:
        engine = Puppet((GatewayError(Reason.UPSTREAM_FAILED),), *[(say("r" * 9000), [USAGE, END])] * 60)
        async with classic_house(engine, keep_texts_days=1) as place:
            await place.ask({"contenuto": "persa", "conversazione": "c"})
            for number in range(60):
                await place.ask({"contenuto": f"{number}", "conversazione": "c"})
            given = texts(place)
            assert "persa" not in given
            assert given[-1] == "59" and given[-3] == "58"
            assert len(given) <= 41 and sum(map(len, given)) <= 101_000
            assert given[0] != "r" * 9000

    run(work())


@requirement("P-CLS-8")
def test_without_retention_nothing_of_a_conversation_reaches_the_disk() -> None:
    async def work() -> None:
        async with classic_house(said("risposta-canarino")) as place:
            await place.ask({"contenuto": "domanda-canarino", "conversazione": "segreta"})
            await place.ask({"contenuto": "ancora", "conversazione": "segreta"})
            assert texts(place) == ["domanda-canarino", "risposta-canarino", "ancora"]
            place.clock[0] += 86_401
            await place.ask({"contenuto": "dopo un giorno", "conversazione": "segreta"})
            assert texts(place) == ["dopo un giorno"]
            await place.database.close()
            written = b"".join(file.read_bytes() for file in place.path.parent.iterdir())
            assert b"canarino" not in written and b"segreta" not in written

    run(work())


@requirement("P-CLS-8")
def test_a_kept_conversation_is_gone_after_the_projects_days() -> None:
    async def work() -> None:
        async with classic_house(said("uno"), keep_texts_days=2) as place:
            await place.ask({"contenuto": "a", "conversazione": "c"})
            place.clock[0] += 1.5 * 86_400
            await place.ask({"contenuto": "b", "conversazione": "c"})
            assert texts(place) == ["a", "uno", "b"]
            place.clock[0] += 2 * 86_400 + 1
            await place.conversations.drop_expired()
            count = place.database.read(
                lambda tx: tx.connection.execute("select count(*) from conversation_messages").fetchone()
            )
            assert (await count)[0] == 0
            await place.ask({"contenuto": "c", "conversazione": "c"})
            assert texts(place) == ["c"]

    run(work())


@requirement("P-CLS-9")
@pytest.mark.parametrize("days", [0, 3])
def test_a_conversation_is_deleted_on_request(days: int) -> None:
    async def work() -> None:
        async with classic_house(said("uno"), keep_texts_days=days) as place:

            async def delete(query: str, **how: Any) -> Any:
                return await ask(query_of(place, query), method="DELETE", path="/api.php", **how)

            await place.ask({"contenuto": "a", "conversazione": "c 1"})
            assert (await delete("conversazione=c+1", key="altra", project="vecchia")).json() == {"cancellata": False}
            assert (await delete("conversazione=c%201")).json() == {"cancellata": True}
            assert (await delete("conversazione=c%201&progetto=casa", project=None)).json() == {"cancellata": False}
            assert (await delete("")).error() == (400, "richiesta_non_valida")
            assert (await delete("conversazione=c", key="sbagliata")).error() == (401, "non_autorizzato")
            await place.ask({"contenuto": "b", "conversazione": "c 1"})
            assert texts(place) == ["b"]

    run(work())


def query_of(place: ClassicHouse, query: str) -> Any:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await place.endpoint(scope | {"query_string": query.encode()}, receive, send)

    return app


LETTER = pdf(
    [
        "Il verbale e' stato letto dal segretario comunale alle ore nove. " * 4,
        "Presenti Rossi, Bianchi e Verdi in sala grande. " * 5,
    ]
)


def document(name: str = "verbale.pdf", data: bytes = LETTER, **more: str) -> dict[str, str]:
    return {"tipo": "documento", "nome": name, "dati": base64.b64encode(data).decode(), **more}


@requirement("P-CLS-11")
def test_documents_and_photos_need_the_projects_permission() -> None:
    async def work() -> None:
        async with classic_house() as place:
            question = {"tipo": "testo", "testo": "chi c'era?"}
            refused = await place.ask({"contenuto": [document(), question]})
            assert refused.error() == (403, "documenti_non_abilitati")
            photo = document("f.jpg", b"x", tipo_file="image/jpeg")
            assert (await place.ask({"contenuto": [photo]})).error() == (403, "immagini_non_abilitate")
            assert not place.house.engine.requests
        async with classic_house(permissions=ALL) as place:
            many = await place.ask({"contenuto": [document()] * 6 + [question]})
            assert many.error() == (400, "richiesta_non_valida")

    run(work())


@requirement("P-CLS-12")
def test_passages_are_found_again_where_the_engine_does_not_cite() -> None:
    async def work() -> None:
        engine = said("Secondo il testo, presenti Rossi, Bianchi e Verdi in sala grande: nessun altro.")
        async with classic_house(engine, permissions=ALL) as place:
            answer = await place.ask(
                {"contenuto": [document(), {"tipo": "testo", "testo": "chi c'era?"}], "conversazione": "c"}
            )
            assert answer.status == 200, answer.body
            [cited] = answer.json()["citazioni"]
            assert (cited["origine"], cited["documento"], cited["pagina"]) == ("testo", "verbale.pdf", 2)
            assert cited["passo"].startswith("Presenti Rossi, Bianchi e Verdi in sala grande")
            assert "segretario comunale" in texts(place)[0]
            await place.ask({"contenuto": "e poi?", "conversazione": "c"})
            assert texts(place)[0] == "[verbale.pdf]\nchi c'era?"  # memory is text: the file does not come again

    run(work(), timeout=30)


@requirement("P-CLS-12")
def test_the_engines_own_citations_win_and_are_asked_for() -> None:
    async def work() -> None:
        cited = {
            "type": "page_location",
            "cited_text": "Presenti Rossi,\n Bianchi",
            "document_index": 0,
            "document_title": "x",
            "start_page_number": 2,
            "end_page_number": 3,
        }
        block = {"type": "text", "text": "Rossi e Bianchi.", "citations": [cited, cited]}
        plays = (say("Rossi e Bianchi."), [ProviderBlock("anthropic", Raw(json.dumps(block).encode())), USAGE, END])
        engine = Puppet(plays, dialect="anthropic", documents=True, images=True)
        async with classic_house(engine, permissions=ALL) as place:
            answer = await place.ask({"contenuto": [document(), {"tipo": "testo", "testo": "chi?"}]})
            assert answer.json()["citazioni"] == [
                {"origine": "motore", "documento": "verbale.pdf", "pagina": 2, "passo": "Presenti Rossi, Bianchi"}
            ]
            [part] = [p for p in engine.requests[0].messages[0].parts if isinstance(p, FilePart)]
            assert part.cite and part.media_type == "application/pdf"

    run(work(), timeout=30)


def backend(pages: list[dict[str, str]], asked: list[str]) -> WebSearch:
    async def get(url: str) -> bytes:
        asked.append(url)
        return json.dumps({"results": pages}).encode()

    return WebSearch("http://search.test/", get)


PAGES = [{"url": "https://meteo.example/roma", "title": "Roma", "content": "Domani sole."}, {"url": "javascript:x"}]
SEARCHES = (
    say("Cerco."),
    [
        tool("w1", "web_search", b'{"query":"meteo roma"}'),
        UsageReported(Usage(input_tokens=50, output_tokens=7)),
        Stopped(StopReason.TOOL_USE),
    ],
)


@requirement("P-CLS-13")
def test_the_model_may_search_where_the_project_permits_it() -> None:
    async def work() -> None:
        asked: list[str] = []
        engine = Puppet(
            SEARCHES,
            (
                say("Sole, dice https://meteo.example/roma."),
                [UsageReported(Usage(input_tokens=80, output_tokens=9)), END],
            ),
        )
        async with classic_house(engine, search=backend(PAGES, asked), permissions=ALL) as place:
            answer = await place.ask({"contenuto": "che tempo fa?"})
            body = answer.json()
            assert body["risposta"] == "Sole, dice https://meteo.example/roma."
            assert body["citazioni"] == [{"origine": "web", "titolo": "Roma", "url": "https://meteo.example/roma"}]
            assert (body["usage"]["input_tokens"], body["usage"]["output_tokens"]) == (80, 16)
            assert len(asked) == 1 and re.search(r"/search\?q=meteo\+roma&format=json", asked[0])
            result = engine.requests[1].messages[-1]
            assert "Domani sole." in result.content and "javascript" not in result.content
            assert len(place.house.records.settled) == 2
            place.house.nothing_left()

    run(work())


@requirement("P-CLS-13")
def test_without_permission_or_backend_nothing_is_searched_nor_in_agent_mode() -> None:
    async def work() -> None:
        asked: list[str] = []
        async with classic_house(said("no"), search=backend(PAGES, asked)) as place:
            await place.ask()
            assert place.house.engine.requests[0].tools == ()
        async with classic_house(said("no"), permissions=ALL) as place:
            await place.ask()
            assert place.house.engine.requests[0].tools == ()
        agent = house(permissions=ALL)
        await ask(agent.agent, HELLO)
        assert agent.engine.requests[0].tools == ()
        assert asked == []

    run(work())


@requirement("P-CLS-13")
def test_a_model_that_never_stops_searching_is_stopped_and_a_failing_backend_is_told_to_it() -> None:
    async def work() -> None:
        async def fail(url: str) -> bytes:
            raise GatewayError(Reason.UPSTREAM_TIMEOUT)

        engine = Puppet(SEARCHES)
        async with classic_house(engine, search=WebSearch("http://search.test", fail), permissions=ALL) as place:
            answer = await place.ask()
            assert answer.status == 200
            assert len(engine.requests) == 4
            assert [request.options.tool_choice.mode for request in engine.requests] == ["auto", "auto", "auto", "none"]
            assert engine.requests[1].messages[-1].is_error

    run(work())


@requirement("P-CLS-13")
@pytest.mark.parametrize("at_once", [1, 2, 5])
def test_three_searches_are_the_most_however_they_are_asked_for(at_once: int) -> None:
    async def work() -> None:
        asked: list[str] = []

        async def get(url: str) -> bytes:
            asked.append(url)
            return b'{"results":[]}'

        calls = [tool(f"c{n}", "web_search", b'{"query":"pane"}') for n in range(at_once)]
        engine = Puppet(([*calls, USAGE, Stopped(StopReason.TOOL_USE)],))
        async with classic_house(engine, search=WebSearch("http://search.test", get), permissions=ALL) as place:
            assert (await place.ask()).status == 200
        assert len(asked) == 3

    run(work())


@requirement("P-CLS-14")
def test_limits_and_budget_are_the_projects() -> None:
    async def work() -> None:
        used = UsageReported(Usage(input_tokens=1000, output_tokens=100))
        engine = Puppet((say("a"), [used, END]))
        async with classic_house(engine, model={"prices": Prices(input=1, output=10)}, daily_budget_usd=0.002) as place:
            first = await place.ask()
            assert first.headers["x-pepper-budget-remaining"] == "0.000000"
            second = await place.ask()
            assert second.error() == (429, "budget_esaurito")
            assert int(second.headers["retry-after"]) > 1
        async with classic_house(hourly_limit=1) as place:
            assert (await place.ask()).headers["x-pepper-limit-remaining"] == "0"
            assert (await place.ask()).error() == (429, "troppe_richieste")

    run(work())


@requirement("P-CLS-15")
def test_a_caller_that_hangs_up_ends_the_call() -> None:
    async def work() -> None:
        never = asyncio.Event()
        async with classic_house(Puppet((say("a"), never))) as place:
            exchange, task = start(place.endpoint, ASKED, project=None)
            while not place.house.engine.open:
                await asyncio.sleep(0)
            exchange.hang_up()
            await task
            place.house.nothing_left()
            settled = place.house.records.settled[0]
            assert (settled.outcome, settled.ended_by) == ("cancelled", "client")
            assert not exchange.status

    run(work())
