"""Records of a buffer as objects: one for each, without Arrow around them."""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdlib cimport calloc, free
from libc.stdint cimport INT64_MAX, INT64_MIN, int32_t, int64_t, uint8_t

from kraftlog._native.c_crc cimport kr_crc_init
from kraftlog._native.c_decoder cimport kr_aborted, kr_batch_header, kr_decoder
from kraftlog._native.c_record cimport bytes_or_none, kr_header_fast, kr_record
from kraftlog._native.memory cimport kr_input, kr_input_make, kr_lent

kr_crc_init()

cdef int64_t LARGE_BATCH = 128 << 10  # bytes that take longer to sum than other threads take to be let in


cdef extern from "record/sound_batch.h" nogil:
    enum:
        KR_SOUND_END
        KR_SOUND_RECORDS
        KR_SOUND_PASSED
        KR_SOUND_NOT

    ctypedef struct kr_sound:
        kr_input input
        int64_t position, next_offset
        const kr_decoder *filter
        int ignores_crc

    ctypedef struct kr_sound_records:
        pass

    int64_t kr_sound_size(const kr_sound *s)
    int kr_sound_open(kr_sound *s, kr_batch_header *h, kr_sound_records *r)
    void kr_sound_pass(kr_sound *s, const kr_batch_header *h)
    int kr_sound_next(kr_sound_records *s, kr_record *r)
    int kr_sound_is_done(const kr_sound_records *s)
    int64_t kr_record_offset(const kr_batch_header *h, const kr_record *r)
    int64_t kr_record_timestamp(const kr_batch_header *h, const kr_record *r)
    int kr_is_control(const kr_batch_header *h)


cdef extern from "text/utf8.h" nogil:
    enum:
        KR_UTF8_GROWTH

    int64_t kr_copy_utf8(uint8_t *to, const uint8_t *source, int64_t n)


@cython.final
@cython.no_gc
@cython.freelist(256)
cdef class Record:
    """One record.

    Attributes
    ----------
    offset, timestamp_ms : int
    key, value : bytes or None
    headers : tuple of (str, bytes or None)
    is_control : bool
        Whether a broker wrote it; ``decode_control`` says what it means.
    """

    cdef readonly int64_t offset
    cdef readonly int64_t timestamp_ms
    cdef readonly object key
    cdef readonly object value
    cdef readonly tuple headers
    cdef readonly bint is_control

    def __init__(self, int64_t offset, int64_t timestamp_ms, key, value, tuple headers=(), bint is_control=False):
        self.offset = offset
        self.timestamp_ms = timestamp_ms
        self.key = key
        self.value = value
        self.headers = headers
        self.is_control = is_control

    def _fields(self):
        return self.offset, self.timestamp_ms, self.key, self.value, self.headers, self.is_control

    def __eq__(self, other):
        return isinstance(other, Record) and self._fields() == (<Record>other)._fields()

    def __hash__(self):
        return hash(self._fields())

    def __reduce__(self):
        return Record, self._fields()

    def __repr__(self):
        return (
            f"Record(offset={self.offset}, timestamp_ms={self.timestamp_ms}, key={self.key!r}, value={self.value!r}, "
            f"headers={self.headers!r}, is_control={self.is_control})"
        )


cdef str text_of(const uint8_t *p, int32_t size):
    """The text of a header's key, as Kafka reads it."""
    cdef bytes valid
    try:
        return PyUnicode_DecodeUTF8(<const char *>p, size, NULL)
    except UnicodeDecodeError:
        valid = PyBytes_FromStringAndSize(NULL, KR_UTF8_GROWTH * <Py_ssize_t>size)
        return valid[:kr_copy_utf8(<uint8_t *><char *>valid, p, size)].decode()


cdef tuple headers_of(const kr_record *r):
    cdef const uint8_t *p = r.headers
    cdef const uint8_t *key = NULL
    cdef const uint8_t *value = NULL
    cdef int32_t key_length = 0, value_length = 0
    headers = []
    for _ in range(r.headers_count):
        p = kr_header_fast(p, r.end, &key, &key_length, &value, &value_length)
        headers.append((text_of(key, key_length), bytes_or_none(value, value_length)))
    return tuple(headers)


cdef Record record_of(const kr_batch_header *h, const kr_record *r):
    cdef Record record = Record.__new__(Record)
    record.offset = kr_record_offset(h, r)
    record.timestamp_ms = kr_record_timestamp(h, r)
    record.key = bytes_or_none(r.key, r.key_length)
    record.value = bytes_or_none(r.value, r.value_length)
    record.headers = headers_of(r) if r.headers_count else ()
    record.is_control = kr_is_control(h)
    return record


@cython.final
@cython.freelist(8)
cdef class RecordIterator:
    """Records of a buffer, one at a time, and how far they go; ``kraftlog.records`` makes it.

    Attributes
    ----------
    consumed : int
        Bytes of the buffer that whole batches took, that of the last record included.
    next_offset : int or None
        The offset behind the last of these batches, whether shown or not; None when there was none.
    faults : list of Fault
        What could not be read so far.
    """

    cdef readonly object start_offset, isolation_level, max_decompressed_bytes
    cdef readonly bytes aborted
    cdef readonly bint include_control, strict, check_crc
    cdef kr_lent lent
    cdef kr_sound state
    cdef kr_decoder *filter
    cdef int64_t first_offset
    cdef list ready, found
    cdef Py_ssize_t at, count
    cdef object take_over, rest, decoder

    def __dealloc__(self):
        PyBuffer_Release(&self.lent.view)
        free(self.filter)

    cdef int _filter(self) except -1:
        """Lets whole batches be passed over."""
        self.filter = <kr_decoder *>calloc(1, sizeof(kr_decoder))
        if self.filter == NULL:
            raise MemoryError
        self.filter.start_offset = self.first_offset
        self.filter.end_offset = INT64_MAX
        self.filter.start_timestamp = INT64_MIN
        if self.aborted is not None:
            self.filter.aborted = <const kr_aborted *><const char *>self.aborted
            self.filter.aborted_count = len(self.aborted) // sizeof(kr_aborted)
        self.state.filter = self.filter
        return 0

    @property
    def consumed(self):
        return self.state.position if self.decoder is None else self.decoder.reached[0]

    @property
    def next_offset(self):
        offset = -1 if self.decoder is None else self.decoder.reached[1]
        if offset == -1:
            offset = self.state.next_offset
        return None if offset == -1 else offset

    @property
    def faults(self):
        if self.found is None:
            self.found = []
        return self.found

    @property
    def buffer(self):
        return None if self.lent.view.buf == NULL else <object>self.lent.view.obj  # NULL before __init__

    def __iter__(self):
        return self

    def __next__(self):
        with cython.critical_section(self):  # instead of the GIL
            record = self._next()
        if record is None:
            raise StopIteration  # here it costs nothing, below it would be an exception with a traceback
        return record

    cdef object _next(self):
        """The next record, None behind the last one."""
        cdef int status
        cdef Record record
        while self.at == self.count:
            status = KR_SOUND_NOT if self.rest is not None else self._read_batch()
            if status == KR_SOUND_END:
                return None
            if status == KR_SOUND_NOT:
                if self.rest is None:
                    self.decoder, self.rest = self.take_over(self, self.state.position)
                return next(self.rest, None)
        record = <Record>self.ready[self.at]
        self.at += 1
        return record

    cdef int _open_large(self, kr_batch_header *h, kr_sound_records *s) except -1:
        """As kr_sound_open, while other threads run. One of them may use this iterator: when it has gone on meanwhile,
        nothing has been done here."""
        cdef kr_sound state = self.state
        cdef int64_t position = state.position
        cdef int status
        with nogil:
            status = kr_sound_open(&state, h, s)
        if self.state.position != position or self.at != self.count:
            return KR_SOUND_PASSED
        self.state.position = state.position
        self.state.next_offset = state.next_offset
        return status

    cdef int _read_batch(self) except -1:
        """Makes the records of the next batch ready, when it is plain and sound; a kr_sound_status."""
        cdef kr_batch_header h
        cdef kr_sound_records s
        cdef kr_record r
        cdef list ready
        cdef bint is_shown
        cdef int status
        if kr_sound_size(&self.state) < LARGE_BATCH:
            status = kr_sound_open(&self.state, &h, &s)
        else:
            status = self._open_large(&h, &s)
        if status != KR_SOUND_RECORDS:
            return status
        ready = []
        is_shown = self.include_control or not kr_is_control(&h)
        while kr_sound_next(&s, &r):
            if is_shown and kr_record_offset(&h, &r) >= self.first_offset:
                ready.append(record_of(&h, &r))
        if not kr_sound_is_done(&s):
            return KR_SOUND_NOT
        kr_sound_pass(&self.state, &h)
        self.ready = ready
        self.count = len(ready)
        self.at = 0
        return status


def iterate(buffer not None, start_offset, isolation_level, bytes aborted, bint include_control, bint strict,
            bint check_crc, max_decompressed_bytes, take_over):
    """A RecordIterator. ``aborted`` are the bytes of an array of kr_aborted. From the first batch on that is not plain
    and sound, ``take_over`` is asked for a decoder and the records that it makes."""
    cdef RecordIterator made = RecordIterator.__new__(RecordIterator)
    PyObject_GetBuffer(buffer, &made.lent.view, PyBUF_SIMPLE)
    made.start_offset = start_offset
    made.isolation_level = isolation_level
    made.aborted = aborted
    made.include_control = include_control
    made.strict = strict
    made.check_crc = check_crc
    made.state.ignores_crc = not check_crc
    made.max_decompressed_bytes = max_decompressed_bytes
    made.take_over = take_over
    made.first_offset = INT64_MIN if start_offset is None else start_offset
    made.state.input = kr_input_make(<const uint8_t *>made.lent.view.buf, made.lent.view.len)
    made.state.next_offset = -1
    if start_offset is not None or aborted is not None:
        made._filter()
    return made
