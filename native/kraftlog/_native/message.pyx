"""Typed messages: owns the memory that native/c/message/*.h fill, and releases the GIL around them."""

import numpy as np

from cpython.buffer cimport PyBuffer_FillInfo
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t, uintptr_t, uintptr_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from kraftlog._native.c_arrow cimport ArrowArray, kr_array_of_rows
from kraftlog._native.c_message cimport (
    KR_FIRST_MARKER_KEY,
    KR_FRAME_VERSION,
    KR_KIND_BOOL,
    KR_KIND_BYTES,
    KR_KIND_FLOAT64,
    KR_KIND_INT16,
    KR_KIND_INT32,
    KR_KIND_INT64,
    KR_KIND_INT8,
    KR_KIND_STRING,
    KR_KIND_STRUCT,
    KR_KIND_UINT16,
    KR_KIND_UINT32,
    KR_KIND_UUID,
    KR_LAST_MARKER_KEY,
    KR_LOW_TAGS,
    KR_MANY_GROUPS,
    KR_MOST_GROUPS,
    KR_NO_TYPE,
    KR_NO_VERSION,
    KR_NULL_KEY,
    KR_OK,
    KR_UUID_SIZE,
    KR_ZERO_UUID_TEXT,
    kr_column,
    kr_column_free,
    kr_column_open,
    kr_decode_versions,
    kr_field,
    kr_frame_fault,
    kr_frames,
    kr_group,
    kr_group_rows,
    kr_growing,
    kr_growing_free,
    kr_level,
    kr_message_arrays,
    kr_message_arrays_count,
    kr_message_decoder,
    kr_message_decoder_close,
    kr_message_fault,
    kr_program,
    kr_read_frames,
    kr_read_int16_prefixes,
    kr_reserve,
    kr_rows_within,
    kr_straight,
    kr_straight_of,
    kr_uuid_text_init,
    kr_versioned,
    kr_versions_within,
)
from kraftlog._native.c_memory cimport kr_busy, kr_busy_leave, kr_pool_use
from kraftlog._native.memory cimport Input, enter, shared_pool

kr_uuid_text_init()
kr_pool_use(shared_pool())

INT32, INT64, UINT8 = np.dtype(np.int32), np.dtype(np.int64), np.dtype(np.uint8)
NO_TYPE = KR_NO_TYPE
NO_VERSION = KR_NO_VERSION
FRAME_VERSION = KR_FRAME_VERSION
FIRST_MARKER_KEY, LAST_MARKER_KEY = KR_FIRST_MARKER_KEY, KR_LAST_MARKER_KEY
LOW_TAGS = KR_LOW_TAGS
ZERO_UUID = KR_ZERO_UUID_TEXT.decode()
KINDS = {
    "bool": KR_KIND_BOOL,
    "int8": KR_KIND_INT8,
    "int16": KR_KIND_INT16,
    "uint16": KR_KIND_UINT16,
    "int32": KR_KIND_INT32,
    "uint32": KR_KIND_UINT32,
    "int64": KR_KIND_INT64,
    "float64": KR_KIND_FLOAT64,
    "uuid": KR_KIND_UUID,
    "string": KR_KIND_STRING,
    "bytes": KR_KIND_BYTES,
    "struct": KR_KIND_STRUCT,
}

FIELD_DTYPE = np.dtype([
    ("kind", "u1"), ("is_array", "u1"), ("is_nullable", "u1"), ("null_default", "u1"), ("is_ignorable", "u1"),
    ("place", "u1"), ("tagged_slot", "u1"), ("unused", "u1"), ("tag", "i4"), ("first", "i4"), ("count", "i4"),
    ("tagged", "i4"), ("unknown", "i4"), ("by_tag", "u1", KR_LOW_TAGS),
    ("default_bits", "i8"), ("default_wire", "u1", KR_UUID_SIZE), ("default_at", "i4"), ("default_size", "i4"),
    ("name_at", "i4"), ("name_size", "i4"),
], align=True)
assert FIELD_DTYPE.itemsize == sizeof(kr_field)


cdef uint8_t nothing = 0  # what an empty buffer points to


cdef class Grown:
    """A buffer that C has filled; a memoryview of it keeps it alive."""

    @staticmethod
    cdef Grown take(kr_growing *source):
        cdef Grown taken = Grown()
        taken.grown = source[0]
        memset(source, 0, sizeof(kr_growing))
        return taken

    def __dealloc__(self):
        kr_growing_free(&self.grown)

    def __len__(self):
        return self.grown.size

    def __getbuffer__(self, Py_buffer *view, int flags):
        cdef uint8_t *bytes = self.grown.bytes if self.grown.bytes != NULL else &nothing
        PyBuffer_FillInfo(view, self, bytes, self.grown.size, 0, flags)


cdef object pooled(int64_t count, dtype):
    """An array of so many numbers, not set, in memory that is used again."""
    cdef Grown grown = Grown()
    cdef int64_t size = count * dtype.itemsize
    if not kr_reserve(&grown.grown, size):
        raise MemoryError(f"no memory for {size} bytes")
    grown.grown.size = size
    return np.frombuffer(grown, dtype) if count else np.empty(0, dtype)


cdef class Program:
    """A message of one version, as native/c/message/program.h has it."""

    def __init__(self, fields, text, bint is_compact, int columns):
        self.fields = Input(fields)
        self.text = Input(text)
        self.columns = columns  # one for each field, and one for the unknown tagged fields of each struct
        self.program.fields = <const kr_field *>self.fields.data
        self.program.fields_count = self.fields.size // sizeof(kr_field)
        self.program.text = self.text.data
        self.program.is_compact = is_compact


cdef class Programs:
    """The programs of all versions of a definition, and the decoder that was generated of it, if there is one."""

    def __cinit__(self, int32_t first, list programs, int columns, str name, digest):
        """``digest`` is that of the definition; None for the interpreter alone."""
        cdef uint64_t number = digest or 0
        cdef bytes named = name.encode()
        cdef int i
        self.first = first
        self.held = programs
        self.columns = columns
        self.programs = <kr_program *>calloc(max(len(programs), 1), sizeof(kr_program))
        if self.programs == NULL:
            raise MemoryError("no memory for programs")
        for i in range(len(programs)):
            if (<Program>programs[i]).columns != columns:
                raise ValueError("a program is of another message")
            self.programs[i] = (<Program>programs[i]).program
        self.straight = NULL if digest is None else <kr_straight *>kr_straight_of(named, number)

    def __dealloc__(self):
        free(self.programs)

    @property
    def is_straight(self):
        """Whether a decoder was generated of the definition."""
        return self.straight != NULL


cdef class Values:
    """An Arrow column of binary values: its buffers, from its first row on."""

    def __init__(self, int64_t count, int64_t offset, data, ends, valid):
        self.count = count
        self.ends = Input(ends)
        self.values.ends = <const int32_t *>self.ends.data + offset
        self.values.validity_at = offset
        if (offset + count + 1) * 4 > self.ends.size:
            raise ValueError("the offsets end early")
        if data is not None:
            self.data = Input(data)
            self.values.data = self.data.data
            self.values.data_size = self.data.size
        if valid is not None:
            self.valid = Input(valid)
            self.values.validity = self.valid.data


cdef list _frame_faults(kr_frames *frames):
    """(row, status, expected, actual) of each."""
    cdef kr_frame_fault *fault = <kr_frame_fault *>frames.faults.bytes
    cdef int64_t count = frames.faults.size // sizeof(kr_frame_fault)
    found = [(fault[i].row, fault[i].status, fault[i].expected, fault[i].actual) for i in range(count)]
    kr_growing_free(&frames.faults)
    if frames.no_memory:
        raise MemoryError("no memory for faults")
    return found


def read_frames(Values values):
    """Types, versions, starts and faults of values with a frame."""
    cdef int64_t n = values.count
    cdef kr_frames frames
    types, versions, starts = pooled(n, INT32), pooled(n, INT32), pooled(n, INT32)
    cdef int32_t[::1] types_view = types, versions_view = versions, starts_view = starts
    memset(&frames, 0, sizeof(frames))
    if n:
        frames.types = &types_view[0]
        frames.versions = &versions_view[0]
        frames.starts = &starts_view[0]
        with nogil:
            kr_read_frames(&values.values, n, &frames)
    return types, versions, starts, _frame_faults(&frames)


def read_prefixes(Values values, bint are_keys):
    """The int16 before each message, starts and faults; of keys or of values."""
    cdef int64_t n = values.count
    cdef kr_frames frames
    cdef int32_t none = KR_NO_TYPE if are_keys else KR_NO_VERSION
    cdef int32_t when_null = KR_NULL_KEY if are_keys else KR_OK
    numbers, starts = pooled(n, INT32), pooled(n, INT32)
    cdef int32_t[::1] numbers_view = numbers, starts_view = starts
    memset(&frames, 0, sizeof(frames))
    if n:
        frames.starts = &starts_view[0]
        with nogil:
            kr_read_int16_prefixes(&values.values, n, when_null, &frames, &numbers_view[0], none)
    return numbers, starts, _frame_faults(&frames)


def group_rows(const int32_t[::1] types, const int32_t[::1] versions):
    """(type, lowest version, highest version, rows) of each, in the order in which they begin; None when there are very
    many. Both are ``NO_VERSION`` where no row has one."""
    cdef int64_t n = types.shape[0], at = 0
    cdef kr_group groups[KR_MOST_GROUPS]
    cdef int count = 0, g
    rows, ids = pooled(n, INT64), pooled(n, UINT8)
    cdef int64_t[::1] rows_view = rows
    cdef uint8_t[::1] ids_view = ids
    if versions.shape[0] != n:
        raise ValueError("as many versions as types are needed")
    if n:
        with nogil:
            count = kr_group_rows(&types[0], &versions[0], n, groups, &ids_view[0], &rows_view[0])
    if count == KR_MANY_GROUPS:
        return None
    found = []
    for g in range(count):
        found.append((groups[g].type, groups[g].first_version, groups[g].last_version, rows[at:at + groups[g].count]))
        at += groups[g].count
    return found


cdef list faults_of(kr_message_decoder *d):
    """(row, field, status, position, expected, actual) of each."""
    cdef kr_message_fault *fault = <kr_message_fault *>d.faults.bytes
    cdef int64_t count = d.faults.size // sizeof(kr_message_fault)
    found = [
        (fault[i].row, fault[i].field, fault[i].error.status, fault[i].error.position, fault[i].error.expected,
         fault[i].error.actual)
        for i in range(count)
    ]
    d.faults.size = 0
    return found


cdef class Columns:
    """Takes messages, of any version of one definition, as columns."""

    def __cinit__(self, int count, bint uuid_text):
        cdef int i
        self.count = count
        self.is_open = True
        self.state.uuid_text = uuid_text
        self.state.columns = <kr_column *>calloc(max(count, 1), sizeof(kr_column))
        if self.state.columns == NULL:
            raise MemoryError("no memory for the columns of a message")
        for i in range(count):
            kr_column_open(&self.state.columns[i])

    def __dealloc__(self):
        cdef int i
        if self.state.columns != NULL:
            for i in range(self.count):
                kr_column_free(&self.state.columns[i])
        free(self.state.columns)
        kr_message_decoder_close(&self.state)

    def decode(self, Programs programs, Values values, const int64_t[::1] rows, const int32_t[::1] starts,
               const int32_t[::1] versions):
        """Appends the messages in these rows, each from its start on. Returns the faults; rows count in ``rows``."""
        enter(&self.busy, self)
        try:
            return self._decode(programs, values, rows, starts, versions)
        finally:
            kr_busy_leave(&self.busy)

    cdef list _decode(self, Programs programs, Values values, const int64_t[::1] rows, const int32_t[::1] starts,
                      const int32_t[::1] versions):
        cdef kr_versioned of_rows
        cdef int ok
        if programs.columns != self.count or not self.is_open:
            raise ValueError("the programs are of another message, or the columns were taken")
        if starts.shape[0] != values.count or versions.shape[0] != values.count:
            raise ValueError("a start and a version are needed for each value")
        if not rows.shape[0]:
            return []
        if not kr_rows_within(&rows[0], rows.shape[0], values.count):
            raise ValueError("a row is not one of the values")
        of_rows.messages.values = values.values
        of_rows.messages.rows = &rows[0]
        of_rows.messages.starts = &starts[0]
        of_rows.messages.count = rows.shape[0]
        of_rows.versions = &versions[0]
        if not kr_versions_within(&of_rows, programs.first, len(programs.held)):
            raise ValueError("there is no program for a version")
        self.programs = programs
        self.state.limit = values.values.data + values.values.ends[values.count]
        with nogil:
            ok = kr_decode_versions(&self.state, programs.programs, programs.first, programs.straight, &of_rows)
        if not ok:
            raise MemoryError("no memory for messages, or a column of more than 2 GiB")
        return faults_of(&self.state)

    @property
    def interpreted(self):
        """How many messages no generated decoder has read."""
        return self.state.interpreted

    @property
    def size(self):
        """Bytes that all columns take; none once they were taken."""
        cdef kr_column *c
        cdef int64_t total = 0
        cdef int i
        if self.state.columns == NULL:
            return 0
        for i in range(self.count):
            c = &self.state.columns[i]
            total += c.tags.size + level_size(&c.list) + level_size(&c.item)
        return total


cdef int64_t level_size(kr_level *level):
    return level.data.size + level.ends.size + level.valid.size


def to_record_batch(list parts, int64_t rows, take, arrow_schema, is_absent=None):
    """Gives the fields of messages, those of several side by side, to ``take``, which is
    ``pyarrow.RecordBatch._import_from_c``. The last one's end in its unknown tagged fields, and are null in rows that
    ``is_absent`` says. No more can be decoded then.
    """
    cdef Columns part
    cdef int entered = 0
    try:
        for part in parts:
            enter(&part.busy, part)
            entered += 1
        return record_batch_of(parts, rows, take, arrow_schema, is_absent)
    finally:
        for part in parts[:entered]:
            kr_busy_leave(&part.busy)


cdef object record_batch_of(list parts, int64_t rows, take, arrow_schema, const uint8_t[::1] is_absent):
    cdef ArrowArray array
    cdef Columns part
    cdef int at = 0, count = 0, ok
    for part in parts:
        if part.programs is None or not part.is_open or part.state.columns[0].item.count != rows:
            raise ValueError(f"not {rows} messages were decoded")
        count += kr_message_arrays_count(&part.state, part is parts[-1])
    cdef const uint8_t *absent = NULL
    if is_absent is not None and rows:
        if is_absent.shape[0] != rows:
            raise ValueError(f"{rows} messages, but {is_absent.shape[0]} rows that are absent or not")
        absent = &is_absent[0]
    if not kr_array_of_rows(&array, rows, count):
        raise MemoryError("no memory for an array")
    try:
        for part in parts:
            part.is_open = False
            ok = kr_message_arrays(
                array.children + at, &part.state, part.count, part is parts[-1], absent if part is parts[-1] else NULL)
            if not ok:
                raise MemoryError("no memory for an array")
            at += kr_message_arrays_count(&part.state, part is parts[-1])
        return take(<uintptr_t>&array, arrow_schema)
    finally:
        if array.release != NULL:
            array.release(&array)
