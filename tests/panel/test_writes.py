"""Writes: the same validation as `crocevia apply`, one audit line each, live at once."""

from __future__ import annotations

import json
import re
import time

import pytest

from crocevia.core.calls import GenerationOptions, Sampling
from crocevia.core.messages import TextPart, UserMessage
from crocevia.runtime.catalogue import Catalogue
from crocevia.runtime.drafts import CallDraft
from tests.aio import run
from tests.fakes.provider import Provider, answer

from .site import Place, site

NEW_PROJECT = {"name": "nuovo", "mode": "agent", "model": "Pepper mini", "timezone": "Europe/Rome"}


def _current(place: Place) -> Catalogue:
    return place.service.catalogue.current


def _secret(html: str) -> str:
    found = re.search(r'<code id="secret">([^<]+)</code>', html)
    assert found is not None
    return found[1]


async def _ask(place: Place, project: str, key: str) -> int:
    headers = {"x-pepper-key": key, "x-pepper-project": project}
    body = {"messages": [{"role": "user", "content": "ciao"}]}
    return (await place.client.post("/agent", json=body, headers=headers)).status_code


def test_a_project_made_here_answers_with_the_key_that_was_shown_once() -> None:
    async def work() -> None:
        async with site() as place:
            await place.enter()
            before = _current(place).revision
            made = await place.post(
                "/panel/projects/new", NEW_PROJECT | {"hourly_limit": "9", "daily_budget_usd": "1,5"}
            )
            key = _secret(made.text)
            assert made.status_code == 200 and made.headers["cache-control"] == "no-store"
            assert await _ask(place, "nuovo", key) == 200
            project = _current(place).projects["nuovo"]
            assert (project.hourly_limit, project.daily_budget_usd, project.timezone) == (9, 1.5, "Europe/Rome")
            assert _current(place).revision == before + 1
            assert key not in (await place.get("/panel/projects/edit?name=nuovo")).text
            assert ("created", "projects", "nuovo") in await place.audited()
            assert key not in (await place.get("/panel/audit.json")).text

    run(work(), 30)


def test_a_new_key_leaves_the_old_one_its_overlap_and_a_revoked_one_nothing() -> None:
    async def work() -> None:
        async with site() as place:
            await place.enter()
            first = _secret((await place.post("/panel/projects/new", NEW_PROJECT)).text)
            second = _secret((await place.post("/panel/projects/rotate?name=nuovo", {"overlap": "3600"})).text)
            assert [await _ask(place, "nuovo", key) for key in (first, second)] == [200, 200]
            keys = (await place.get("/panel/projects/edit.json?name=nuovo")).json()["more"]["keys"]
            assert [key["expires_at"] is None for key in keys] == [True, False]
            await place.post("/panel/projects/revoke?name=nuovo", {"key": keys[1]["id"]})
            assert [await _ask(place, "nuovo", key) for key in (first, second)] == [401, 200]
            third = _secret((await place.post("/panel/projects/rotate?name=nuovo", {"overlap": "0"})).text)
            assert [await _ask(place, "nuovo", key) for key in (second, third)] == [401, 200]
            actions = [entry[0] for entry in await place.audited()]
            assert actions[:4] == ["rotated", "revoked", "rotated", "created"]

    run(work(), 30)


@pytest.mark.parametrize(
    ("form", "field"),
    [
        ({"name": ""}, "name"),
        ({"name": "con spazi"}, "name"),
        ({"name": "casa"}, "name"),
        ({"model": "nessuno"}, "model"),
        ({"mode": "magic"}, "mode"),
        ({"hourly_limit": "many"}, "hourly_limit"),
        ({"hourly_limit": "-1"}, "hourly_limit"),
        ({"hourly_limit": "1.5"}, "hourly_limit"),
        ({"daily_budget_usd": "nan"}, "daily_budget_usd"),
        ({"daily_budget_usd": "1e999"}, "daily_budget_usd"),
        ({"timezone": "Rome"}, "timezone"),
        ({"daily_budget_usd": "1", "soft_threshold_usd": "2"}, "soft_threshold_usd"),
        ({"keep_texts_days": "x"}, "keep_texts_days"),
    ],
)
def test_a_wrong_field_is_marked_and_nothing_is_saved(form: dict[str, str], field: str) -> None:
    async def work() -> None:
        async with site() as place:
            await place.enter()
            before = _current(place)
            answer = await place.post("/panel/projects/new", NEW_PROJECT | form)
            assert answer.status_code == 422
            assert re.search(rf'id="f-{field}"[^>]*aria-invalid="true"', answer.text), field
            assert f'id="f-{field}-error"' in answer.text
            assert _current(place).projects == before.projects
            assert ("created", "projects", "nuovo") not in await place.audited()

    run(work(), 30)


def test_saving_a_form_as_it_stands_changes_nothing_declared() -> None:
    async def work() -> None:
        async with site() as place:
            await place.enter()
            before = _current(place)
            for table, name in (
                ("projects", "casa"),
                ("models", "Pepper%207"),
                ("engines", "claude"),
                ("recipes", "riassunto"),
                ("agents", "helper"),
                ("teams", "main"),
            ):
                path = f"/panel/{table}/edit?name={name}"
                answer = await place.post(path, await place.form(path))
                assert answer.status_code == 303, (table, answer.text)
            after = _current(place)
            assert (after.projects, after.models, after.engines) == (before.projects, before.models, before.engines)
            assert after.engine_keys == before.engine_keys
            assert after.revision == before.revision

    run(work(), 30)


def test_a_change_over_somebody_elses_is_refused() -> None:
    async def work() -> None:
        async with site() as place:
            await place.enter()
            path = "/panel/recipes/edit?name=riassunto"
            form = await place.form(path)
            assert (await place.post(path, form | {"instructions": "Primo."})).status_code == 303
            late = await place.post(path, form | {"instructions": "Secondo."})
            assert late.status_code == 422 and "Secondo." in late.text
            assert _current(place).recipes["riassunto"].instructions == "Primo."

    run(work(), 30)


def test_a_voice_cannot_change_under_the_apps_that_use_the_model() -> None:
    async def work() -> None:
        async with site() as place:
            await place.enter()
            path = "/panel/models/edit?name=Pepper%20mini"
            answer = await place.post(path, await place.form(path) | {"voice_in_apps": "on"})
            assert answer.status_code == 422 and "f-voice_in_apps-error" in answer.text

    run(work(), 30)


def test_an_engines_key_is_taken_kept_and_never_shown() -> None:
    async def work() -> None:
        async with site() as place:
            await place.enter()
            path = "/panel/engines/edit?name=claude"
            form = await place.form(path)
            assert form["api_key"] == ""
            await place.post(path, form | {"api_key": "sk-ant-a-new-one"})
            assert _current(place).engine_keys["claude"] == "sk-ant-a-new-one"
            await place.post(path, await place.form(path) | {"base_url": "http://127.0.0.1:10"})
            assert _current(place).engine_keys["claude"] == "sk-ant-a-new-one"
            refused = await place.post(path, await place.form(path) | {"api_key": "short", "base_url": "x"})
            assert refused.status_code == 422
            assert 'value="short"' not in refused.text
            assert "sk-ant" not in (await place.get("/panel/audit.json")).text

    run(work(), 30)


@pytest.mark.parametrize(
    ("path", "user"),
    [("/panel/engines/remove?name=embedded", "Pepper mini"), ("/panel/models/remove?name=Pepper%20mini", "casa")],
)
def test_what_is_still_used_is_not_removed_and_the_page_says_by_whom(path: str, user: str) -> None:
    async def work() -> None:
        async with site() as place:
            await place.enter()
            answer = await place.post(path)
            assert answer.status_code == 409 and user in answer.text

    run(work(), 30)


def test_removing_a_project_closes_it_at_once() -> None:
    async def work() -> None:
        async with site() as place:
            await place.enter()
            key = _secret((await place.post("/panel/projects/new", NEW_PROJECT)).text)
            assert (await place.post("/panel/projects/remove?name=nuovo")).status_code == 303
            assert await _ask(place, "nuovo", key) == 401
            assert (await place.audited())[0] == ("removed", "projects", "nuovo")
            assert (await place.post("/panel/projects/remove?name=nuovo")).status_code == 404

    run(work(), 30)


def test_an_api_key_opens_until_it_is_revoked() -> None:
    async def work() -> None:
        async with site() as place:
            await place.enter()
            token = _secret((await place.post("/panel/keys", {"name": "app", "days": "30"})).text)

            async def opens() -> int:
                headers = {"authorization": f"Bearer {token}"}
                return (await place.client.get("/api/v1/workspaces", headers=headers)).status_code

            assert await opens() == 200
            row = (await place.get("/panel/keys.json")).json()["rows"][0]
            assert (row["name"], row["state"]) == ("app", "live")
            await place.post(f"/panel/keys/revoke?id={row['id']}")
            assert await opens() == 401
            assert (await place.post("/panel/keys/revoke?id=key_nothing")).status_code == 404
            assert [entry[0] for entry in await place.audited()][:2] == ["revoked", "created"]

    run(work(), 30)


def test_the_test_button_makes_one_recorded_call_and_says_how_it_went() -> None:
    async def work() -> None:
        async with site() as place:
            await place.enter()
            answer = await place.post("/panel/models/test?name=Pepper%20mini")
            assert answer.status_code == 200 and "It answered in" in answer.text
            failed = await place.post("/panel/models/test?name=Pepper%207")
            assert failed.status_code == 200 and 'role="alert"' in failed.text
            rows = []
            while len([row for row in rows if row["outcome"]]) < 2:
                rows = (await place.get("/panel/calls.json?encode=test")).json()["calls"]["rows"]
            assert {(row["door"], row["project"], row["outcome"] == "ok") for row in rows} == {
                ("panel", "(panel)", True),
                ("panel", "(panel)", False),
            }

    run(work(), 40)


@pytest.mark.parametrize(
    ("prices", "costs"),
    [
        ({"prices.input": "10", "prices.output": "50"}, [0.045, 0.125]),
        ({"prices.input": "0", "prices.output": "0"}, [0.0, 0.0]),
        ({"prices.input": "", "prices.output": ""}, [None, None]),
        ({"prices.input": "10", "prices.output": "x"}, [None, None]),
        ({"prices.input": "1e400", "prices.output": "1"}, [None, None]),
    ],
)
def test_a_price_is_seen_at_work_before_it_is_saved(prices: dict[str, str], costs: list[float | None]) -> None:
    async def work() -> None:
        async with site() as place:
            await place.enter()
            path = "/panel/models/edit?name=Pepper%207"
            answer = await place.post("/panel/models/preview?name=Pepper%207", await place.form(path) | prices)
            assert answer.status_code == 200
            shown = re.findall(r"<dd>(.*?)</dd>", answer.text.partition('id="prices"')[2].partition("</section>")[0])
            assert len(shown) == len(costs)
            for text, cost in zip(shown, costs, strict=True):
                assert ("unknown" in text) if cost is None else float(text.split("\u00a0")[0]) == cost
            declared = _current(place).models["Pepper 7"].prices
            assert declared is not None and declared.input == 5

    run(work(), 30)


@pytest.mark.parametrize(
    ("form", "status"),
    [
        ({"amount": "0,5", "reason": "prezzo sbagliato"}, 303),
        ({"amount": "-1", "reason": "troppo"}, 422),
        ({"amount": "x", "reason": "numero"}, 422),
        ({"amount": "1", "reason": ""}, 422),
    ],
)
def test_todays_spend_is_corrected_with_a_reason_and_a_line_in_the_audit_list(
    form: dict[str, str], status: int
) -> None:
    async def work() -> None:
        async with site() as place:
            await place.enter()
            assert (await place.post("/panel/projects/correct?name=casa", form)).status_code == status
            today = (await place.get("/panel/projects/edit.json?name=casa")).json()["more"]["today"]
            corrected = 0.5 if status == 303 else 0
            assert (today["corrected_usd"], today["remaining_usd"]) == (corrected, 2.0 - corrected)
            assert (("corrected", "projects", "casa") in await place.audited()) is (status == 303)

    run(work(), 30)


def test_a_text_file_is_created_edited_and_never_overwritten_unseen() -> None:
    async def work() -> None:
        async with site() as place:
            await place.enter()
            space = place.initialised.workspace_id
            create, write = (f"/panel/files/{what}?workspace={space}&path=" for what in ("create", "write"))
            made = await place.post(f"{create}/wiki", {"name": "a/note.md", "text": "\r\none\r\n"})
            assert made.status_code == 303 and made.headers["location"].endswith("done=created")
            path = "/wiki/a/note.md"
            shown = (await place.get(f"/panel/files.json?path={path}")).json()
            assert shown["text"] == "\none\n"
            assert shown["samples"][0]["code"].count(f"/api/v1/workspaces/{space}/files?path={path}") == 1
            taken = await place.post(f"{create}/wiki/a", {"name": "note.md", "text": "two"})
            assert taken.status_code == 409 and "two" in taken.text
            saved = await place.post(f"{write}{path}", {"text": "three", "etag": shown["etag"]})
            assert saved.status_code == 303
            stale = await place.post(f"{write}{path}", {"text": "four", "etag": shown["etag"]})
            assert stale.status_code == 409 and "four" in stale.text
            assert (await place.get(f"/panel/files.json?path={path}")).json()["text"] == "three"
            for form, status in (({"name": "", "text": "x"}, 422), ({"name": "../x", "text": "x"}, 422)):
                assert (await place.post(f"{create}/wiki", form)).status_code == status
            long = await place.post(f"{create}/wiki", {"name": "b.md", "text": "x\n" * 1001})
            assert long.status_code == 422
            gone = await place.post(f"{write}/wiki/none.md", {"text": "x", "etag": ""})
            assert gone.status_code == 404
            audited = await place.audited()
            assert [entry[0] for entry in audited if entry[1] == "files"] == ["changed", "created"]

    run(work(), 40)


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("/panel/projects/edit?name=casa", ["X-Pepper-Project: casa", "[[projects]]"]),
        ("/panel/models/edit?name=Pepper%207", ["[[models]]", 'upstream = "claude-opus-5-5"']),
        ("/panel/engines/edit?name=claude", ["[[engines]]", 'kind = "anthropic"']),
        ("/panel/recipes/edit?name=riassunto", ["/api.php", "[[recipes]]"]),
        ("/panel/agents/edit?name=guard", ["/api/v1/agents", "[[agents]]"]),
        ("/panel/teams/edit?name=guarded", ["/api/v1/teams", "[[teams]]"]),
        ("/panel/keys", ["/api/v1/teams"]),
        ("/panel/files", ["/files?path="]),
    ],
)
def test_every_object_is_there_as_code_and_no_code_holds_a_secret(address: str, words: list[str]) -> None:
    async def work() -> None:
        async with site() as place:
            await place.enter()
            path, _, query = address.partition("?")
            twin = (await place.get(f"{path}.json?{query}")).json()
            code = "\n".join(sample["code"] for sample in twin["samples"])
            assert all(word in code for word in words)
            assert "never-shown" not in code
            page = (await place.get(address)).text
            assert page.count('<section class="code">') == 1

    run(work(), 40)


def test_a_model_on_its_way_out_says_so() -> None:
    async def work() -> None:
        async with site() as place:
            await place.enter()
            address = "/panel/models/edit?name=Pepper%207"
            form = await place.form(address) | {"deprecated": "on", "sunset_at": "soon"}
            refused = await place.post(address, form)
            assert refused.status_code == 422 and "aria-invalid" in refused.text
            saved = await place.post(address, form | {"sunset_at": "2027-03-31T00:00:00Z"})
            assert saved.status_code == 303
            assert "2027-03-31" in (await place.get("/panel/models")).text
            assert (await place.form(address))["sunset_at"] == "2027-03-31T00:00:00Z"

    run(work(), 40)


def test_what_a_model_did_not_take_is_shown_until_it_is_forgotten() -> None:
    refusal = {"error": {"code": "unsupported_parameter", "param": "temperature", "message": "no"}}
    whole = {"choices": [{"message": {"role": "assistant", "content": "Ciao."}, "finish_reason": "stop"}]}
    taken = answer(200, json.dumps(whole).encode())

    async def work() -> None:
        plays = (answer(400, json.dumps(refusal).encode()), taken, taken, taken)
        async with Provider(*plays) as provider, site() as place:
            await place.enter()
            engine = {"name": "other", "kind": "openai-chat", "base_url": f"{provider.url}/v1"}
            assert (await place.post("/panel/engines/new", engine)).status_code == 303
            model = {"name": "Other", "engine": "other", "upstream": "brain-1"}
            assert (await place.post("/panel/models/new", model)).status_code == 303

            async def carried() -> bool:
                draft = CallDraft(
                    door="test",
                    encode="test",
                    messages=(UserMessage(parts=(TextPart(text="Ciao"),)),),
                    options=GenerationOptions(sampling=Sampling(temperature=0.5)),
                )
                async with place.service.gateway.open_model("somebody", "Other", draft) as call:
                    await call.answer()
                return "temperature" in provider.requests[-1].json()

            edit = "/panel/engines/edit?name=other"
            assert [await carried(), await carried()] == [False, False]
            page = (await place.get(edit)).text
            assert "temperature" in page and "brain-1" in page and "Send them again" in page
            (learnt,) = (await place.get("/panel/engines/edit.json?name=other")).json()["more"]["learnt"]
            assert (learnt["model"], learnt["parameter"]) == ("brain-1", "temperature")
            assert 3500 < learnt["until"] - time.time() < 3700
            forgotten = await place.post("/panel/engines/forget?name=other")
            assert forgotten.headers["location"] == f"{edit}&done=forgotten"
            assert "temperature" not in (await place.get(edit)).text
            assert await carried()

    run(work(), 30)
