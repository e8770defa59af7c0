"""Arrow columns to record batches: lends the columns to native/c/encoder.h and owns what it writes."""

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t
from libc.string cimport memcpy, memset

from kraftlog._native.c_crc cimport kr_crc_init
from kraftlog._native.c_decoder cimport KR_NEEDS_ROOM, KR_OK, KR_PADDING, KR_RECORD_BATCH_OVERHEAD
from kraftlog._native.c_encoder cimport (
    kr_binary_source,
    kr_encoder,
    kr_encoder_close_batch,
    kr_encoder_run,
    kr_seal_batch,
    kr_source,
)
from kraftlog._native.memory cimport Arena, Input

kr_crc_init()


cdef class Source:
    """The columns of one record batch. Buffers are those of the Arrow arrays, of which ``offset`` values are skipped."""

    cdef kr_source state
    cdef list held

    def __init__(self, int64_t rows):
        self.state.rows = rows
        self.held = []

    cdef const uint8_t *_hold(self, buffer):
        if buffer is None:
            return NULL
        cdef Input source = Input(buffer)
        self.held.append(source)
        return source.data

    cdef void _binary(self, kr_binary_source *c, validity, ends, data, int64_t offset):
        c.ends = <const int32_t *>self._hold(ends) + offset
        c.data = self._hold(data)
        c.data_size = data.size if data is not None else 0
        c.validity = self._hold(validity)
        c.validity_offset = offset

    def set_key(self, validity, ends, data, int64_t offset):
        self._binary(&self.state.key, validity, ends, data, offset)

    def set_value(self, validity, ends, data, int64_t offset):
        self._binary(&self.state.value, validity, ends, data, offset)

    def set_timestamp_ms(self, data, int64_t offset):
        self.state.timestamp_ms = <const int64_t *>self._hold(data) + offset

    def set_headers(self, ends, int64_t offset):
        self.state.header_ends = <const int32_t *>self._hold(ends) + offset

    def set_header_key(self, validity, ends, data, int64_t offset):
        self._binary(&self.state.header_key, validity, ends, data, offset)

    def set_header_value(self, validity, ends, data, int64_t offset):
        self._binary(&self.state.header_value, validity, ends, data, offset)


cdef class Encoder:
    """Packs sources into record batches, one behind the other. ``batch_records``: int32, or None."""

    cdef kr_encoder state
    cdef Arena arena
    cdef Input plan

    def __init__(self, *, int64_t base_offset, int32_t partition_leader_epoch, int64_t producer_id, int16_t producer_epoch,
                 int32_t base_sequence, int attributes, int64_t max_batch_bytes, int32_t max_batch_records,
                 batch_records, bint refuse_markers, int64_t timestamp_ms):
        memset(&self.state, 0, sizeof(kr_encoder))
        self.state.base_offset = base_offset
        self.state.partition_leader_epoch = partition_leader_epoch
        self.state.producer_id = producer_id
        self.state.producer_epoch = producer_epoch
        self.state.base_sequence = base_sequence
        self.state.attributes = attributes
        self.state.max_batch_bytes = max_batch_bytes
        self.state.max_batch_records = max_batch_records
        if batch_records is not None:
            self.plan = Input(batch_records)
            self.state.batch_records = <const int32_t *>self.plan.data
            self.state.planned = self.plan.size // sizeof(int32_t)
        self.state.refuse_markers = refuse_markers
        self.state.timestamp = timestamp_ms
        self.state.batch_at = -1

    @property
    def timestamp_ms(self):
        return self.state.timestamp

    @timestamp_ms.setter
    def timestamp_ms(self, int64_t timestamp_ms):
        self.state.timestamp = timestamp_ms

    cdef void _reserve(self, int64_t more):
        """Room for so many bytes more, with what is written so far kept."""
        cdef Arena arena
        if self.arena is not None and self.state.written + more <= self.state.capacity:
            return
        arena = Arena(self.state.written + more + KR_PADDING)
        if self.state.written:
            memcpy(arena.data, self.state.out, self.state.written)
        self.arena = arena
        self.state.out = arena.data
        self.state.capacity = self.state.written + more

    def write(self, Source source, int64_t size_hint):
        """Writes all rows and returns None, or none of them and why: status, row, expected and actual size, and how many
        records the open batch had by then."""
        return self._write(&source.state, size_hint)

    def write_marker(self, const uint8_t[::1] value):
        """Writes a row that is a value alone, whether or not it is a marker. Returns what ``write`` does."""
        cdef int32_t[2] ends = [0, <int32_t>value.shape[0]]
        cdef int8_t refuse_markers = self.state.refuse_markers
        cdef kr_source source
        memset(&source, 0, sizeof(kr_source))
        source.rows = 1
        source.value.ends = ends
        source.value.data = &value[0]
        source.value.data_size = value.shape[0]
        self.state.refuse_markers = 0
        try:
            return self._write(&source, value.shape[0] + 2 * KR_RECORD_BATCH_OVERHEAD)
        finally:
            self.state.refuse_markers = refuse_markers

    cdef object _write(self, const kr_source *source, int64_t size_hint):
        cdef int status = KR_NEEDS_ROOM
        cdef int64_t more = size_hint
        cdef kr_encoder before = self.state
        self.state.row = 0
        while status == KR_NEEDS_ROOM:
            self._reserve(more)
            with nogil:
                status = kr_encoder_run(&self.state, source)
            more = max(self.state.error.expected, self.state.written // 2)
        if status == KR_OK:
            return None
        before.out, before.capacity = self.state.out, self.state.capacity
        cdef kr_encoder failed = self.state
        self.state = before
        return (status, failed.error.record_index, failed.error.expected, failed.error.actual,
                0 if failed.batch_at < 0 else failed.count)

    def close_batch(self):
        """Ends the open batch, if there is one."""
        kr_encoder_close_batch(&self.state)

    def take(self):
        """The closed batches as a memoryview; an open one is carried over into new memory."""
        cdef Arena arena = self.arena
        cdef int64_t end = self.state.written if self.state.batch_at < 0 else self.state.batch_at
        if end == 0:
            return memoryview(b"")
        cdef int64_t left = self.state.written - end
        cdef uint8_t *rest = self.state.out + end
        self.arena = None
        self.state.written = 0
        self.state.capacity = 0
        if left:
            self._reserve(left)
            memcpy(self.state.out, rest, left)
            self.state.written = left
            self.state.batch_at = 0
        return memoryview(arena)[:end]


def seal_batch(buffer):
    """Fills in ``batch_length`` and ``crc`` of the record batch that fills a writable buffer."""
    cdef uint8_t[::1] view = buffer
    kr_seal_batch(&view[0], view.shape[0])
