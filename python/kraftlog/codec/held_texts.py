"""Texts that a batch must contain to be decoded: a search in bytes before decoding."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from kraftlog._native.decoder import TEXT_BYTES, Texts

# Of bytes in logs, most frequent first: in texts, JSON, and lengths and deltas of small records.
_FREQUENT = b'\x00 etaoinsrhl"d0cu1m:,pf2gwy3b45-.v6789_k/{}x\x02jqz\x04\x01'


@dataclass(frozen=True)
class HeldTexts:
    """A condition on the uncompressed bytes of a batch: it contains at least one text of each clause.

    For a batch without the texts, the decoder verifies the checksum and the lengths in its records. Such a batch has no
    rows, and the same faults as a decoded batch. Records of a matching batch may still lack the texts: a text may span
    two records, or be in another field.

    Attributes
    ----------
    clauses : tuple of tuple of bytes
        Texts, none of them empty; only the first 64 bytes of long texts are used.
    ignores_case : bool
        Whether to ignore the case of ASCII letters.

    Examples
    --------
    >>> import pyarrow as pa, kraftlog
    >>> from kraftlog.codec.decode import RecordDecoder
    >>> from kraftlog.codec.decode_plan import DecodePlan
    >>> from kraftlog.codec.options import NO_BOUND, ReadOptions
    >>> log = b"".join(
    ...     kraftlog.encode(pa.table({"value": values}), base_offset=at).to_pybytes()
    ...     for at, values in [(0, [b"a needle", b"hay"]), (2, [b"hay"])]
    ... )
    >>> options = ReadOptions(holds=HeldTexts(((b"needle",),)))
    >>> plan = DecodePlan(pa.schema([("offset", pa.int64())]), options)
    >>> pa.Table.from_batches(RecordDecoder(log, 0, NO_BOUND, plan).batches([]))["offset"].to_pylist()
    [0, 1]
    """

    clauses: tuple[tuple[bytes, ...], ...]
    ignores_case: bool = False

    @cached_property
    def native(self) -> Texts:
        """The same for the native decoder."""
        texts = []
        for clause, alternatives in enumerate(self.clauses):
            for whole in alternatives:
                text = whole[:TEXT_BYTES].lower() if self.ignores_case else whole[:TEXT_BYTES]
                texts.append((clause, text, *_rarest(text)))
        return Texts(tuple(texts), self.ignores_case)


def _rarest(text: bytes) -> tuple[int, int]:
    """Return the positions of the two bytes of a text that are rarest in logs."""
    ranks = [_FREQUENT.find(byte) % 256 for byte in text.lower()]  # 255: not among the frequent
    order = sorted(range(len(text)), key=lambda at: (-ranks[at], at))
    first = order[0]
    return first, next((at for at in order[1:] if text[at] != text[first]), order[-1])
