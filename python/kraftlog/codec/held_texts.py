"""Texts that batches must hold to be decoded: what a search asks of bytes before anything is made of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from kraftlog._native.decoder import TEXT_BYTES, Texts

# Of bytes in logs, most frequent first: in texts, JSON, and lengths and deltas of small records.
_FREQUENT = b'\x00 etaoinsrhl"d0cu1m:,pf2gwy3b45-.v6789_k/{}x\x02jqz\x04\x01'


@dataclass(frozen=True)
class HeldTexts:
    """A condition on the plain bytes of a batch: of each clause, one of its texts stands in them.

    Of a batch that does not hold them, the decoder compares the checksum and checks the lengths in its records: it has
    no rows, and the faults that it has when it is decoded. Records of a batch that holds them may lack them all the
    same: a text may stand between two records, or in another field.

    Attributes
    ----------
    clauses : tuple of tuple of bytes
        None of the texts is empty; of long ones the first 64 bytes count.
    ignores_case : bool
        Of the letters of ASCII.

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
    """Return the places of the two bytes of a text that are rarest in logs."""
    ranks = [_FREQUENT.find(byte) % 256 for byte in text.lower()]  # 255: not among the frequent
    order = sorted(range(len(text)), key=lambda at: (-ranks[at], at))
    first = order[0]
    return first, next((at for at in order[1:] if text[at] != text[first]), order[-1])
