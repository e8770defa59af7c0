"""A transaction that is being written to a metadata log."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType

from kraftlog.codec.metadata_markers import LONGEST_TEXT
from kraftlog.errors import InvalidTransactionStateError
from kraftlog.transactions.metadata_transaction import TransactionEncoder, Values, value_batches
from kraftlog.write.partition_log import PartitionLog


class MetadataTransaction:
    """Records that become visible together when the ``with`` block ends, or never if it raises.

    Made by ``MetadataLogWriter.transaction``. A batch is written when it is full, so that a transaction may be larger
    than memory; ``append`` holds its argument until it returns.

    Parameters
    ----------
    log : PartitionLog
    packed : TransactionEncoder
        The encoder, which already holds the Begin record.
    clock : callable
        Returns the time in milliseconds.
    on_end : callable
        Called when the transaction is over.
    """

    def __init__(
        self, log: PartitionLog, packed: TransactionEncoder, clock: Callable[[], int], on_end: Callable[[], None]
    ) -> None:
        self._log = log
        self._packed = packed
        self._clock = clock
        self._on_end = on_end
        self._is_open = True
        self._has_failed = False
        self._was_cut_short = False

    def append(self, records: Values) -> None:
        """Append records; after an error the transaction can only be aborted.

        Parameters
        ----------
        records : pyarrow.Array or pyarrow.ChunkedArray of binary, list of bytes, or iterable of these
            Serialized metadata records.

        Raises
        ------
        RecordTooLargeError
            When a single record takes more than ``max_batch_bytes``, or ``metadata.version`` does not support
            transactions and the records do not fit one batch.
        InvalidRecordError
            When one of the records is a transaction marker.
        InvalidTransactionStateError
            When the transaction is over, or an append before this one failed.
        OSError
            When a write fails.
        """
        if not self._is_open or self._has_failed:
            what = "an append to it failed" if self._is_open else "it is over"
            raise InvalidTransactionStateError(f"nothing can be appended to the transaction: {what}")
        try:
            for rows in value_batches(records):
                self._packed.encoder.timestamp_ms = self._clock()
                self._log.append(self._packed.write(rows), commit=False)
        except BaseException:
            self._has_failed = True
            raise

    def abort(self, reason: str) -> None:
        """Abort the transaction before the block ends; ``reason`` is truncated to the limit of KIP-868."""
        if not self._is_open:
            raise InvalidTransactionStateError("the transaction is over and cannot be aborted")
        cut = reason.encode("utf-8", "replace")[:LONGEST_TEXT].decode("utf-8", "ignore")
        self._finish()
        self._log.append(self._packed.abort(cut), commit=True)

    def cut_short(self) -> None:
        """Abort the transaction because the writer is closed; the end of the block raises."""
        self._was_cut_short = True
        self.abort("The writer was closed")

    def _finish(self) -> None:
        self._is_open = False
        self._on_end()

    def __enter__(self) -> MetadataTransaction:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self._abort_for(error)
        elif self._was_cut_short:
            raise InvalidTransactionStateError("the transaction was aborted: the writer was closed inside it")
        elif not self._is_open:
            return
        elif self._has_failed:
            self.abort("An append failed")
            raise InvalidTransactionStateError("the transaction was aborted: an append to it failed")
        else:
            self._finish()
            self._log.append(self._packed.end(), commit=True)

    def _abort_for(self, error: BaseException) -> None:
        if not self._is_open:
            return
        if self._log.failure is not None:
            self._finish()
            return
        try:
            self.abort(f"{type(error).__name__}: {error}")
        except OSError as other:
            error.add_note(f"the transaction could not be aborted; the next writer will abort it: {other}")
