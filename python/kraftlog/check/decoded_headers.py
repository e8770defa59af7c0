"""The one pass of a check over a segment: every record is decoded, and the headers of sound batches are passed on."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kraftlog._native.scanner import HEADER_DTYPE
from kraftlog.codec.decode import RecordDecoder
from kraftlog.codec.decode_plan import DecodePlan
from kraftlog.codec.header_scan import HeaderScan
from kraftlog.codec.headers import Headers
from kraftlog.disk.disk import ReadableFile
from kraftlog.errors import RECORD_FAULTS, Fault, RecordError, error_from_fault
from kraftlog.read.log_pass import Pass
from kraftlog.read.ranges import Range
from kraftlog.read.records import notes_of
from kraftlog.read.segment_end import end_fault
from kraftlog.read.segment_reader import located, relocated, segment_file
from kraftlog.schema import RECORDS

# The CRC of such a batch matches: only some or all of its records cannot be read.
SOUND_HEADER = RECORD_FAULTS | {"decompression_failed", "decompression_limit", "unknown_compression"}


def decoded_headers(part: Range, read: Pass) -> Iterator[tuple[list[Fault], Headers]]:
    """Decode the records of a range.

    Parameters
    ----------
    part : Range
    read : Pass
        Records outside of bounds are not decoded. Notes are the positions of torn tails.

    Returns
    -------
    iterator of tuple
        Faults of batches and records; headers of the batches around them whose CRC matches, in order.

    Raises
    ------
    RecordError
        With ``strict``.
    """
    segment, options, rest = part.segment, read.options, np.empty(0, HEADER_DTYPE)
    faults: list[Fault] = []
    damage: list[Fault] = []  # the last of it
    unreadable: list[Fault] = []
    with segment_file(segment, unreadable, strict=options.strict) as file:
        plan = DecodePlan(RECORDS.select([]), options, every_batch=True, only_markers=True)
        decoder = RecordDecoder(file, part.start, part.end, plan)
        done = part.start
        try:
            for rows in decoder.chunks(faults):
                yield [located(segment, fault) for fault in faults], _with_undecoded(file, rows.headers, faults)
                damage = faults[-1:] or damage
                faults.clear()
                read.advance(decoder.position - done)
                done = decoder.position
        except RecordError as error:
            raise relocated(segment, error) from None
        rest = _with_undecoded(file, rest, faults)
        at_end = end_fault(segment, decoder, faults or damage, file, options)
        if at_end is not None:
            if options.strict:
                raise error_from_fault(at_end)
            unreadable.append(at_end)
        else:
            read.notes.extend(notes_of(segment, decoder, file))
    yield [*(located(segment, fault) for fault in faults), *unreadable], rest


def _with_undecoded(file: ReadableFile, headers: Headers, faults: list[Fault]) -> Headers:
    """Return the headers, including sound batches whose records could not be decoded."""
    positions = [fault.position for fault in faults if fault.error in SOUND_HEADER]
    missing = []
    for position in positions:
        if position is not None and position not in headers["position"]:
            for scanned in HeaderScan(file, position, position + 1, check_crc=True).headers(1):
                missing.append(scanned[(scanned["position"] == position) & (scanned["crc_ok"] == 1)])
    if not missing:
        return headers
    merged = np.concatenate([headers, *missing])
    return merged[np.argsort(merged["position"], kind="stable")]
