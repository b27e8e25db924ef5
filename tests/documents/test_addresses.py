import pytest

from crocevia.documents.addresses import is_closed_name, is_public, matches

CLOSED_TEXT = """
0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.1 100.100.100.200 100.127.255.255 127.0.0.1 127.255.255.254
168.63.129.16 169.254.169.254 172.16.0.1 172.31.255.255 192.0.0.192 192.0.2.1 192.88.99.1 192.168.1.1 198.18.0.1
198.19.255.255 198.51.100.7 203.0.113.9 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255
:: ::1 ::127.0.0.1 ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:169.254.169.254 64:ff9b::10.0.0.1 64:ff9b::7f00:1
64:ff9b:1::808:808 100::1 2001::1 2001:0:808:808:: 2001:db8::1 2002:7f00:1:: 2002:808:808:: 3fff::1 5f00::1 fc00::1
fd00:ec2::254 fe80::1 fe80::1%eth0 2606:4700::1%1 fec0::1 ff02::1 ff0e::1 4000::1
not-an-address 127.1 2130706433 0x7f000001 0177.0.0.1
"""
OPEN_TEXT = """
1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.1 172.15.255.255 172.32.0.0
192.167.255.255 192.169.0.0 223.255.255.255 2606:4700::1111 2a00:1450:4001::1 ::ffff:8.8.8.8 64:ff9b::8.8.8.8
"""


@pytest.mark.parametrize("address", CLOSED_TEXT.split())
def test_an_address_of_the_inside_or_of_no_canonical_spelling_is_closed(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", OPEN_TEXT.split())
def test_an_address_of_the_open_internet_is_open(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    "host", ["localhost", "a.localhost", "printer", "x.local", "metadata.google.internal", "1.arpa"]
)
def test_a_name_that_can_only_mean_the_inside_is_closed(host: str) -> None:
    assert is_closed_name(host)


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("cdn.example.com", True),
        ("x.cdn.example.com", False),
        ("a.assets.example.com", True),
        ("a.b.assets.example.com", True),
        ("assets.example.com", False),
        (".assets.example.com", False),
        ("evilassets.example.com", False),
        ("cdn.example.com.evil.net", False),
    ],
)
def test_a_wildcard_covers_what_is_below_its_name_and_not_the_name(host: str, expected: bool) -> None:
    assert matches(host, ("CDN.example.com", "*.assets.example.com")) is expected
