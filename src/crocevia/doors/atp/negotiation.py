"""Which version of the contract an answer speaks: one header, read strictly, acknowledged exactly once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from crocevia.asgi.types import Headers
from crocevia.core.errors import GatewayError, Reason
from crocevia.doors.atp.caller import Version, VersionRule

HEADER: Final = b"x-envai-contract-version"
REQUIRED: Final = b"x-envai-required-contract-version"

# No header, «2», «3». None: the operation does not speak it, and what does is contract 3.
TABLE: Final[Mapping[VersionRule, tuple[Version | None, Version | None, Version | None]]] = {
    VersionRule.CONTRACT_3: (None, None, Version.THREE),
    VersionRule.LIVE_2: (Version.LIVE, None, None),
    VersionRule.READ_2: (Version.LIVE, Version.HISTORICAL, None),
    VersionRule.BOTH: (Version.LIVE, Version.HISTORICAL, Version.THREE),
}
_COLUMN: Final = {b"2": 1, b"3": 2}


def select(rule: VersionRule, values: list[bytes]) -> Version | None:
    """The version for these header values. None: the operation is not negotiated.

    Raises GatewayError(UNSUPPORTED): `unsupported_contract_version` for a value that is none of ours or repeated,
    `contract_upgrade_required` for one that this operation does not speak.
    """
    if rule is VersionRule.PLAIN:
        return None
    column = 0
    if values:
        column = _COLUMN.get(values[0].strip(b" \t"), -1) if len(values) == 1 else -1
    if column < 0:
        raise GatewayError(Reason.UNSUPPORTED_CONTRACT_VERSION)
    found = TABLE[rule][column]
    if found is None:
        raise GatewayError(Reason.CONTRACT_UPGRADE_REQUIRED)
    return found


def acknowledgement(rule: VersionRule, version: Version | None) -> Headers:
    """What every answer of a negotiated operation carries, errors too. version None: nothing was agreed upon."""
    if rule is VersionRule.PLAIN:
        return ()
    if version is None:
        version = Version.THREE if rule is VersionRule.CONTRACT_3 else Version.LIVE
    return ((HEADER, b"%d" % version.number), (b"vary", b"X-Envai-Contract-Version"))
