"""Bytes to chunks of columns, without Arrow: runs the native decoder and provides the data that it requests."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from kraftlog._native import decoder as native
from kraftlog._native.chunk import Chunk
from kraftlog._native.lookahead import Lookahead
from kraftlog.codec.compression import decompressor
from kraftlog.codec.options import NO_BOUND, ReadOptions
from kraftlog.errors import Fault, RecordError, error_from_fault, fault_from_native, input_error
from kraftlog.types import Buffer, InputFile


def rules_of(want: int, options: ReadOptions) -> native.Rules:
    """Return the rules of options for the native decoder.

    Parameters
    ----------
    want : int
        Flags of ``WANT`` and others: the columns to fill.
    options : ReadOptions
    """
    return native.Rules(
        want,
        check_crc=options.checks_crc,
        include_control=options.include_control,
        strict=options.strict,
        salvage=options.searches,
        start_offset=_least(options.start_offset),
        end_offset=options.end_offset,
        start_timestamp=_least(options.start_timestamp),
        texts=None if options.holds is None else options.holds.native,
    )


def _least(bound: int) -> int:
    """Return a lower bound for the native decoder; no bound is less than all 64-bit numbers."""
    return -NO_BOUND - 1 if bound == -NO_BOUND else bound


class ChunkDecoder:
    """Decodes the record batches that start in [start, end) of a buffer or file.

    Parameters
    ----------
    buffer : buffer or file
    start, end : int
        Positions in bytes; a batch must begin at ``start``.
    rules : native.Rules
        Of the same options.
    options : ReadOptions
    rows, size : int
        Limits of a chunk: its rows, and its bytes of input.
    aborted : numpy.ndarray of int64, optional
        Transactions whose batches are left out.
    aborted_by_offset : bool
        Whether ``aborted`` has offsets, not bytes of the file.
    lookahead : Lookahead, optional
        Follows the transactions of the file itself.
    pieces : numpy.ndarray of int64, optional
        Start and end of each piece of the buffer that is decoded as a buffer of its own.

    Attributes
    ----------
    is_undecided : bool
        Whether it ended at the start of a transaction that does not end in the file.
    """

    def __init__(
        self,
        buffer: Buffer | InputFile,
        start: int,
        end: int,
        rules: native.Rules,
        options: ReadOptions,
        *,
        rows: int,
        size: int,
        aborted: npt.NDArray[np.int64] | None = None,
        aborted_by_offset: bool = False,
        lookahead: Lookahead | None = None,
        pieces: npt.NDArray[np.int64] | None = None,
    ) -> None:
        self._native = native.Decoder(
            buffer,
            start,
            end,
            rules,
            rows,
            size,
            decompressor(options.max_decompressed_bytes),
            None if aborted is None else aborted.tobytes(),
            aborted_by_offset,
            lookahead,
            None if pieces is None else pieces.tobytes(),
        )
        self._is_strict = options.strict
        self.is_undecided = False

    @property
    def torn_at(self) -> int:
        """Byte at which a torn tail starts; -1 when there is none."""
        return self._native.torn_at

    @property
    def hidden_records(self) -> int:
        """Number of records of aborted transactions that were left out so far."""
        return self._native.hidden_records

    @property
    def position(self) -> int:
        """Position of the next batch, in bytes."""
        return self._native.position

    @property
    def reached(self) -> tuple[int, int]:
        """End of the last completed batch, in bytes, and the next offset.

        The offset is -1 before the first batch.
        """
        return self._native.reached

    def native_chunks(self, faults: list[Fault]) -> Iterator[Chunk]:
        """Decode; faults are appended to ``faults``, or with ``strict`` raised after the preceding rows.

        Raises
        ------
        InputError
            When the file cannot be read, after the preceding rows.
        """
        decoder, status = self._native, native.CHUNK_FULL
        while status == native.CHUNK_FULL:
            status = decoder.run()
            refused = self._note(faults) if decoder.has_faults else None
            chunk = decoder.take_chunk()
            if chunk is not None:
                yield chunk
            if refused is not None:
                raise refused
        self.is_undecided = status == native.NEEDS_TRANSACTIONS
        if status == native.UNREADABLE:
            raise input_error(decoder.failure(), self.position)

    def _note(self, faults: list[Fault]) -> RecordError | None:
        """Append faults, or return the one to raise after the preceding rows."""
        for found, detail in self._native.take_faults():
            fault = fault_from_native(found, detail)
            if self._is_strict:
                return error_from_fault(fault)
            faults.append(fault)
        return None
