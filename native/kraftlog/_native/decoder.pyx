"""Record batches to Arrow buffers: owns the memory that native/c/decoder.h fills and releases the GIL around it."""

from cpython.buffer cimport PyBUF_READ
from cpython.memoryview cimport PyMemoryView_FromMemory
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t
from libc.string cimport memset

from kraftlog._native.c_crc cimport kr_crc_init
from kraftlog._native.c_decoder cimport (
    KR_CHUNK_FULL,
    KR_DECOMPRESSION_FAILED,
    KR_DECOMPRESSION_LIMIT,
    KR_END,
    KR_NEEDS_DECOMPRESSION,
    KR_NEEDS_ROOM,
    KR_ONLY_MARKERS,
    KR_PADDING,
    KR_UNREADABLE,
    KR_UTF8_GROWTH,
    KR_WANT_CONTROL_TYPE,
    KR_WANT_HEADERS,
    KR_WANT_KEY,
    KR_WANT_OFFSET,
    KR_WANT_TIMESTAMP,
    KR_WANT_TIMESTAMP_MS,
    KR_WANT_VALUE,
    kr_aborted,
    kr_batch_header,
    kr_binary_column,
    kr_columns,
    kr_compression,
    kr_decode_decompressed,
    kr_decoder,
    kr_decoder_run,
    kr_decompression_failed,
)
from kraftlog._native.memory cimport Arena, Input

kr_crc_init()

WANT = {
    "key": KR_WANT_KEY,
    "value": KR_WANT_VALUE,
    "offset": KR_WANT_OFFSET,
    "timestamp": KR_WANT_TIMESTAMP,
    "timestamp_ms": KR_WANT_TIMESTAMP_MS,
    "headers": KR_WANT_HEADERS,
    "control_type": KR_WANT_CONTROL_TYPE,
}
ONLY_MARKERS = KR_ONLY_MARKERS

END = KR_END
CHUNK_FULL = KR_CHUNK_FULL
NEEDS_DECOMPRESSION = KR_NEEDS_DECOMPRESSION
UNREADABLE = KR_UNREADABLE

DECOMPRESSION_PADDING = KR_PADDING  # readable bytes that must follow what is given to ``decompressed``

cdef extern from "large_memory.h" nogil:
    void kr_advise_large(void *begin, size_t size)

cdef enum:
    REGION_ALIGNMENT = 64
    LARGE_PAGE = 2 << 20


cdef class Chunk:
    """The buffers of one stretch of rows. ``buffers`` maps a column's part to a memoryview of the arena."""

    cdef readonly int64_t rows
    cdef readonly int64_t headers
    cdef readonly dict buffers
    cdef readonly dict nulls
    cdef readonly object batches


cdef class Layout:
    """Hands out neighbouring, aligned regions of one arena; with no arena it only adds up their sizes."""

    cdef uint8_t *base
    cdef int64_t used

    cdef void *region(self, int64_t size):
        cdef int64_t begin = self.used
        self.used += (size + REGION_ALIGNMENT - 1) // REGION_ALIGNMENT * REGION_ALIGNMENT
        return self.base + begin if self.base != NULL else NULL

    cdef void *large_region(self, int64_t size):
        """A region that most of a chunk is written to: on large pages of its own if it fills them."""
        cdef void *begin
        if size < LARGE_PAGE:
            return self.region(size)
        self.used = (self.used + LARGE_PAGE - 1) // LARGE_PAGE * LARGE_PAGE
        begin = self.region(size)
        if begin != NULL:
            kr_advise_large(begin, size // LARGE_PAGE * LARGE_PAGE)
        return begin

    cdef void binary(self, kr_binary_column *c, int64_t rows, int64_t data):
        c.ends = <int32_t *>self.region((rows + 1) * 4)
        c.data = <uint8_t *>self.region(data + KR_PADDING)
        c.validity = <uint8_t *>self.region(rows // 8 + 2)

    cdef void columns(self, kr_columns *c, int want):
        if want & KR_WANT_KEY:
            self.binary(&c.key, c.max_rows, c.max_bytes)
        if want & KR_WANT_VALUE:
            c.value.ends = <int32_t *>self.region((c.max_rows + 1) * 4)
            c.value.validity = <uint8_t *>self.region(c.max_rows // 8 + 2)
        if want & KR_WANT_OFFSET:
            c.offset = <int64_t *>self.region(c.max_rows * 8)
        if want & KR_WANT_TIMESTAMP:
            c.timestamp = <int64_t *>self.region(c.max_rows * 8)
            c.timestamp_validity = <uint8_t *>self.region(c.max_rows // 8 + 2)
        if want & KR_WANT_TIMESTAMP_MS:
            c.timestamp_ms = <int64_t *>self.region(c.max_rows * 8)
        if want & KR_WANT_CONTROL_TYPE:
            c.control_type = <int16_t *>self.region(c.max_rows * 2)
        if want & KR_WANT_HEADERS:
            c.header_ends = <int32_t *>self.region((c.max_rows + 1) * 4)
            self.binary(&c.header_key, c.max_headers, c.max_bytes * KR_UTF8_GROWTH)
            self.binary(&c.header_value, c.max_headers, c.max_bytes)
        c.batch = <kr_batch_header *>self.region(c.max_batches * sizeof(kr_batch_header))
        if want & KR_WANT_VALUE:
            c.value.data = <uint8_t *>self.large_region(c.max_bytes + KR_PADDING)


cdef void open_binary(kr_binary_column *c, int64_t rows) noexcept:
    c.ends[0] = 0
    c.nulls = 0
    memset(c.validity, 0xFF, rows // 8 + 2)


cdef class Decoder:
    """Decodes the batches that start in [start, end) of a buffer, a chunk at a time."""

    cdef Input source, aborted
    cdef Arena arena
    cdef kr_decoder state
    cdef int64_t chunk_rows, chunk_bytes

    def __init__(self, buffer, int64_t start, int64_t end, int want, *, bint check_crc, bint include_control,
                 int64_t start_offset, int64_t end_offset, int64_t start_timestamp, int64_t chunk_rows,
                 int64_t chunk_bytes, aborted=None, bint aborted_by_offset=False):
        self.source = Input(buffer, True)
        self.state.input = self.source.make(end)
        self.state.position = start
        self.state.end = min(end, self.source.size)
        self.state.want = want
        self.state.check_crc = check_crc
        self.state.include_control = include_control
        self.state.start_offset = start_offset
        self.state.end_offset = end_offset
        self.state.start_timestamp = start_timestamp
        self.state.torn_at = -1
        self.state.next_offset = -1
        if aborted is not None:
            self.aborted = Input(aborted)
            self.state.aborted = <const kr_aborted *>self.aborted.data
            self.state.aborted_count = self.aborted.size // sizeof(kr_aborted)
            self.state.aborted_by_offset = aborted_by_offset
        self.chunk_rows = chunk_rows
        self.chunk_bytes = chunk_bytes
        self._open_chunk(chunk_rows, chunk_bytes, 2 * chunk_rows, chunk_rows)

    @property
    def torn_at(self):
        """Where a torn tail starts, or -1."""
        return self.state.torn_at

    @property
    def position(self):
        return self.state.position

    @property
    def next_offset(self):
        """Behind the last batch that was passed, decoded or not; -1 before one was."""
        return self.state.next_offset

    def _open_chunk(self, int64_t rows, int64_t size, int64_t headers, int64_t batches):
        cdef kr_columns *c = &self.state.columns
        cdef int want = self.state.want
        cdef Layout layout = Layout()
        memset(c, 0, sizeof(kr_columns))
        c.max_rows = rows
        c.max_bytes = size
        c.max_headers = headers
        c.max_batches = batches
        layout.columns(c, want)
        self.arena = Arena(layout.used)
        layout.used = 0
        layout.base = self.arena.data
        layout.columns(c, want)
        if want & KR_WANT_KEY:
            open_binary(&c.key, rows)
        if want & KR_WANT_VALUE:
            open_binary(&c.value, rows)
        if want & KR_WANT_TIMESTAMP:
            memset(c.timestamp_validity, 0xFF, rows // 8 + 2)
        if want & KR_WANT_HEADERS:
            c.header_ends[0] = 0
            open_binary(&c.header_key, headers)
            open_binary(&c.header_value, headers)

    def _make_room(self):
        """The next batch is larger than a chunk: opens one that has room for it."""
        cdef int64_t size = self.state.needs_bytes
        self._open_chunk(self.state.needs_rows + 1, size, size // 2 + 1, 1)

    def run(self):
        """Decodes until something is to be done: END, CHUNK_FULL, NEEDS_DECOMPRESSION or UNREADABLE."""
        cdef int status
        while True:
            with nogil:
                status = kr_decoder_run(&self.state)
            if status != KR_NEEDS_ROOM:
                return status
            self._make_room()

    def failure(self):
        """Why the input cannot be read, after UNREADABLE."""
        return self.source.failure()

    def payload(self):
        """The compressed bytes of the batch that waits, with its compression type and magic. Borrowed from the input
        until the next call of ``run``."""
        data = PyMemoryView_FromMemory(<char *>self.state.payload, self.state.payload_size, PyBUF_READ)
        return data, kr_compression(&self.state.batch), self.state.batch.magic

    def decompressed(self, buffer, int64_t size):
        """Takes the plain bytes of the batch that waits. False when they must be offered again in a new chunk."""
        cdef Input plain = Input(buffer)
        cdef int status
        if size + KR_PADDING > plain.size:
            raise ValueError(f"{size} bytes and {KR_PADDING} bytes of padding, but the buffer has {plain.size}")
        while True:
            with nogil:
                status = kr_decode_decompressed(&self.state, plain.data, size)
            if status != KR_NEEDS_ROOM:
                return status != KR_CHUNK_FULL
            self._make_room()

    def decompression_failed(self, limit=None):
        """Gives the batch that waits up; ``limit`` when it was larger than that many bytes."""
        if limit is None:
            kr_decompression_failed(&self.state, KR_DECOMPRESSION_FAILED, 0)
        else:
            kr_decompression_failed(&self.state, KR_DECOMPRESSION_LIMIT, limit)

    def take_faults(self):
        """Faults since the last call, as (status, record_index, position, expected, actual, batch_position,
        base_offset, skipped)."""
        faults = []
        for i in range(self.state.faults_count):
            f = &self.state.faults[i]
            faults.append((
                f.error.status, f.error.record_index, f.error.position, f.error.expected, f.error.actual,
                f.batch_position, f.base_offset, f.skipped,
            ))
        self.state.faults_count = 0
        return faults

    cdef object _slice(self, void *begin, int64_t size):
        cdef int64_t at = <uint8_t *>begin - self.arena.data
        return memoryview(self.arena)[at:at + size]

    cdef void _export_binary(self, Chunk out, str name, kr_binary_column *c, int64_t rows):
        out.buffers[name + ".ends"] = self._slice(c.ends, (rows + 1) * 4)
        out.buffers[name + ".data"] = self._slice(c.data, c.ends[rows])
        out.buffers[name + ".validity"] = self._slice(c.validity, rows // 8 + 1) if c.nulls else None
        out.nulls[name] = c.nulls

    def take_chunk(self):
        """The rows decoded so far, or None when there are none; the decoder goes on in a new chunk."""
        cdef kr_columns *c = &self.state.columns
        cdef int want = self.state.want
        cdef int64_t n = c.rows
        cdef Chunk out = None
        if c.batches:
            out = Chunk()
            out.rows = n
            out.headers = c.headers
            out.buffers = {}
            out.nulls = {}
            out.batches = self._slice(c.batch, c.batches * sizeof(kr_batch_header))
            if want & KR_WANT_KEY:
                self._export_binary(out, "key", &c.key, n)
            if want & KR_WANT_VALUE:
                self._export_binary(out, "value", &c.value, n)
            if want & KR_WANT_OFFSET:
                out.buffers["offset"] = self._slice(c.offset, n * 8)
            if want & KR_WANT_TIMESTAMP:
                out.buffers["timestamp"] = self._slice(c.timestamp, n * 8)
                out.buffers["timestamp.validity"] = (
                    self._slice(c.timestamp_validity, n // 8 + 1) if c.timestamp_nulls else None
                )
                out.nulls["timestamp"] = c.timestamp_nulls
            if want & KR_WANT_TIMESTAMP_MS:
                out.buffers["timestamp_ms"] = self._slice(c.timestamp_ms, n * 8)
            if want & KR_WANT_CONTROL_TYPE:
                out.buffers["control_type"] = self._slice(c.control_type, n * 2)
            if want & KR_WANT_HEADERS:
                out.buffers["headers.ends"] = self._slice(c.header_ends, (n + 1) * 4)
                self._export_binary(out, "header_key", &c.header_key, c.headers)
                self._export_binary(out, "header_value", &c.header_value, c.headers)
        self._open_chunk(self.chunk_rows, self.chunk_bytes, 2 * self.chunk_rows, self.chunk_rows)
        return out
