"""Typed messages: owns the memory that native/c/message_*.h fill, and releases the GIL around them."""

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
    KR_PASS_TYPES,
    KR_UUID_SIZE,
    KR_ZERO_UUID_TEXT,
    kr_column,
    kr_column_free,
    kr_decode_versions,
    kr_encode_message,
    kr_field,
    kr_frame_fault,
    kr_frames,
    kr_group,
    kr_group_rows,
    kr_growing,
    kr_growing_free,
    kr_json,
    kr_level,
    kr_message_arrays,
    kr_message_arrays_count,
    kr_message_decoder,
    kr_message_decoder_close,
    kr_message_encoder,
    kr_message_fault,
    kr_message_json,
    kr_messages,
    kr_pass_end,
    kr_pass_run,
    kr_pass_type,
    kr_program,
    kr_push_repeated,
    kr_read_frames,
    kr_read_int16_prefixes,
    kr_reserve,
    kr_rows_within,
    kr_field_source,
    kr_straight,
    kr_straight_of,
    kr_uuid_text_init,
    kr_values,
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

    cdef kr_growing grown

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
    """A message of one version, as native/c/message_program.h has it."""

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
        self.values.valid_at = offset
        if (offset + count + 1) * 4 > self.ends.size:
            raise ValueError("the offsets end early")
        if data is not None:
            self.data = Input(data)
            self.values.data = self.data.data
        if valid is not None:
            self.valid = Input(valid)
            self.values.valid = self.valid.data


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


cdef list _faults(kr_message_decoder *d):
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

    cdef kr_message_decoder state
    cdef int count
    cdef bint is_open
    cdef kr_busy busy
    cdef Programs programs  # of what was decoded

    def __cinit__(self, int count, bint uuid_text):
        cdef int32_t zero = 0
        cdef int i
        self.count = count
        self.is_open = True
        self.state.uuid_text = uuid_text
        self.state.columns = <kr_column *>calloc(max(count, 1), sizeof(kr_column))
        if self.state.columns == NULL:
            raise MemoryError("no memory for the columns of a message")
        for i in range(count):
            if not kr_push_repeated(&self.state.columns[i].list.ends, &zero, 4, 1) \
                    or not kr_push_repeated(&self.state.columns[i].item.ends, &zero, 4, 1):
                raise MemoryError("no memory for the columns of a message")

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
        of_rows.messages.data = values.values.data
        of_rows.messages.ends = values.values.ends
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
        return _faults(&self.state)

    @property
    def interpreted(self):
        """How many messages no generated decoder has read."""
        return self.state.interpreted

    @property
    def size(self):
        """Bytes that all columns take."""
        cdef kr_column *c
        cdef int64_t total = 0
        cdef int i
        for i in range(self.count):
            c = &self.state.columns[i]
            total += c.tags.size + level_size(&c.list) + level_size(&c.item)
        return total


cdef int64_t level_size(kr_level *level):
    return level.data.size + level.ends.size + level.valid.size


def to_record_batch(list parts, int64_t rows, take, arrow_schema):
    """Gives the fields of messages, those of several side by side, to ``take``, which is
    ``pyarrow.RecordBatch._import_from_c``. The last one's end in its unknown tagged fields. No more can be decoded then.
    """
    cdef Columns part
    cdef int entered = 0
    try:
        for part in parts:
            enter(&part.busy, part)
            entered += 1
        return record_batch_of(parts, rows, take, arrow_schema)
    finally:
        for part in parts[:entered]:
            kr_busy_leave(&part.busy)


cdef object record_batch_of(list parts, int64_t rows, take, arrow_schema):
    cdef ArrowArray array
    cdef Columns part
    cdef int at = 0, count = 0, ok
    for part in parts:
        if part.programs is None or not part.is_open or part.state.columns[0].item.count != rows:
            raise ValueError(f"not {rows} messages were decoded")
        count += kr_message_arrays_count(&part.state, part is parts[-1])
    if not kr_array_of_rows(&array, rows, count):
        raise MemoryError("no memory for an array")
    try:
        for part in parts:
            part.is_open = False
            ok = kr_message_arrays(array.children + at, &part.state, part.count, part is parts[-1])
            if not ok:
                raise MemoryError("no memory for an array")
            at += kr_message_arrays_count(&part.state, part is parts[-1])
        return take(<uintptr_t>&array, arrow_schema)
    finally:
        if array.release != NULL:
            array.release(&array)


def write_json(list programs, int columns, Values values, const int32_t[::1] numbers, const int32_t[::1] starts):
    """The JSON of each value, as (ends, data, faults).

    ``numbers`` says which of the programs a value's message is of; those with a number below zero are left empty.
    """
    cdef Columns scratch = Columns(columns, True)
    cdef kr_growing out
    cdef kr_json json
    cdef int64_t i, n = values.count
    cdef int32_t number, last = -1
    cdef const uint8_t *begin
    cdef const uint8_t *end
    cdef kr_program *of_numbers
    if numbers.shape[0] != n or starts.shape[0] != n:
        raise ValueError("a number and a start are needed for each value")
    for program in programs:
        if program.columns > columns:
            raise ValueError("too few columns for a program")
    if n and np.max(numbers) >= len(programs):
        raise ValueError("a number is not one of a program")
    ends = np.zeros(n + 1, np.int32)
    cdef int32_t[::1] ends_view = ends
    memset(&out, 0, sizeof(out))
    json.d = &scratch.state
    json.out = &out
    of_numbers = <kr_program *>calloc(max(len(programs), 1), sizeof(kr_program))
    if of_numbers == NULL:
        raise MemoryError("no memory for programs")
    try:
        for i in range(len(programs)):
            of_numbers[i] = (<Program>programs[i]).program
        with nogil:
            for i in range(n):
                number = numbers[i]
                begin = values.values.data + values.values.ends[i]
                end = values.values.data + values.values.ends[i + 1]
                if number >= 0 and end - begin >= starts[i]:
                    if number != last:
                        scratch.state.program = of_numbers[number]
                        last = number
                    kr_message_json(&json, begin, begin + starts[i], end, i)
                    if scratch.state.no_memory:
                        break
                ends_view[i + 1] = <int32_t>out.size
        if scratch.state.no_memory:
            raise MemoryError("no memory for JSON, or more than 2 GiB of it")
        return ends, Grown.take(&out), _faults(&scratch.state)
    finally:
        free(of_numbers)
        kr_growing_free(&out)


cdef class Source:
    """The buffers of an Arrow column that messages are made of."""

    cdef list held
    cdef kr_field_source source

    def __init__(self, list_level=None, item_level=None, tags=None):
        """Levels are (offset, valid, ends, (data, bytes a value)) or None; tags are (offset, data)."""
        self.held = []
        if tags is not None:
            offset, data = tags
            self.source.tags = <const int64_t *>self._hold(data) + <int64_t>offset
        if list_level is not None:
            offset, valid, ends, _ = list_level
            self.source.list_valid = self._hold(valid)
            self.source.list_valid_at = offset
            self.source.list_ends = <const int32_t *>self._hold(ends) + <int64_t>offset
        if item_level is not None:
            offset, valid, ends, (data, width) = item_level
            self.source.valid = self._hold(valid)
            self.source.valid_at = offset
            if ends is not None:
                self.source.ends = <const int32_t *>self._hold(ends) + <int64_t>offset
                self.source.data = self._hold(data)
            elif width:
                self.source.data = self._hold(data) + <int64_t>(offset * width)
            else:
                self.source.data = self._hold(data)
                self.source.data_at = offset

    cdef const uint8_t *_hold(self, buffer):
        if buffer is None:
            return NULL
        cdef Input held = Input(buffer)
        self.held.append(held)
        return held.data


def encode(Program program, list sources, bint uuid_text, const int64_t[::1] rows, bytes prefix):
    """Messages of these rows, each behind the prefix, as (ends, data); or a failure as (row, field, status, expected,
    actual)."""
    cdef kr_message_encoder e
    cdef int64_t i, n = rows.shape[0]
    cdef const uint8_t *head = prefix
    cdef int64_t head_size = len(prefix)
    cdef kr_field_source *all_sources = <kr_field_source *>calloc(max(len(sources), 1), sizeof(kr_field_source))
    cdef int ok = 1
    ends = np.zeros(n + 1, np.int32)
    cdef int32_t[::1] ends_view = ends
    if all_sources == NULL:
        raise MemoryError("no memory for the columns of a message")
    memset(&e, 0, sizeof(e))
    try:
        for i in range(len(sources)):
            all_sources[i] = (<Source>sources[i]).source
        e.program = program.program
        e.sources = all_sources
        e.uuid_text = uuid_text
        with nogil:
            for i in range(n):
                if head_size and not kr_push_repeated(&e.out, head, head_size, 1):
                    e.no_memory = 1
                ok = kr_encode_message(&e, rows[i])
                if not ok:
                    break
                ends_view[i + 1] = <int32_t>e.out.size
        if e.no_memory:
            raise MemoryError("no memory for messages, or more than 2 GiB of them")
        if not ok:
            return i, e.error_field, e.error.status, e.error.expected, e.error.actual
        return ends, Grown.take(&e.out)
    finally:
        free(all_sources)
        kr_growing_free(&e.out)


cdef class Pass:
    """The types of a format that one pass decodes: those of which a decoder was generated."""

    cdef kr_pass_type types[KR_PASS_TYPES]
    cdef dict programs

    def __init__(self, dict programs):
        """``programs`` are by api key."""
        cdef Programs of_type
        memset(self.types, 0, sizeof(self.types))
        self.programs = {}
        for api_key, of_type in programs.items():
            if not 0 <= api_key < KR_PASS_TYPES or of_type.straight == NULL or of_type.straight.run == NULL:
                continue
            self.programs[api_key] = of_type
            self.types[api_key].programs = of_type.programs
            self.types[api_key].straight = of_type.straight
            self.types[api_key].first = of_type.first
            self.types[api_key].versions = len(of_type.held)

    def decode(self, Values values, bint uuid_text):
        """(api key, columns, rows, faults) of each type; None when there is a value that it cannot tell the type of.

        Faults are as those of ``Columns.decode``.
        """
        cdef kr_pass_type types[KR_PASS_TYPES]
        cdef Columns columns
        cdef Programs programs
        cdef int64_t at = 0, n = values.count
        cdef int ok = 1
        cdef uint8_t api_key
        if values.values.valid != NULL:
            return None
        types[:] = self.types
        opened = []
        try:
            while at < n:
                with nogil:
                    at = kr_pass_run(types, &values.values, at, n)
                if at < 0:
                    raise MemoryError("no memory for messages, or a column of more than 2 GiB")
                if at == n:
                    break
                if values.values.ends[at + 1] - values.values.ends[at] < 2:
                    return None
                api_key = values.values.data[values.values.ends[at] + 1]
                if api_key not in self.programs or types[api_key].decoder != NULL:
                    return None
                programs = self.programs[api_key]
                columns = Columns(programs.columns, uuid_text)
                columns.programs = programs
                types[api_key].decoder = &columns.state
                opened.append((api_key, columns))
            found = []
            for key, columns in opened:
                if not kr_pass_end(&types[<int>key]):
                    raise MemoryError("no memory for messages, or a column of more than 2 GiB")
                rows = np.frombuffer(Grown.take(&types[<int>key].rows), np.int64)
                found.append((key, columns, rows, _faults(&columns.state)))
            return found
        finally:
            for key, _ in opened:
                kr_growing_free(&types[<int>key].rows)
