"""The columns of one stretch of rows: lays them out in memory that is used again, and hands them out as Arrow arrays
that share it."""

from cython cimport freelist
from libc.stdint cimport INT64_MAX, int16_t, int32_t, int64_t, uint8_t, uintptr_t
from libc.string cimport memset

from kraftlog._native.c_arrow cimport (
    KR_SHARED_ROWS,
    KR_TIMESTAMP_TYPES,
    ArrowArray,
    kr_array_cut,
    kr_array_of_binary,
    kr_array_of_headers,
    kr_array_of_numbers,
    kr_array_of_rows,
    kr_array_of_views,
    kr_timestamp_type_column,
    kr_timestamp_types,
    kr_viewed,
)
from kraftlog._native.c_decoder cimport (
    KR_PADDING,
    KR_UTF8_GROWTH,
    KR_VIEWS,
    KR_WANT_CONTROL_TYPE,
    KR_WANT_HEADERS,
    KR_WANT_KEY,
    KR_WANT_OFFSET,
    KR_WANT_TIMESTAMP,
    KR_WANT_TIMESTAMP_MS,
    KR_WANT_VALUE,
    kr_batch_header,
    kr_binary_column,
    kr_columns,
    kr_view,
)
from kraftlog._native.c_memory cimport (
    KR_POOL_LARGE,
    kr_block,
    kr_block_bytes,
    kr_block_close,
    kr_block_open,
    kr_block_share,
    kr_pool_use,
)
from cpython.ref cimport Py_DECREF, Py_INCREF

from kraftlog._native.memory cimport Arena, Input, shared_pool

kr_pool_use(shared_pool())

cdef enum:
    REGION_ALIGNMENT = 64
    ONE_BLOCK = 16 << 20  # bytes of columns up to which they share a block
    BATCHES = 1 << 9
    TIMESTAMP_TYPE = 1 << 10

COLUMNS = {
    "key": KR_WANT_KEY,
    "value": KR_WANT_VALUE,
    "offset": KR_WANT_OFFSET,
    "timestamp": KR_WANT_TIMESTAMP,
    "timestamp_ms": KR_WANT_TIMESTAMP_MS,
    "headers": KR_WANT_HEADERS,
    "timestamp_type": TIMESTAMP_TYPE,
}
SHARED_ROWS = KR_SHARED_ROWS  # rows up to which a column of one timestamp type takes no memory of its own
TIMESTAMP_TYPES = [kr_timestamp_types[i].decode() for i in range(KR_TIMESTAMP_TYPES)]


cdef void open_validity(uint8_t *bits, int64_t rows) noexcept:
    memset(bits, 0xFF, rows // 8 + 2)


cdef extern from "Python.h":
    int Py_IsInitialized() nogil


cdef void share_input(void *source) noexcept nogil:
    with gil:
        Py_INCREF(<object>source)


cdef void close_input(void *source) noexcept nogil:
    if Py_IsInitialized():
        with gil:
            Py_DECREF(<object>source)


cdef void open_binary(kr_binary_column *c, int64_t rows) noexcept:
    c.nulls = 0
    c.end = 0
    if c.ends != NULL:
        c.ends[0] = 0
    open_validity(c.validity, rows)


@freelist(8)
cdef class Chunk:
    """Rows of some batches. Arrays and memoryviews share its memory and may outlive it."""

    def __dealloc__(self):
        for block in self.blocks:
            kr_block_close(block)

    cdef int open(self, kr_columns *c, int want) except -1:
        """Allocates columns of the limits in ``c``."""
        cdef int i, parts = want & (KR_VIEWS - 1) | BATCHES
        self.want = want
        self.size = 0
        if self.size_of(c, parts) <= ONE_BLOCK:
            self.open_parts(c, parts)
        else:  # a large column that is kept does not keep the others
            for i in range(MOST_PARTS):
                if parts >> i & 1 and self.size_of(c, 1 << i) >= KR_POOL_LARGE:
                    self.open_parts(c, 1 << i)
                    parts &= ~(1 << i)
            self.open_parts(c, parts)
        if want & KR_WANT_KEY:
            open_binary(&c.key, c.max_rows)
        if want & KR_WANT_VALUE:
            open_binary(&c.value, c.max_rows)
        if want & KR_WANT_TIMESTAMP:
            open_validity(c.timestamp_validity, c.max_rows)
        if want & KR_WANT_HEADERS:
            c.header_ends[0] = 0
            open_binary(&c.header_key, c.max_headers)
            open_binary(&c.header_value, c.max_headers)
        return 0

    cdef int64_t size_of(self, kr_columns *c, int parts):
        """Adds up the sizes of these parts."""
        self.base = NULL
        self.used = 0
        self.lay_out(c, parts)
        return self.used

    cdef int open_parts(self, kr_columns *c, int parts) except -1:
        """Puts these parts into one block."""
        cdef int64_t size = self.size_of(c, parts)
        cdef kr_block *block = kr_block_open(size, parts)
        cdef int i
        if block == NULL:
            raise MemoryError(f"no memory for {size} bytes")
        self.base = kr_block_bytes(block)
        self.size += size
        self.used = 0
        self.lay_out(c, parts)
        for i in range(MOST_PARTS):
            if parts >> i & 1:
                self.blocks[i] = kr_block_share(block)
        kr_block_close(block)
        return 0

    cdef void lay_out(self, kr_columns *c, int parts):
        if parts & BATCHES:
            c.batch = <kr_batch_header *>self.region(c.max_batches * sizeof(kr_batch_header))
        if parts & KR_WANT_OFFSET:
            c.offset = <int64_t *>self.region(c.max_rows * 8)
        if parts & KR_WANT_TIMESTAMP:
            c.timestamp = <int64_t *>self.region(c.max_rows * 8)
            c.timestamp_validity = <uint8_t *>self.region(c.max_rows // 8 + 2)
        if parts & KR_WANT_TIMESTAMP_MS:
            c.timestamp_ms = <int64_t *>self.region(c.max_rows * 8)
        if parts & KR_WANT_CONTROL_TYPE:
            c.control_type = <int16_t *>self.region(c.max_rows * 2)
        if parts & KR_WANT_HEADERS:
            c.header_ends = <int32_t *>self.region((c.max_rows + 1) * 4)
            self.binary(&c.header_key, c.max_headers, c.max_bytes * KR_UTF8_GROWTH)
            self.binary(&c.header_value, c.max_headers, c.max_bytes)
        if parts & KR_WANT_KEY:
            self.viewed(&c.key, c)
        if parts & KR_WANT_VALUE:
            self.viewed(&c.value, c)

    cdef void *region(self, int64_t size):
        cdef int64_t begin = self.used
        self.used += (size + REGION_ALIGNMENT - 1) // REGION_ALIGNMENT * REGION_ALIGNMENT
        return self.base + begin if self.base != NULL else NULL

    cdef void viewed(self, kr_binary_column *c, kr_columns *of):
        if not self.want & KR_VIEWS:
            self.binary(c, of.max_rows, of.max_bytes)
            return
        c.views = <kr_view *>self.region(of.max_rows * sizeof(kr_view))
        c.validity = <uint8_t *>self.region(of.max_rows // 8 + 2)
        c.data = <uint8_t *>self.region(of.max_copied + KR_PADDING)

    cdef void binary(self, kr_binary_column *c, int64_t rows, int64_t data):
        c.ends = <int32_t *>self.region((rows + 1) * 4)
        c.validity = <uint8_t *>self.region(rows // 8 + 2)
        c.data = <uint8_t *>self.region(data + KR_PADDING)

    cdef kr_block *block_of(self, int part) noexcept:
        cdef int i
        for i in range(MOST_PARTS):
            if part >> i & 1:
                return self.blocks[i]
        return NULL

    cdef int export_binary(self, ArrowArray *out, kr_block *block, kr_binary_column *c):
        cdef kr_viewed viewed
        if not self.want & KR_VIEWS:
            return kr_array_of_binary(out, block, self.columns.rows, c)
        viewed.bytes = self.source.data + self.columns.view_origin if self.source.data != NULL else c.data
        viewed.size = self.source_end - self.columns.view_origin if self.source.data != NULL else 0
        viewed.owner = <void *>self.source
        viewed.share = share_input
        viewed.close = close_input
        return kr_array_of_views(out, block, self.columns.rows, c, &viewed)

    cdef int export(self, ArrowArray *out, int column, int64_t start, int64_t rows) except -1:
        """Makes an array of rows of a column, which shares its block."""
        cdef kr_columns *c = &self.columns
        cdef kr_block *block = self.block_of(column)
        cdef int made = 0
        if column == TIMESTAMP_TYPE:
            made = kr_timestamp_type_column(out, c.batch, c.batches, start, rows)
        elif block == NULL:
            raise ValueError(f"column {column} was not decoded")
        elif column == KR_WANT_KEY:
            made = self.export_binary(out, block, &c.key)
        elif column == KR_WANT_VALUE:
            made = self.export_binary(out, block, &c.value)
        elif column == KR_WANT_OFFSET:
            made = kr_array_of_numbers(out, block, c.rows, c.offset, NULL, 0)
        elif column == KR_WANT_TIMESTAMP:
            made = kr_array_of_numbers(out, block, c.rows, c.timestamp, c.timestamp_validity, c.timestamp_nulls)
        elif column == KR_WANT_TIMESTAMP_MS:
            made = kr_array_of_numbers(out, block, c.rows, c.timestamp_ms, NULL, 0)
        elif column == KR_WANT_HEADERS:
            made = kr_array_of_headers(out, block, c)
        if not made:
            raise MemoryError("no memory for an array")
        if column != TIMESTAMP_TYPE:
            kr_array_cut(out, start, rows)
        return 0

    @property
    def rows(self):
        return self.columns.rows

    @property
    def capacity(self):
        """Bytes of memory that all columns take together."""
        return self.size

    @property
    def batches(self):
        """The headers of the batches that have rows here, as bytes."""
        return self.part(BATCHES, self.columns.batch, self.columns.batches * sizeof(kr_batch_header))

    @property
    def offsets(self):
        """The column ``offset`` as bytes; so are the next two."""
        return self.part(KR_WANT_OFFSET, self.columns.offset, self.columns.rows * 8)

    @property
    def timestamps_ms(self):
        return self.part(KR_WANT_TIMESTAMP_MS, self.columns.timestamp_ms, self.columns.rows * 8)

    @property
    def control_types(self):
        return self.part(KR_WANT_CONTROL_TYPE, self.columns.control_type, self.columns.rows * 2)

    cdef object part(self, int part, void *begin, int64_t size):
        cdef kr_block *block = self.block_of(part)
        if block == NULL:
            raise ValueError(f"column {part} was not decoded")
        return memoryview(Arena.of(block, begin, size))

    def to_array(self, int column, take, kind):
        """Gives a column of ``COLUMNS`` to ``take``, which is ``pyarrow.Array._import_from_c``."""
        cdef ArrowArray array
        self.export(&array, column, 0, self.columns.rows)
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
        cdef int64_t rows = min(self.columns.rows - start, most)
        if not 0 <= start <= self.columns.rows:
            raise ValueError(f"row {start} of {self.columns.rows}")
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
