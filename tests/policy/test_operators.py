"""Who may use an operator's surface, from values alone; and how long wrong secrets lock their address out."""

from __future__ import annotations

from contextlib import suppress
from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crocevia.core.errors import Code, GatewayError
from crocevia.core.forwarding import networks
from crocevia.policy.lockout import LAST_DELAY, Lockout, LockoutRules
from crocevia.policy.operators import (
    ADMIN,
    READ,
    WRITE,
    Credentials,
    Grant,
    Rules,
    by_proxy,
    by_secret,
    client,
    declared_scopes,
    is_own_page,
)

PROXIED = Rules(proxies=networks(["192.0.2.0/24", "::1", "nonsense"]))


def credentials(peer: str | None = "198.51.100.1", **headers: str) -> Credentials:
    return Credentials(peer=peer, headers={name.replace("_", "-"): value for name, value in headers.items()})


@pytest.mark.parametrize(
    ("asked", "address"),
    [
        (credentials("198.51.100.1"), "198.51.100.1"),
        (credentials("::ffff:198.51.100.1"), "198.51.100.1"),
        (credentials("192.0.2.1", x_forwarded_for="203.0.113.9, 198.51.100.4, 192.0.2.7"), "198.51.100.4"),
        (credentials("192.0.2.1", x_forwarded_for="198.51.100.4:8080"), "198.51.100.4"),
        (credentials("192.0.2.1", x_real_ip="198.51.100.4"), "198.51.100.4"),
        (credentials("::1", forwarded='for="[2001:db8::1]:80";proto=https'), "2001:db8::1"),
    ],
)
def test_the_client_is_the_first_hop_that_no_trusted_proxy_is(asked: Credentials, address: str) -> None:
    assert str(client(asked, PROXIED)) == address


@pytest.mark.parametrize(
    "asked",
    [
        credentials("198.51.100.1", x_forwarded_for="203.0.113.9"),
        credentials(None, x_forwarded_for="203.0.113.9"),
        credentials("192.0.2.1", x_forwarded_for="127.0.0.1"),
        credentials("192.0.2.1", x_forwarded_for="unknown"),
        credentials("192.0.2.1", x_forwarded_for="192.0.2.7"),
        credentials("192.0.2.1", x_forwarded_proto="https"),
    ],
)
def test_a_forwarded_request_that_nobody_vouches_for_is_refused(asked: Credentials) -> None:
    with pytest.raises(GatewayError) as refused:
        client(asked, PROXIED)
    assert (refused.value.code, refused.value.message.reason) == (Code.FORBIDDEN, "proxy_attribution")


@given(header=st.text(max_size=60), peer=st.text(max_size=20))
def test_no_header_and_no_address_breaks_the_attribution(header: str, peer: str) -> None:
    for name in ("x-forwarded-for", "forwarded", "x-real-ip"):
        try:
            client(Credentials(peer=peer, headers={name: header}), PROXIED)
        except GatewayError as error:
            assert error.code is Code.FORBIDDEN


def test_a_bearer_is_the_secret_of_its_mode_and_nothing_else() -> None:
    token, password = Rules(token="t1"), Rules(mode="password", password="p1", token="t1")
    assert by_secret(credentials(authorization="bearer  t1 "), token, lambda given: False) is True
    assert by_secret(credentials(authorization="Bearer t1"), password, lambda given: True) is False
    assert by_secret(credentials(authorization="Bearer op"), Rules(), lambda given: given == "op") is True
    for header in ("", "Bearer", "Bearer ", "Basic dDE=", "t1"):
        assert by_secret(credentials(authorization=header), token, lambda given: True) is None
    assert by_secret(credentials(authorization="Bearer ü"), token, lambda given: True) is False


@pytest.mark.parametrize("secret", ["perché no", "à", "Größe ß", "пароль", "naïve\u0301"])
def test_a_secret_is_the_same_however_its_letters_are_sent(secret: str) -> None:
    sent = {normalize(form, secret).encode() for form in ("NFC", "NFD")}
    with suppress(UnicodeError):
        sent.add(normalize("NFC", secret).encode("latin-1"))
    for kept in (normalize("NFC", secret), normalize("NFD", secret)):
        rules = Rules(mode="password", password=kept)
        for data in sent:
            credentials = Credentials(peer="::1", headers={"authorization": f"Bearer {data.decode('latin-1')}"})
            assert by_secret(credentials, rules, lambda _: False) is True, data
        wrong = Credentials(peer="::1", headers={"authorization": "Bearer perche no"})
        assert by_secret(wrong, rules, lambda _: False) is False


def test_a_proxy_on_this_machine_is_believed_only_when_that_is_allowed() -> None:
    rules = Rules(mode="trusted-proxy", proxies=networks(["127.0.0.1", "192.0.2.1"]), user_header="X-User")
    asked = credentials("127.0.0.1", x_user="ann")
    assert by_proxy(asked, rules, lambda address: False) is None
    assert by_proxy(credentials("192.0.2.1", x_user="ann"), rules, lambda address: True) is None
    assert by_proxy(credentials("192.0.2.1", x_user="ann"), rules, lambda address: False) == "ann"


def test_scopes_imply_each_other_only_as_they_should() -> None:
    assert declared_scopes(credentials(x_openclaw_scopes=" operator.read ,operator.write,")) == {READ, WRITE}
    assert declared_scopes(credentials(x_openclaw_scopes="")) == frozenset()
    Grant("a", frozenset({WRITE})).require(READ)
    Grant("a", frozenset({ADMIN})).require("operator.anything")
    for held, asked in ((READ, WRITE), (WRITE, ADMIN), ("operator.pairing", READ)):
        with pytest.raises(GatewayError):
            Grant("a", frozenset({held})).require(asked)


def test_a_page_of_another_site_is_no_caller() -> None:
    rules = Rules(mode="none", origins=frozenset({"https://app.example.org"}))
    for origin, ours in (
        ("http://ME:8111", True),
        ("https://app.example.org", True),  # named by the operator
        ("http://app.example.org", False),
        ("http://evil", False),
        ("null", False),
    ):
        assert is_own_page(credentials(host="me:8111", origin=origin), rules) is ours, origin
    assert is_own_page(credentials(host="me:8111"), rules)


def test_wrong_secrets_lock_out_and_right_ones_forgive() -> None:
    lockout = Lockout(LockoutRules(max_attempts=3, window=10, lockout=60))
    for second in (0, 1):
        assert lockout.failed("a", second, loopback=False) == 0
    lockout.succeeded("a")
    for second in (2, 3, 4):
        assert lockout.wait("a", second) == 0
        lockout.failed("a", second, loopback=False)
    assert (lockout.wait("a", 4.5), lockout.wait("b", 4.5), lockout.wait("a", 64)) == (60, 0, 0)
    for second in (100, 111, 122):  # never three within the window
        lockout.failed("a", second, loopback=False)
        assert lockout.wait("a", second) == 0


def test_this_machine_waits_longer_and_longer_instead() -> None:
    lockout = Lockout(LockoutRules(max_attempts=3))
    delays = [lockout.failed("local", 1.0, loopback=True) for _ in range(40)]
    assert delays[:4] == [0.25, 0.5, 1.0, 2.0] and delays[-1] == LAST_DELAY
    assert lockout.wait("local", 1.0) == 0
    strict = Lockout(LockoutRules(max_attempts=1, exempt_loopback=False))
    strict.failed("local", 1.0, loopback=True)
    assert strict.wait("local", 1.0) == 300


def test_a_flood_of_addresses_takes_no_more_memory_than_was_allowed() -> None:
    lockout = Lockout(LockoutRules(max_entries=100))
    for number in range(5000):
        lockout.failed(str(number), number / 1000, loopback=False)
    assert len(lockout._records) <= 100


def test_wrong_secrets_of_many_machines_count_together() -> None:
    lockout = Lockout(LockoutRules(max_attempts=10, window=60, max_total=5))
    for number in range(5):
        assert lockout.wait_for_all(number) == 0
        lockout.failed(f"machine {number}", number, loopback=False)
    lockout.failed("local", 5, loopback=True)  # this machine's own are only answered ever later
    assert lockout.wait_for_all(5) == 55
    assert lockout.wait("machine 0", 5) == 0
    assert lockout.wait_for_all(61) == 0
