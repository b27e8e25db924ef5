"""Coming in: the link that works once, passwords, attempts, sessions, writes from elsewhere."""

from __future__ import annotations

import sqlite3

import pytest

from crocevia.config import ServerSettings, Settings
from crocevia.panel import auth
from crocevia.panel.web import local_path
from crocevia.policy.rate_limits import RateLimiter, client_network
from crocevia.runtime.control.init import setup_link
from tests.aio import run

from .site import ORIGIN, OURS, PASSWORD, Place, site


async def _sign_in(place: Place, password: str = PASSWORD, **headers: str) -> int:
    return (await place.post("/panel/login", {"password": password}, **headers)).status_code


def test_the_setup_link_sets_the_password_once_and_signs_in() -> None:
    async def work() -> None:
        async with site() as place:
            assert (await place.get(place.setup_path)).status_code == 200
            answer = await place.enter()
            cookie = answer.headers["set-cookie"]
            assert "HttpOnly" in cookie and "SameSite=strict" in cookie and "Path=/panel" in cookie
            assert (await place.get("/panel")).status_code == 200
            place.client.cookies.clear()
            again = await place.post(place.setup_path, {"password": "another long one", "again": "another long one"})
            assert again.status_code == 401
            assert await _sign_in(place, "another long one") == 401
            assert await _sign_in(place) == 303

    run(work(), 30)


@pytest.mark.parametrize("form", [("short", "short"), ("long enough 1", "long enough 2"), ("x" * 1001, "x" * 1001)])
def test_a_password_that_is_too_short_too_long_or_mistyped_leaves_the_link_usable(form: tuple[str, str]) -> None:
    async def work() -> None:
        async with site() as place:
            answer = await place.post(place.setup_path, {"password": form[0], "again": form[1]})
            assert answer.status_code == 422
            await place.enter()

    run(work(), 30)


def test_a_wrong_token_opens_nothing() -> None:
    async def work() -> None:
        async with site() as place:
            wrong = "/panel/setup?token=" + "A" * 43
            assert "not valid" in (await place.get(wrong)).text
            answer = await place.post(wrong, {"password": PASSWORD, "again": PASSWORD})
            assert answer.status_code == 401
            assert "set-cookie" not in answer.headers

    run(work(), 30)


def test_without_a_session_pages_lead_to_the_login_and_twins_say_401() -> None:
    async def work() -> None:
        async with site() as place:
            page = await place.get("/panel/calls?project=casa")
            assert page.headers["location"] == "/panel/login?next=%2Fpanel%2Fcalls%3Fproject%3Dcasa"
            twin = await place.get("/panel/calls.json")
            assert (twin.status_code, twin.json()["code"]) == (401, "unauthenticated")
            write = await place.post("/panel/projects/new", {"name": "x"})
            assert write.status_code == 401

    run(work(), 30)


def test_attempts_of_an_address_are_limited_and_a_forwarding_header_changes_nothing() -> None:
    async def work() -> None:
        async with site() as place:
            await place.enter()
            place.client.cookies.clear()
            answers = [await _sign_in(place, "wrong password", **{"x-forwarded-for": f"10.0.0.{n}"}) for n in range(12)]
            assert answers == [401] * 10 + [429] * 2
            limited = await place.post("/panel/login", {"password": PASSWORD})
            assert limited.status_code == 429
            assert 0 < int(limited.headers["retry-after"]) <= 300

    run(work(), 40)


def test_behind_a_trusted_proxy_attempts_count_by_the_address_that_it_saw() -> None:
    async def work() -> None:
        settings = Settings(server=ServerSettings(trusted_proxies=("127.0.0.0/8",)))
        async with site(settings) as place:
            await place.enter()
            place.client.cookies.clear()
            forged = {"x-forwarded-for": "9.9.9.9, 10.0.0.1"}
            assert [await _sign_in(place, "wrong password", **forged) for _ in range(11)][-1] == 429
            assert await _sign_in(place, PASSWORD, **{"x-forwarded-for": "10.0.0.2"}) == 303

    run(work(), 40)


@pytest.mark.parametrize("trusted", [True, False])
def test_a_trusted_proxy_says_that_the_browser_came_over_tls(trusted: bool) -> None:
    async def work() -> None:
        settings = Settings(server=ServerSettings(trusted_proxies=("127.0.0.0/8",) if trusted else ()))
        forwarded = {"x-forwarded-proto": "https", "x-forwarded-host": "gate.example"}
        async with site(settings) as place:
            await place.enter()
            page = await place.client.get("/panel/api", headers=forwarded)
            assert ("https://gate.example" in page.text) is trusted

    run(work(), 40)


def test_one_account_is_limited_from_many_addresses_too() -> None:
    now = [0.0]
    attempts = RateLimiter(60, clock=lambda: now[0])
    for second in range(3):
        now[0] = second
        assert attempts.wait("operator", 3) == 0
        attempts.count("operator")
    now[0] = 3
    assert attempts.wait("operator", 3) == 57
    now[0] = 60.5
    assert attempts.wait("operator", 3) == 0
    attempts.clear("operator")
    assert attempts.wait("operator", 1) == 0


def test_a_whole_ipv6_network_is_one_address() -> None:
    assert (
        client_network("2001:db8:1:2::1") == client_network("2001:db8:1:2:ffff::9") != client_network("2001:db8:1:3::1")
    )
    assert client_network("10.0.0.1") != client_network("10.0.0.2")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),
        ({"sec-fetch-site": "same-origin"}, 303),
        ({"origin": "http://panel.test"}, 303),
        ({"origin": "http://evil.test"}, 403),
        ({"origin": "null"}, 403),
        ({}, 403),
    ],
)
def test_a_write_that_does_not_come_from_our_own_page_is_refused(headers: dict[str, str], status: int) -> None:
    async def work() -> None:
        async with site() as place:
            await place.enter()
            form = {"encode": "nuova", "instructions": "Fai."}
            answer = await place.client.post("/panel/recipes/new", data=form, headers=headers)
            assert answer.status_code == status
            there = "nuova" in (await place.get("/panel/recipes.json")).text
            assert there is (status == 303)

    run(work(), 30)


def test_signing_out_ends_the_session_for_every_copy_of_the_cookie() -> None:
    async def work() -> None:
        async with site() as place:
            await place.enter()
            cookie = place.client.cookies["crocevia_session"]
            await place.post("/panel/logout")
            place.client.cookies.clear()
            answer = await place.get("/panel", cookie=f"crocevia_session={cookie}")
            assert answer.status_code == 303

    run(work(), 30)


def test_changing_the_password_wants_the_old_one_and_ends_other_sessions() -> None:
    async def work() -> None:
        async with site() as place:
            await place.enter()
            other = place.client.cookies["crocevia_session"]
            place.client.cookies.clear()
            await _sign_in(place)
            form = {"old": "wrong password", "password": "a new long one", "again": "a new long one"}
            assert (await place.post("/panel/settings/password", form)).status_code == 422
            answer = await place.post("/panel/settings/password", form | {"old": PASSWORD})
            assert answer.headers["location"] == "/panel/settings?done=password"
            assert (await place.get("/panel")).status_code == 200
            place.client.cookies.clear()
            assert (await place.get("/panel", cookie=f"crocevia_session={other}")).status_code == 303
            assert await _sign_in(place) == 401
            assert await _sign_in(place, "a new long one") == 303

    run(work(), 40)


def test_neither_password_nor_token_nor_cookie_is_stored_readable() -> None:
    async def work() -> None:
        async with site() as place:
            await place.enter()
            cookie = place.client.cookies["crocevia_session"]
            await place.service.database.write(lambda tx: tx.connection.execute("SELECT 1").fetchone())
            with sqlite3.connect(place.service.home.database) as connection:
                dump = "\n".join(connection.iterdump())
            connection.close()
            assert "$argon2id$" in dump
            assert PASSWORD not in dump and cookie not in dump
            assert place.setup_path.partition("token=")[2] not in dump
            assert not [line for line in place.log if cookie in str(line) or PASSWORD in str(line)]

    run(work(), 30)


@pytest.mark.parametrize(
    "wanted", ["//evil.test", "https://evil.test/panel", "/panelx", "/panel/../x\\y", "javascript:alert(1)", "", None]
)
def test_after_signing_in_nobody_is_led_elsewhere(wanted: str | None) -> None:
    assert local_path(wanted) == "/panel"
    assert local_path("/panel/calls?project=a") == "/panel/calls?project=a"


def test_over_tls_the_cookie_travels_only_there() -> None:
    async def work() -> None:
        async with site(Settings(server=ServerSettings(public_url="https://gw.example"))) as place:
            assert "Secure" in (await place.enter()).headers["set-cookie"]

    run(work(), 30)


@pytest.mark.parametrize("body", [b"\xff\xfe=1", b"a=1&" * 600, b"x=" + b"y" * (4 << 20)])
def test_a_form_that_cannot_be_read_is_refused_not_a_fault(body: bytes) -> None:
    async def work() -> None:
        async with site() as place:
            await place.enter()
            kind = {"content-type": "application/x-www-form-urlencoded"}
            answer = await place.client.post("/panel/recipes/new", content=body, headers=OURS | kind)
            assert answer.status_code in (413, 422)

    run(work(), 30)


def test_a_new_setup_link_ends_the_sessions_of_the_password_before() -> None:
    async def work() -> None:
        async with site() as place:
            await place.enter()
            home = place.service.home
            link = await place.service.database.write(lambda tx: setup_link(tx, home, ORIGIN))
            old = place.client.cookies["crocevia_session"]
            place.client.cookies.clear()
            form = {"password": "un'altra frase", "again": "un'altra frase"}
            assert (await place.post(link.removeprefix(ORIGIN), form)).status_code == 303
            assert (await place.get("/panel")).status_code == 200
            place.client.cookies.clear()
            place.client.cookies.set("crocevia_session", old)
            assert (await place.get("/panel")).status_code == 303

    run(work(), 40)


def test_strangers_lock_out_neither_a_known_browser_nor_a_right_link(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auth, "PER_ACCOUNT", (3, 900.0))

    async def work() -> None:
        settings = Settings(server=ServerSettings(trusted_proxies=("127.0.0.0/8",)))
        async with site(settings) as place:
            wrong = "/panel/setup?token=" + "A" * 43
            form = {"password": PASSWORD, "again": PASSWORD}
            guesses = [await place.post(wrong, form, **{"x-forwarded-for": f"10.0.1.{n}"}) for n in range(4)]
            assert [answer.status_code for answer in guesses] == [401] * 3 + [429]
            await place.enter()  # by the right link, all the same
            cookies = dict(place.client.cookies)
            place.client.cookies.clear()
            strangers = [await _sign_in(place, "wrong", **{"x-forwarded-for": f"10.0.0.{n}"}) for n in range(4)]
            assert strangers == [401] * 3 + [429]
            assert await _sign_in(place) == 429
            name, _, proof = cookies[auth.BROWSER].partition(".")
            forged = f"{auth.BROWSER}={name[1:]}x.{proof}"
            assert await _sign_in(place, cookie=forged) == 429
            known = {"cookie": f"{auth.BROWSER}={cookies[auth.BROWSER]}"}
            assert await _sign_in(place, **known) == 303
            place.client.cookies.clear()
            assert [await _sign_in(place, "wrong", **known) for _ in range(11)] == [401] * 10 + [429]

    run(work(), 50)


def test_the_form_of_a_stranger_is_small() -> None:
    async def work() -> None:
        async with site() as place:
            assert (await place.post("/panel/login", {"password": "x" * 20_000})).status_code == 413

    run(work(), 30)
