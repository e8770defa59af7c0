"""Arrow columns to record batches: lends the columns to native/c/record/encoder.h and owns what it writes."""

from cython cimport freelist
from cpython.buffer cimport PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer

from libc.stdint cimport INT32_MAX, int8_t, int16_t, int32_t, int64_t, uint8_t, uintptr_t
from libc.string cimport memcpy, memset

from kraftlog._native.c_crc cimport kr_crc_init
from kraftlog._native.c_decoder cimport (
    KR_NEEDS_ROOM,
    KR_OK,
    KR_PADDING,
    KR_RECORD_BATCH_OVERHEAD,
    kr_batch_header,
    kr_error,
)
from kraftlog._native.c_encoder cimport (
    KR_MICROSECONDS,
    KR_MILLISECONDS,
    KR_NANOSECONDS,
    KR_RECORD_OVERHEAD,
    kr_changes,
    kr_changes_apply,
    kr_changes_check,
    kr_encoder,
    kr_encoder_close_batch,
    kr_encoder_run,
    kr_encoder_run_lists,
    kr_record_lists,
    kr_record_lists_of,
    kr_source,
    kr_source_bytes,
    kr_time_unit,
)
from kraftlog._native.c_lent cimport kr_lent_binary
from kraftlog._native.c_memory cimport kr_busy, kr_busy_leave
from kraftlog._native.memory cimport Arena, Input, enter, kr_input, kr_input_make
from kraftlog._native.text_column cimport ListColumn, TextColumn

kr_crc_init()

TIME_UNITS = {"ms": KR_MILLISECONDS, "us": KR_MICROSECONDS, "ns": KR_NANOSECONDS}

cdef enum:
    KR_ROOM_AHEAD = 3  # times what is written


@freelist(8)
cdef class Source:
    """The columns of one piece of rows, of which each is checked here, and lent or copied."""

    def __cinit__(self, int64_t rows):
        if rows < 0:
            raise ValueError(f"{rows} rows")
        self.state.rows = rows
        self.held = []

    cdef int _binary(self, kr_lent_binary *c, TextColumn column, int64_t first, int64_t count) except -1:
        self.held.append(column.fill(c, first, count))
        return 0

    @property
    def rows(self):
        return self.state.rows

    @property
    def data_bytes(self):
        """Bytes of the data that the rows refer to."""
        return self.size()

    cdef int64_t size(self) noexcept:
        """Bytes of the data that the rows refer to."""
        cdef int64_t rows = self.state.rows
        cdef int64_t size = kr_source_bytes(&self.state.key, 0, rows) + kr_source_bytes(&self.state.value, 0, rows)
        cdef int64_t first, last
        if self.state.header_ends:
            first, last = self.state.header_ends[0], self.state.header_ends[rows]
            size += kr_source_bytes(&self.state.header_key, first, last) + 4 * (last - first)
            size += kr_source_bytes(&self.state.header_value, first, last)
        return size

    def set_key(self, TextColumn column not None, int64_t first):
        self._binary(&self.state.key, column, first, self.state.rows)

    def set_value(self, TextColumn column not None, int64_t first):
        self._binary(&self.state.value, column, first, self.state.rows)

    def set_timestamp(self, data, int64_t offset, int unit):
        """Numbers of 64 bits, of which ``offset`` are skipped, and one of ``TIME_UNITS``."""
        cdef Input source = Input(data)
        if offset < 0 or self.state.rows > source.size // <int64_t>sizeof(int64_t) - offset:
            raise ValueError(f"{source.size} bytes are too few for {self.state.rows} timestamps behind {offset}")
        if unit not in TIME_UNITS.values():
            raise ValueError(f"{unit} is no unit of time")
        if <uintptr_t>source.data % sizeof(int64_t):
            source = Input(bytes(data))
        self.held.append(source)
        self.state.timestamp = <const int64_t *>source.data + offset
        self.state.timestamp_unit = <kr_time_unit>unit

    def set_headers(self, ListColumn lists not None, int64_t first, TextColumn keys not None, TextColumn values not None):
        """Headers of the rows from ``first`` on. Those of a list that is null are not written."""
        cdef int64_t items, from_item
        cdef Arena ends
        taken, items, fault = lists.measure(first, self.state.rows, INT32_MAX)
        if taken < self.state.rows:
            raise ValueError(f"headers of rows {first} to {first + self.state.rows} do not fit a column")
        if not self.state.rows:
            return
        from_item = lists.first_item(first)
        ends = lists.ends(first, self.state.rows)
        self._binary(&self.state.header_key, keys, from_item, items)
        self._binary(&self.state.header_value, values, from_item, items)
        self.held.append(ends)
        self.held.append(lists)
        self.state.header_ends = <const int32_t *>ends.data
        self.state.header_validity = lists.state.validity.start
        self.state.header_validity_offset = lists.state.offset + first


cdef class Encoder:
    """Packs sources into record batches, one behind the other. ``batch_records``: int32, or None.

    In a ``with`` statement it is one thread's alone; the methods that write or take are called there.
    """

    def __cinit__(self, *, int64_t base_offset, int32_t partition_leader_epoch, int64_t producer_id,
                  int16_t producer_epoch, int32_t base_sequence, int attributes, int64_t max_batch_bytes,
                  int32_t max_batch_records, batch_records, bint refuse_markers, int64_t timestamp_ms):
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

    def __enter__(self):
        enter(&self.busy, self)
        return self

    def __exit__(self, *_):
        kr_busy_leave(&self.busy)

    cdef int _reserve(self, int64_t more) except -1:
        """Room for so many bytes more, with what is written so far kept. Little is copied in all: memory that is asked
        for ahead costs nothing until it is written to."""
        cdef Arena arena
        cdef int64_t room
        if self.arena is not None and self.state.written + more <= self.state.capacity:
            return 0
        room = self.state.written + max(more, KR_ROOM_AHEAD * self.state.written)
        try:
            arena = Arena(room + KR_PADDING)
        except MemoryError:
            room = self.state.written + more
            arena = Arena(room + KR_PADDING)
        if self.state.written:
            memcpy(arena.data, self.state.out, self.state.written)
        self.arena = arena
        self.state.out = arena.data
        self.state.capacity = room
        return 0

    def write(self, sources, int64_t data_bytes, int64_t rows):
        """Writes all rows of an iterable of sources and returns None. Where one cannot be written, no row is, and it
        returns why: status, row, expected and actual size, and how many records the open batch had by then. Whatever
        raises meanwhile, no row is written either. Room for so many bytes and rows is taken at once."""
        cdef kr_encoder before = self.state
        cdef Source source
        cdef int64_t done = 0
        cdef bint is_written = False
        try:
            if data_bytes:
                self._reserve(data_bytes + self._overhead(rows))
            for source in sources:
                failure = self._write(&source.state, source.size() + self._overhead(source.state.rows), done)
                if failure is not None:
                    return failure
                done += source.state.rows
            is_written = True
        finally:
            if not is_written:
                before.out, before.capacity = self.state.out, self.state.capacity
                self.state = before

    def write_lists(self, sources, const int64_t[::1] ends, int64_t rows, Source begin_markers=None,
                    Source end_markers=None):
        """Writes rows as lists, each of which ends before the row in ``ends`` and is encoded as if it were alone, with a
        marker in front of its rows and one behind them. Returns where the batches of each list end, as a buffer of
        int64, or None where a row cannot be written; nothing can be written or taken then."""
        cdef int64_t count = ends.shape[0], before = 0, done = 0, marker_bytes = 0, i
        cdef Arena sizes = Arena(max(count, 1) * <int64_t>sizeof(int64_t))
        cdef kr_record_lists lists = kr_record_lists_of(&self.state, count, &ends[0] if count else NULL,
                                                        <int64_t *>sizes.data)
        cdef Source source
        for i in range(count):
            if not before <= ends[i] <= rows:
                raise ValueError(f"list {i} ends at row {ends[i]}, outside of {before} to {rows}")
            before = ends[i]
        for source in (begin_markers, end_markers):
            if source is not None and source.state.rows != count:
                raise ValueError(f"{source.state.rows} markers for {count} lists")
        if begin_markers is not None:
            lists.begin_marker = begin_markers.state.value
            marker_bytes += begin_markers.size()
        if end_markers is not None:
            lists.end_marker = end_markers.state.value
            marker_bytes += end_markers.size()
        for source in (sources if rows else (Source(0),)):
            if done + source.state.rows > rows:
                raise ValueError(f"{done + source.state.rows} rows, more than {rows}")
            if not self._write_lists(source, done, rows, marker_bytes, &lists):
                return None
            done += source.state.rows
        if lists.at < count:
            raise ValueError(f"{done} rows are the rows of {lists.at} lists, of {count}")
        return memoryview(sizes)[:count * sizeof(int64_t)]

    cdef bint _write_lists(self, Source source, int64_t done, int64_t rows, int64_t marker_bytes,
                           kr_record_lists *lists) except -1:
        """Whether all rows of a source could be written. Room is taken for its share of the lists."""
        cdef int64_t of_lists = marker_bytes + lists.count * (KR_RECORD_BATCH_OVERHEAD + 2 * KR_RECORD_OVERHEAD)
        cdef int64_t more = source.size() + self._overhead(source.state.rows)
        cdef int status = KR_NEEDS_ROOM
        more += of_lists if source.state.rows == rows else of_lists // rows * source.state.rows
        self.state.row = 0
        while status == KR_NEEDS_ROOM:
            self._reserve(more)
            with nogil:
                status = kr_encoder_run_lists(&self.state, &source.state, done, lists)
            more = self.state.error.expected
        return status == KR_OK

    def write_marker(self, const uint8_t[::1] value):
        """Writes a row that is a value alone, whether or not it is a marker. Returns what ``write`` does."""
        cdef int32_t[2] ends = [0, <int32_t>value.shape[0]]
        cdef Source source = Source(1)
        cdef int8_t refuse_markers = self.state.refuse_markers
        source.state.value.ends = ends
        source.state.value.data = &value[0]
        source.state.value.data_size = value.shape[0]
        self.state.refuse_markers = 0
        try:
            return self.write((source,), 0, 1)
        finally:
            self.state.refuse_markers = refuse_markers

    cdef int64_t _overhead(self, int64_t rows) noexcept:
        """Bytes beside the data that so many rows take, most likely."""
        return rows * KR_RECORD_OVERHEAD + (rows // self.state.max_batch_records + 2) * KR_RECORD_BATCH_OVERHEAD

    cdef object _write(self, const kr_source *source, int64_t more, int64_t rows_done):
        cdef int status = KR_NEEDS_ROOM
        self.state.row = 0
        while status == KR_NEEDS_ROOM:
            self._reserve(more)
            with nogil:
                status = kr_encoder_run(&self.state, source)
            more = self.state.error.expected
        if status == KR_OK:
            return None
        return (status, rows_done + self.state.error.record_index, self.state.error.expected,
                self.state.error.actual, 0 if self.state.batch_at < 0 else self.state.count)

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
        cdef Arena fresh = None
        taken = memoryview(arena)[:end]
        if left:
            fresh = Arena(left + KR_PADDING)
            memcpy(fresh.data, self.state.out + end, left)
            self.state.batch_at = 0
        self.arena = fresh  # from here on nothing fails
        self.state.out = fresh.data if left else NULL
        self.state.capacity = self.state.written = left
        return taken


def rewrite_batches(buffer, base_offset, partition_leader_epoch, is_log_append_time, max_timestamp):
    """Changes the headers of the batches in a writable buffer; None leaves a field as it is. Returns the offset behind
    the last batch, and None or the fault that kept all of them as they were."""
    cdef kr_changes changes
    cdef kr_batch_header header
    cdef kr_error error
    cdef kr_input input
    cdef int64_t next_offset
    cdef int status
    cdef Py_buffer view
    memset(&changes, 0, sizeof(kr_changes))
    changes.sets_base_offset = base_offset is not None
    changes.base_offset = -1 if base_offset is None else base_offset
    changes.sets_leader_epoch = partition_leader_epoch is not None
    changes.partition_leader_epoch = partition_leader_epoch or 0
    changes.sets_timestamp_type = is_log_append_time is not None
    changes.is_log_append_time = bool(is_log_append_time)
    changes.sets_max_timestamp = max_timestamp is not None
    changes.max_timestamp = max_timestamp or 0
    PyObject_GetBuffer(buffer, &view, PyBUF_WRITABLE)
    try:
        input = kr_input_make(<const uint8_t *>view.buf, view.len)
        with nogil:
            status = kr_changes_check(&input, &changes, &header, &next_offset, &error)
            if status == KR_OK:
                kr_changes_apply(<uint8_t *>view.buf, view.len, &changes)
    finally:
        PyBuffer_Release(&view)
    if status == KR_OK:
        return next_offset, None
    return next_offset, (status, -1, error.position, error.expected, error.actual, error.position, -1, 0, False)
