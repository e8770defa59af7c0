"""The columns of one stretch of rows: owns the memory that they are laid out in, and hands them out as Arrow arrays that
share it."""

from cpython.ref cimport Py_DECREF, Py_INCREF
from cython cimport freelist
from libc.stdint cimport INT64_MAX, int64_t, uintptr_t
from libc.string cimport memset

from kraftlog._native.c_arrow cimport ArrowArray, kr_array_of_rows
from kraftlog._native.c_chunk cimport (
    KR_BATCHES,
    KR_MOST_NAMED_ROWS,
    KR_SHARED_ROWS,
    KR_TIMESTAMP_TYPE,
    KR_TIMESTAMP_TYPES,
    kr_chunk_array,
    kr_chunk_close,
    kr_chunk_has,
    kr_chunk_open,
    kr_timestamp_types,
    kr_viewed,
)
from kraftlog._native.c_decoder cimport (
    KR_COLUMN_CONTROL_TYPE,
    KR_COLUMN_COUNT,
    KR_COLUMN_OFFSET,
    KR_COLUMN_TIMESTAMP_MS,
    kr_batch_header,
    kr_column_names,
    kr_columns,
)
from kraftlog._native.c_memory cimport kr_pool_use
from kraftlog._native.memory cimport Arena, Input, shared_pool

kr_pool_use(shared_pool())

COLUMNS = {kr_column_names[i].decode(): i for i in range(KR_COLUMN_COUNT)} | {"timestamp_type": KR_TIMESTAMP_TYPE}
SHARED_ROWS = KR_SHARED_ROWS  # rows up to which a column of one timestamp type takes no memory of its own
MOST_NAMED_ROWS = KR_MOST_NAMED_ROWS  # rows of a column of timestamp types, whose bytes have to be counted in 32 bits
TIMESTAMP_TYPES = [kr_timestamp_types[i].decode() for i in range(KR_TIMESTAMP_TYPES)]


cdef extern from "Python.h":
    int Py_IsInitialized() nogil


cdef void share_input(void *source) noexcept nogil:
    with gil:
        Py_INCREF(<object>source)


cdef void close_input(void *source) noexcept nogil:
    if Py_IsInitialized():
        with gil:
            Py_DECREF(<object>source)


@freelist(8)
cdef class Chunk:
    """Rows of some batches. Arrays and memoryviews share its memory and may outlive it."""

    def __dealloc__(self):
        kr_chunk_close(&self.state)

    cdef int open(self, kr_columns *c, int want) except -1:
        """Allocates columns of the limits in ``c``."""
        cdef int64_t missing = kr_chunk_open(&self.state, c, want)
        if missing:
            raise MemoryError(f"no memory for {missing} bytes")
        return 0

    cdef void close(self, kr_columns *c, Input source, int64_t source_end):
        """Takes columns that were filled from this input, up to this byte; ``c`` is empty then."""
        cdef kr_viewed *viewed = &self.state.viewed
        self.state.columns = c[0]
        memset(c, 0, sizeof(kr_columns))
        self.source = source
        viewed.owner, viewed.share, viewed.close = <void *>source, share_input, close_input
        if source.data != NULL:
            viewed.bytes = source.data + self.state.columns.view_origin
            viewed.size = source_end - self.state.columns.view_origin

    cdef int export(self, ArrowArray *out, int column, int64_t start, int64_t rows) except -1:
        """Makes an array of rows of a column, which shares its block."""
        if not kr_chunk_has(&self.state, column):
            raise ValueError(f"column {column} was not decoded")
        if column == KR_TIMESTAMP_TYPE and rows > KR_MOST_NAMED_ROWS:
            raise OverflowError(f"timestamp_type of {rows} rows: a column of names has at most {KR_MOST_NAMED_ROWS}")
        if not kr_chunk_array(out, &self.state, column, start, rows):
            raise MemoryError("no memory for an array")
        return 0

    @property
    def rows(self):
        return self.state.columns.rows

    @property
    def capacity(self):
        """Bytes of memory that all columns take together."""
        return self.state.size

    @property
    def batches(self):
        """The headers of the batches that have rows here, as bytes."""
        return self.part(KR_BATCHES, self.state.columns.batch, self.state.columns.batches * sizeof(kr_batch_header))

    @property
    def offsets(self):
        """The column ``offset`` as bytes; so are the next two."""
        return self.part(KR_COLUMN_OFFSET, self.state.columns.offset, self.rows * 8)

    @property
    def timestamps_ms(self):
        return self.part(KR_COLUMN_TIMESTAMP_MS, self.state.columns.timestamp_ms, self.rows * 8)

    @property
    def control_types(self):
        return self.part(KR_COLUMN_CONTROL_TYPE, self.state.columns.control_type, self.rows * 2)

    cdef object part(self, int part, void *begin, int64_t size):
        if not kr_chunk_has(&self.state, part):
            raise ValueError(f"column {part} was not decoded")
        return memoryview(Arena.of(self.state.block[part], begin, size))

    def to_array(self, int column, take, kind):
        """Gives a column of ``COLUMNS`` to ``take``, which is ``pyarrow.Array._import_from_c``."""
        cdef ArrowArray array
        self.export(&array, column, 0, self.state.columns.rows)
        try:
            return take(<uintptr_t>&array, kind)
        finally:
            if array.release != NULL:
                array.release(&array)

    def to_record_batch(self, tuple columns, take, arrow_schema, int64_t start=0, int64_t most=INT64_MAX):
        """Gives at most so many rows of columns of ``COLUMNS`` to ``take``, which is
        ``pyarrow.RecordBatch._import_from_c``."""
        cdef ArrowArray array
        cdef int i = 0
        cdef int64_t rows = min(self.state.columns.rows - start, most)
        if not 0 <= start <= self.state.columns.rows:
            raise ValueError(f"row {start} of {self.state.columns.rows}")
        if not kr_array_of_rows(&array, rows, <int>len(columns)):
            raise MemoryError("no memory for an array")
        try:
            for column in columns:
                self.export(array.children[i], column, start, rows)
                i += 1
            return take(<uintptr_t>&array, arrow_schema)
        finally:
            if array.release != NULL:
                array.release(&array)
