"""The bytes that a client tool verifies, against the vectors that all clients share."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crocevia.runtime.turns.signing import canonical

VECTORS = json.loads((Path(__file__).parents[3] / "conformance" / "jcs" / "vectors.json").read_text(encoding="utf-8"))
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize("vector", VECTORS["documents"], ids=lambda vector: str(vector)[:40])
def test_documents_have_the_canonical_form_of_every_client(vector: dict[str, Any]) -> None:
    assert canonical(msgspec.Raw(vector["json"].encode())) == vector["canonical"].encode()


@pytest.mark.parametrize("text", ['{"a":', '{"n":1e400}', '{"a":"\\ud800"}', '{"n":' + "9" * 400 + "}", "[" * 3000])
def test_what_has_no_canonical_form_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no canonical form"):
        canonical(msgspec.Raw(text.encode()))


@given(st.dictionaries(st.text(), JSON, max_size=5))
def test_the_form_does_not_depend_on_order_or_spelling(value: dict[str, Any]) -> None:
    spelled = json.dumps(value, ensure_ascii=True, indent=2)
    turned = json.dumps(dict(reversed(value.items())), ensure_ascii=False)
    assert canonical(msgspec.Raw(spelled.encode())) == canonical(msgspec.Raw(turned.encode()))
