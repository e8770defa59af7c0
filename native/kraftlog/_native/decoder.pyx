"""Record batches to Arrow buffers: owns the memory that native/c/record/decoder.h fills, without the GIL."""

from cython cimport freelist
from libc.stdint cimport int64_t
from libc.string cimport memset

from kraftlog._native.c_crc cimport kr_crc_init
from kraftlog._native.c_decoder cimport (
    KR_CHUNK_FULL,
    KR_COLUMN_COUNT,
    KR_DECOMPRESSION_FAILED,
    KR_DECOMPRESSION_LIMIT,
    KR_END,
    KR_EVERY_BATCH,
    KR_FROM_HEADERS,
    KR_HEADER_COLUMNS,
    KR_NEEDS_DECOMPRESSION,
    KR_NEEDS_ROOM,
    KR_NEEDS_TRANSACTIONS,
    KR_OK,
    KR_ONLY_MARKERS,
    KR_REST,
    KR_TEXT_BYTES,
    KR_UNREADABLE,
    KR_VIEWS,
    kr_aborted,
    kr_column_names,
    kr_columns,
    kr_compression,
    kr_decode_decompressed,
    kr_decoder,
    kr_decoder_run,
    kr_decompression_failed,
    kr_pass_decompressed,
    kr_size_chunk,
    kr_text,
    kr_texts,
)
from kraftlog._native.c_memory cimport kr_busy, kr_busy_enter, kr_busy_leave
from kraftlog._native.chunk cimport Chunk
from kraftlog._native.compression cimport Decompressor
from kraftlog._native.lookahead cimport Lookahead
from kraftlog._native.memory cimport Arena, Input

kr_crc_init()

WANT = {kr_column_names[i].decode(): 1 << i for i in range(KR_COLUMN_COUNT)}  # bits of kr_want
ONLY_MARKERS = KR_ONLY_MARKERS
EVERY_BATCH = KR_EVERY_BATCH
FROM_HEADERS = KR_FROM_HEADERS
HEADER_COLUMNS = KR_HEADER_COLUMNS
VIEWS = KR_VIEWS

END = KR_END
CHUNK_FULL = KR_CHUNK_FULL
UNREADABLE = KR_UNREADABLE
NEEDS_TRANSACTIONS = KR_NEEDS_TRANSACTIONS
TEXT_BYTES = KR_TEXT_BYTES


cdef class Texts:
    """What batches must hold to be decoded: of each clause one of its texts.

    ``texts`` are tuples of a clause's number, a text of at most ``TEXT_BYTES``, in lower case where case is ignored,
    and which two of its bytes are compared first, in the order of clauses."""

    cdef kr_texts state
    cdef Arena arena
    cdef tuple texts

    def __init__(self, tuple texts not None, bint ignores_case):
        cdef kr_text *each
        cdef bytes text
        self.texts = texts  # the bytes stay as long as this does
        self.arena = Arena(max(len(texts), 1) * sizeof(kr_text))
        each = <kr_text *>self.arena.data
        for i, (clause, found, first, second) in enumerate(texts):
            text = found
            if not (1 <= len(text) <= KR_TEXT_BYTES and 0 <= first < len(text) and 0 <= second < len(text)):
                raise ValueError(f"a text of 1 to {KR_TEXT_BYTES} bytes and places in it expected, found {texts[i]!r}")
            each[i].text = text
            each[i].size = <int>len(text)
            each[i].first = first
            each[i].second = second
            each[i].clause = clause
        self.state.texts = each
        self.state.count = <int>len(texts)
        self.state.ignores_case = ignores_case


cdef class Rules:
    """What decoders are asked for, whatever they decode."""

    cdef int want
    cdef bint check_crc, include_control, strict, salvage
    cdef int64_t start_offset, end_offset, start_timestamp
    cdef Texts texts

    def __init__(self, int want, *, bint check_crc, bint include_control, bint strict, bint salvage,
                 int64_t start_offset, int64_t end_offset, int64_t start_timestamp, Texts texts=None):
        self.want = want
        self.check_crc = check_crc
        self.include_control = include_control
        self.strict = strict
        self.salvage = salvage
        self.start_offset = start_offset
        self.end_offset = end_offset
        self.start_timestamp = start_timestamp
        self.texts = texts


@freelist(4)
cdef class Decoder:
    """Decodes the batches that start in [start, end) of a buffer, a chunk at a time.

    ``pieces`` are pairs of int64, the start and end of a piece of the buffer each. Every piece is decoded as a buffer of
    its own: a batch does not reach into the next one, positions count from its start, and a fault ends it alone."""

    cdef Input source, aborted, pieces
    cdef Arena ends  # of the rows and batches of each piece
    cdef int64_t piece, pieces_count, rows_taken, batches_taken
    cdef list piece_faults
    cdef Texts texts
    cdef Lookahead lookahead
    cdef Chunk chunk
    cdef Decompressor decompressor
    cdef bint has_plain_bytes  # of state.batch, which wait for room
    cdef dict details  # what the decompressor said, by the fault's number
    cdef kr_busy busy
    cdef kr_decoder state
    cdef int64_t chunk_rows, chunk_bytes

    def __cinit__(self, buffer, int64_t start, int64_t end, Rules rules not None, int64_t chunk_rows,
                  int64_t chunk_bytes, Decompressor decompressor not None, aborted=None, bint aborted_by_offset=False,
                  Lookahead lookahead=None, pieces=None):
        self.source = Input(buffer, True)
        self.decompressor = decompressor
        self.details = {}
        self.state.input = self.source.make(end, rules.salvage)
        self.state.position = start
        self.state.end = min(end, self.source.size)
        self.state.want = rules.want
        self.state.check_crc = rules.check_crc
        self.state.include_control = rules.include_control
        self.state.strict = rules.strict
        self.state.start_offset = rules.start_offset
        self.state.end_offset = rules.end_offset
        self.state.start_timestamp = rules.start_timestamp
        self.texts = rules.texts
        if self.texts is not None:
            self.state.texts = &self.texts.state
        self.state.torn_at = -1
        self.state.next_offset = -1
        if aborted is not None:
            self.aborted = Input(aborted)
            self.state.aborted = <const kr_aborted *>self.aborted.data
            self.state.aborted_count = self.aborted.size // sizeof(kr_aborted)
            self.state.aborted_by_offset = aborted_by_offset
        self.lookahead = lookahead
        self.state.follows = lookahead is not None
        self.chunk_rows = chunk_rows
        self.chunk_bytes = chunk_bytes
        self.pieces_count = -1
        if pieces is not None:
            self._take_pieces(pieces, rules)

    cdef int _take_pieces(self, pieces, Rules rules) except -1:
        cdef const int64_t *bounds
        cdef int64_t i
        if self.source.file is not None or rules.want & KR_VIEWS or rules.salvage or not rules.strict:
            raise ValueError("pieces are of a buffer, decoded strictly into columns of their own")
        self.pieces = Input(pieces)
        self.pieces_count = self.pieces.size // (2 * <int64_t>sizeof(int64_t))
        bounds = <const int64_t *>self.pieces.data
        for i in range(self.pieces_count):
            if not 0 <= bounds[2 * i] <= bounds[2 * i + 1] <= self.source.size:
                raise ValueError(f"piece {i}: {bounds[2 * i]} to {bounds[2 * i + 1]} of {self.source.size} bytes")
        self.ends = Arena(max(self.pieces_count, 1) * 2 * <int64_t>sizeof(int64_t))
        self.piece_faults = []
        self.piece = -1
        self._open_next_piece()
        return 0

    cdef bint _open_next_piece(self) noexcept nogil:
        """Whether there is one. Bytes behind a piece are none of it, but can be read."""
        cdef const int64_t *bounds = <const int64_t *>self.pieces.data
        cdef int64_t *ends = <int64_t *>self.ends.data
        cdef int64_t start
        if self.piece >= 0:
            ends[2 * self.piece] = self.rows_taken + self.state.columns.rows
            ends[2 * self.piece + 1] = self.batches_taken + self.state.columns.batches
        self.piece += 1
        if self.piece >= self.pieces_count:
            self.state.position = self.state.end = 0
            return False
        start = bounds[2 * self.piece]
        self.state.input.start = self.source.data + start
        self.state.position = 0
        self.state.end = self.state.input.size = self.state.input.until = bounds[2 * self.piece + 1] - start
        self.state.input.spare = self.source.size - bounds[2 * self.piece + 1]
        return True

    cdef int _note_piece(self) except -1 with gil:
        """The first fault of the piece is kept, as a strict reader does."""
        self.piece_faults.append((self.piece, *self.take_faults()[0]))
        return 0

    def take_piece_ends(self):
        """How many rows and how many batches there were behind each piece, as pairs of int64, and the first fault of
        each bad piece as its number and what ``take_faults`` says of it."""
        return memoryview(self.ends)[:2 * self.pieces_count * sizeof(int64_t)], self.piece_faults

    @property
    def torn_at(self):
        """Where a torn tail starts, or -1."""
        return self.state.torn_at

    @property
    def hidden_records(self):
        """How many records of aborted transactions were left out."""
        return self.state.hidden_records

    @property
    def salvaged_at(self):
        """The first batch that was found by a search behind damage, or -1."""
        return self.source.salvage.salvaged_at

    @property
    def position(self):
        return self.state.position

    @property
    def reached(self):
        """Byte behind the last whole batch that was passed, decoded or not, and the offset behind it; -1 before one
        was."""
        return self.state.torn_at if self.state.torn_at >= 0 else self.state.position, self.state.next_offset

    cdef int _make_room(self) except -1:
        """Opens a chunk that has room for the batch that waits."""
        cdef Chunk chunk = Chunk()
        cdef int64_t end = self.state.end, size = self.state.input.size
        if self.pieces_count >= 0:  # the room is for what comes behind this piece as well
            self.state.end = self.state.input.size = size + self.state.input.spare
        kr_size_chunk(&self.state, self.chunk_rows, self.chunk_bytes)
        self.state.end, self.state.input.size = end, size
        try:
            chunk.open(&self.state.columns, self.state.want)
        except MemoryError:
            memset(&self.state.columns, 0, sizeof(kr_columns))  # as before: the batch still waits
            raise
        self.chunk = chunk
        return 0

    cdef int _enter(self) except -1:
        if not kr_busy_enter(&self.busy):
            raise RuntimeError("another thread runs this decoder; each thread needs one of its own")
        return 0

    def run(self):
        """Decodes until something is to be done: END, CHUNK_FULL, UNREADABLE, or NEEDS_TRANSACTIONS: a transaction
        begins at the position that does not end in the file."""
        cdef int status, follows
        self._enter()
        try:
            while True:
                with nogil:
                    status = self._run()
                if status == KR_NEEDS_ROOM:
                    self._make_room()
                    continue
                if status != KR_NEEDS_TRANSACTIONS:
                    return status
                follows = self.lookahead.follow(&self.state)
                if follows != KR_OK:
                    return KR_UNREADABLE if follows == KR_UNREADABLE else status
        finally:
            kr_busy_leave(&self.busy)

    cdef int _run(self) noexcept nogil:
        cdef kr_decoder *d = &self.state
        cdef int status
        while True:
            if self.has_plain_bytes:
                status = kr_decode_decompressed(d, self.decompressor.plain.out, self.decompressor.plain.size)
                if status != KR_OK:
                    return status
                self.has_plain_bytes = False
            status = kr_decoder_run(d)
            if self.pieces_count >= 0:
                if d.faults_count:
                    self._note_piece()
                    status = KR_END
                if status == KR_END and self._open_next_piece():
                    continue
            if status != KR_NEEDS_DECOMPRESSION:
                return status
            status = self.decompressor.run(d.payload, d.payload_size, kr_compression(&d.batch), d.batch.magic)
            if status == KR_OK:
                self.has_plain_bytes = not kr_pass_decompressed(d, self.decompressor.plain.out,
                                                                 self.decompressor.plain.size)
            elif status == KR_UNREADABLE:
                return status
            else:
                kr_decompression_failed(d, status, self.decompressor.limit if status == KR_DECOMPRESSION_LIMIT else 0)
                if status == KR_DECOMPRESSION_FAILED:
                    with gil:
                        self.details[d.faults_count - 1] = self.decompressor.detail

    def failure(self):
        """Why the input cannot be read, after UNREADABLE."""
        if self.lookahead is not None and self.lookahead.input.failed:
            return self.lookahead.source.failure()
        return self.decompressor.error if self.decompressor.error is not None else self.source.failure()

    @property
    def has_faults(self):
        return self.state.faults_count != 0

    def take_faults(self):
        """Faults since the last call, as (status, record_index, position, expected, actual, batch_position,
        base_offset, skipped, is_rest), each with the words of a decompressor that failed."""
        faults = []
        for i in range(self.state.faults_count):
            f = &self.state.faults[i]
            found = (
                f.error.status, f.error.record_index, f.error.position, f.error.expected, f.error.actual,
                f.batch_position, f.base_offset, f.skipped, f.error.lost == KR_REST,
            )
            faults.append((found, self.details.get(i, "")))
        self.state.faults_count = 0
        self.details.clear()
        return faults

    def take_chunk(self):
        """The rows decoded so far, or None when there are none; the decoder goes on in a new chunk."""
        cdef Chunk chunk
        self._enter()
        chunk = self.chunk
        self.chunk = None
        self.rows_taken += self.state.columns.rows
        self.batches_taken += self.state.columns.batches
        if chunk is not None:
            chunk.close(&self.state.columns, self.source, self.state.position)
        kr_busy_leave(&self.busy)
        return chunk if chunk is not None and chunk.state.columns.batches else None
