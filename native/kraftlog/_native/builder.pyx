"""One record batch, filled by single records and by columns: lends them to native/c/record/encoder.h."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_GET_SIZE, PyByteArray_Resize
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.long cimport PyLong_AsLongLongAndOverflow
from cpython.number cimport PyIndex_Check, PyNumber_Index
from cpython.unicode cimport PyUnicode_AsUTF8AndSize
from collections.abc import Mapping

from libc.stdint cimport INT32_MAX, INT64_MAX, int16_t, int32_t, int64_t, uint8_t
from libc.string cimport memcpy

from kraftlog._native.c_crc cimport kr_crc_init
from kraftlog._native.c_decoder cimport KR_NEEDS_ROOM, KR_OK, KR_RECORD_BATCH_OVERHEAD
from kraftlog._native.c_encoder cimport (
    KR_RECORD_TOO_LARGE,
    kr_encoder,
    kr_encoder_close_batch,
    kr_encoder_run,
    kr_source,
)
from kraftlog._native.c_lent cimport kr_lent_binary
from kraftlog._native.c_memory cimport kr_busy_leave
from kraftlog._native.encoder cimport Encoder, Source
from kraftlog._native.memory cimport enter

kr_crc_init()

cdef enum:
    KR_FIRST_ROOM = 16 << 10


cdef int64_t timestamp_of(object given) except? -2:
    """Returns a timestamp in milliseconds, or -1 for none, as Kafka's builder takes them."""
    cdef int is_beyond = 0
    cdef int64_t stamp
    if not PyIndex_Check(given):
        raise TypeError(f"timestamp_ms {given!r} is not an integer")
    number = PyNumber_Index(given)
    stamp = PyLong_AsLongLongAndOverflow(number, &is_beyond)
    if is_beyond or stamp < -1:
        raise ValueError(f"timestamp_ms {number} is not between -1 and {INT64_MAX}")
    return stamp


cdef bint lend(object given, kr_lent_binary *c, int32_t *ends, Py_buffer *view) except -1:
    """Makes a column of one value. Returns whether there is a buffer to be given back."""
    cdef bint is_viewed = False
    cdef Py_ssize_t size
    c.ends = NULL
    if given is None:
        return False
    if isinstance(given, bytes):
        c.data = <const uint8_t *>PyBytes_AS_STRING(given)
        size = PyBytes_GET_SIZE(given)
    elif isinstance(given, str):
        c.data = <const uint8_t *>PyUnicode_AsUTF8AndSize(given, &size)
    else:
        PyObject_GetBuffer(given, view, PyBUF_SIMPLE)
        is_viewed = True
        c.data = <const uint8_t *>view.buf
        size = view.len
    ends[1] = <int32_t>min(size, INT32_MAX)  # a record with as much is refused
    c.ends = ends
    c.data_size = size
    return is_viewed


cdef class Values:
    """A column of values that are copied one behind the other."""

    cdef bytearray data, validity, ends
    cdef int64_t count, size

    def __cinit__(self):
        self.data, self.validity, self.ends = bytearray(256), bytearray(2), bytearray(64)

    cdef int clear(self, int64_t count) except -1:
        """Empties it and makes room for so many values."""
        self.count = self.size = 0
        if PyByteArray_GET_SIZE(self.ends) < 4 * (count + 1):
            PyByteArray_Resize(self.ends, 8 * (count + 1))
            PyByteArray_Resize(self.validity, 2 * (count // 8 + 1))
        (<int32_t *>PyByteArray_AS_STRING(self.ends))[0] = 0
        return 0

    cdef int add(self, given) except -1:
        cdef kr_lent_binary one
        cdef int32_t[2] ends
        cdef Py_buffer view
        cdef uint8_t *valid = <uint8_t *>PyByteArray_AS_STRING(self.validity) + self.count // 8
        cdef bint is_viewed = lend(given, &one, ends, &view)
        cdef int64_t size = 0 if one.ends == NULL else one.data_size
        try:
            if self.size + size > INT32_MAX:
                raise ValueError(f"headers of {self.size + size} bytes, more than {INT32_MAX}")
            if self.size + size > PyByteArray_GET_SIZE(self.data):
                PyByteArray_Resize(self.data, 2 * (self.size + size))
            if size:
                memcpy(PyByteArray_AS_STRING(self.data) + self.size, one.data, size)
        finally:
            if is_viewed:
                PyBuffer_Release(&view)
        if self.count % 8 == 0:
            valid[0] = 0
        valid[0] |= <uint8_t>((one.ends != NULL) << (self.count % 8))
        self.size += size
        self.count += 1
        (<int32_t *>PyByteArray_AS_STRING(self.ends))[self.count] = <int32_t>self.size
        return 0

    cdef void show(self, kr_lent_binary *c) noexcept:
        c.ends = <const int32_t *>PyByteArray_AS_STRING(self.ends)
        c.data = <const uint8_t *>PyByteArray_AS_STRING(self.data)
        c.data_size = PyByteArray_GET_SIZE(self.data)
        c.validity = <const uint8_t *>PyByteArray_AS_STRING(self.validity)
        c.validity_at = 0


cdef class Fields:
    """What one record lends: bytes of its key, value and headers. Text is lent as UTF-8."""

    cdef kr_source state
    cdef int32_t[2] key_ends
    cdef int32_t[2] value_ends
    cdef int32_t[2] header_ends
    cdef int64_t timestamp_ms
    cdef Py_buffer key, value
    cdef bint has_key, has_value
    cdef Values header_keys, header_values

    def __cinit__(self):
        self.header_keys = Values()
        self.header_values = Values()
        self.state.rows = 1
        self.state.timestamp = &self.timestamp_ms

    cdef int set(self, key, value, headers, int64_t timestamp_ms) except -1:
        self.has_key = lend(key, &self.state.key, self.key_ends, &self.key)
        self.has_value = lend(value, &self.state.value, self.value_ends, &self.value)
        self.timestamp_ms = timestamp_ms
        self.state.header_ends = NULL
        if headers:
            self._set_headers(headers)
        return 0

    cdef int _set_headers(self, headers) except -1:
        """Headers are two columns to the encoder, so they are copied one behind the other."""
        cdef list pairs = list(headers.items() if isinstance(headers, Mapping) else headers)
        cdef Py_ssize_t count = len(pairs), i
        self.header_keys.clear(count)
        self.header_values.clear(count)
        for i in range(count):
            if isinstance(pairs[i], (str, bytes)):  # two characters would do as a pair
                raise TypeError(f"a header is {pairs[i]!r}, not a pair of key and value")
            key, value = pairs[i]
            if not isinstance(key, str):
                raise TypeError(f"the key of a header is {type(key).__name__}, not str")
            self.header_keys.add(key)
            self.header_values.add(value)
        self.header_keys.show(&self.state.header_key)
        self.header_values.show(&self.state.header_value)
        self.header_ends[1] = <int32_t>count
        self.state.header_ends = self.header_ends
        return 0

    cdef void clear(self) noexcept:
        if self.has_key:
            PyBuffer_Release(&self.key)
        if self.has_value:
            PyBuffer_Release(&self.value)
        self.has_key = self.has_value = False


cdef class Builder:
    """Packs records into one batch until it is full. Only the first record may take more than ``max_batch_bytes``."""

    cdef Encoder encoder
    cdef Fields fields
    cdef int32_t planned
    cdef int64_t max_batch_bytes, closed_size
    cdef bint is_closed

    def __init__(self, int64_t max_batch_bytes, int attributes, int64_t timestamp_ms):
        if self.encoder is not None:
            raise RuntimeError(f"the {type(self).__name__} has begun already")
        cdef Encoder encoder = Encoder(
            base_offset=0, partition_leader_epoch=-1, producer_id=-1, producer_epoch=-1, base_sequence=-1,
            attributes=attributes, max_batch_bytes=max_batch_bytes, max_batch_records=INT32_MAX, batch_records=None,
            refuse_markers=False, timestamp_ms=timestamp_ms)
        self.fields = Fields()
        self.planned = INT32_MAX
        encoder.state.batch_records = &self.planned  # a plan of one batch: the encoder stops where it is full
        encoder.state.planned = 1
        self.max_batch_bytes = max_batch_bytes
        self.encoder = encoder

    cdef Encoder _made(self):
        """The encoder, unless a subclass has not called ``__init__``, or it has failed."""
        if self.encoder is None:
            raise RuntimeError(f"{type(self).__name__}.__init__ was not called, or has failed")
        return self.encoder

    cdef Encoder _begin(self):
        """The encoder, this thread's alone until kr_busy_leave."""
        cdef Encoder encoder = self._made()
        enter(&encoder.busy, self)
        return encoder

    @property
    def records_count(self):
        """Records taken so far."""
        return self._made().state.count

    @property
    def size_in_bytes(self):
        """Bytes of the batch without compression, its header counted."""
        return max(self._made().state.written, self.closed_size, KR_RECORD_BATCH_OVERHEAD)

    def append(self, key=None, value=None, headers=None, timestamp_ms=None):
        """Add a record, unless the batch has no room for it.

        Parameters
        ----------
        key, value : bytes, str or buffer, optional
            Text is written as UTF-8; None is null.
        headers : iterable of (str, bytes or None), or mapping of str to bytes or None, optional
            In order; a mapping cannot have a key twice.
        timestamp_ms : int, optional
            By default the builder's; -1 means none.

        Returns
        -------
        bool
            False where the record was not added: the batch is full, and the record belongs in the next one. The first
            record of a batch is always added.

        Raises
        ------
        ValueError
            When the batch is closed, the record alone takes 2 GiB, or the timestamp is negative.
        TypeError
            When a part is of another type.
        RuntimeError
            When another thread is using the builder.
        """
        cdef Encoder encoder = self._begin()
        cdef int64_t stamp
        try:
            stamp = encoder.state.timestamp if timestamp_ms is None else timestamp_of(timestamp_ms)
            self.fields.set(key, value, headers, stamp)
            return self._fill(&self.fields.state, 0) == 1
        finally:
            self.fields.clear()
            kr_busy_leave(&encoder.busy)

    def _write(self, sources):
        """Adds rows from the front of an iterable of sources; returns how many there was room for."""
        cdef Encoder encoder = self._begin()
        cdef kr_encoder *state = &encoder.state
        cdef kr_encoder before = state[0]
        cdef Source source
        cdef int64_t done = 0, taken
        cdef bint is_done = False
        try:
            for source in sources:
                taken = self._fill(&source.state, source.size())
                done += taken
                if taken < source.state.rows:
                    break
            is_done = True
        finally:
            if not is_done:
                before.out, before.capacity = state.out, state.capacity
                state[0] = before
            kr_busy_leave(&encoder.busy)
        return done

    cdef int64_t _fill(self, const kr_source *source, int64_t more) except -1:
        """How many rows there was room for."""
        cdef kr_encoder *state = &self.encoder.state
        cdef int status = KR_NEEDS_ROOM
        if self.is_closed:
            raise ValueError("the batch is closed; a new builder takes the next one")
        if self.encoder.arena is None:
            self.encoder._reserve(more + min(self.max_batch_bytes, KR_FIRST_ROOM))
        state.row = 0
        while status == KR_NEEDS_ROOM:
            status = self._run(state, source)
            if status == KR_NEEDS_ROOM:
                self.encoder._reserve(state.error.expected)
        if status == KR_RECORD_TOO_LARGE and state.batch_at < 0:
            raise ValueError(f"a batch of the record alone takes {state.error.actual} bytes, more than {INT32_MAX}")
        return state.row

    cdef int _run(self, kr_encoder *state, const kr_source *source) noexcept:
        cdef kr_source first
        cdef int status
        if state.batch_at < 0 and source.rows > 0:
            first = source[0]
            first.rows = 1
            state.max_batch_bytes = INT32_MAX
            status = kr_encoder_run(state, &first)
            state.max_batch_bytes = self.max_batch_bytes
            if status != KR_OK or source.rows == 1:
                return status
        if source.rows == 1:
            return kr_encoder_run(state, source)
        with nogil:
            status = kr_encoder_run(state, source)
        return status

    def _close(self, int64_t base_offset, int32_t partition_leader_epoch, int64_t producer_id, int16_t producer_epoch,
               int32_t base_sequence, int attributes, finish):
        """Ends the batch and returns what ``finish`` makes of it; the bits of ``attributes`` are added to its header. When
        that fails, the batch is as it was."""
        cdef Encoder encoder = self._begin()
        cdef kr_encoder *state = &encoder.state
        cdef kr_encoder before
        try:
            if self.is_closed:
                raise ValueError("the batch is closed already")
            before = state[0]
            state.base_offset = base_offset
            state.partition_leader_epoch = partition_leader_epoch
            state.producer_id = producer_id
            state.producer_epoch = producer_epoch
            state.base_sequence = base_sequence
            state.attributes |= attributes
            kr_encoder_close_batch(state)
            state[0] = before
            made = finish(memoryview(b"") if state.written == 0 else memoryview(encoder.arena)[:state.written])
            self.is_closed = True
            self.closed_size = max(state.written, KR_RECORD_BATCH_OVERHEAD)
            encoder.arena = None  # what was returned may be all that holds it
            state.out = NULL
            state.written = state.capacity = 0
            state.batch_at = -1
            return made
        finally:
            kr_busy_leave(&encoder.busy)
