"""Avro's binary form, decoded into the buffers of Arrow columns by programs."""

import numpy as np

from cpython.buffer cimport PyBuffer_FillInfo
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from kraftlog._native.c_avro cimport (
    KR_AVRO_ARRAY,
    KR_AVRO_BINARY,
    KR_AVRO_BOOL,
    KR_AVRO_BYTES,
    KR_AVRO_DEFAULT,
    KR_AVRO_DOUBLE,
    KR_AVRO_ENUM,
    KR_AVRO_FAULTS_END,
    KR_AVRO_FIXED,
    KR_AVRO_FLOAT,
    KR_AVRO_LIST,
    KR_AVRO_MAP,
    KR_AVRO_MEMBER,
    KR_AVRO_NEVER,
    KR_AVRO_NULL,
    KR_AVRO_NUMBERS,
    KR_AVRO_RECORD,
    KR_AVRO_STRUCT,
    KR_AVRO_TEXT,
    KR_AVRO_TO_DECIMAL,
    KR_AVRO_TO_DOUBLE,
    KR_AVRO_TO_FLOAT,
    KR_AVRO_TO_INT,
    KR_AVRO_TO_LONG,
    KR_AVRO_TO_MICROS,
    KR_AVRO_UNION,
    KR_AVRO_UNRESOLVED,
    KR_AVRO_WIDENED,
    kr_avro_close,
    kr_avro_column,
    kr_avro_decoder,
    kr_avro_kind,
    kr_avro_node,
    kr_avro_open,
    kr_avro_row,
    kr_avro_sentence,
    kr_growing,
    kr_growing_free,
)
from kraftlog._native.c_memory cimport kr_pool_use
from kraftlog._native.memory cimport Input, shared_pool

kr_pool_use(shared_pool())

NUMBERS, BYTES, STRUCT, LIST = KR_AVRO_NUMBERS, KR_AVRO_BYTES, KR_AVRO_STRUCT, KR_AVRO_LIST
NULL_VALUE, BOOLEAN, TO_INT, TO_LONG = KR_AVRO_NULL, KR_AVRO_BOOL, KR_AVRO_TO_INT, KR_AVRO_TO_LONG
TO_FLOAT, TO_DOUBLE, TO_MICROS, FLOAT = KR_AVRO_TO_FLOAT, KR_AVRO_TO_DOUBLE, KR_AVRO_TO_MICROS, KR_AVRO_FLOAT
WIDENED, DOUBLE, TEXT, BINARY, FIXED = KR_AVRO_WIDENED, KR_AVRO_DOUBLE, KR_AVRO_TEXT, KR_AVRO_BINARY, KR_AVRO_FIXED
TO_DECIMAL, ENUM, RECORD, ARRAY, MAP = KR_AVRO_TO_DECIMAL, KR_AVRO_ENUM, KR_AVRO_RECORD, KR_AVRO_ARRAY, KR_AVRO_MAP
UNION, MEMBER, DEFAULT, NEVER = KR_AVRO_UNION, KR_AVRO_MEMBER, KR_AVRO_DEFAULT, KR_AVRO_NEVER
UNRESOLVED = KR_AVRO_UNRESOLVED

SENTENCES = tuple(kr_avro_sentence(number).decode() for number in range(KR_AVRO_FAULTS_END))


cdef class Grown:
    """Memory that a column has grown into."""

    cdef kr_growing buffer

    @staticmethod
    cdef Grown of(kr_growing *buffer):
        """Takes what is there away from its column."""
        cdef Grown grown = Grown.__new__(Grown)
        grown.buffer = buffer[0]
        memset(buffer, 0, sizeof(kr_growing))
        return grown

    def __dealloc__(self):
        kr_growing_free(&self.buffer)

    def __getbuffer__(self, Py_buffer *view, int flags):
        PyBuffer_FillInfo(view, self, self.buffer.bytes, self.buffer.size, 0, flags)


cdef class _Table:
    cdef kr_avro_decoder decoder

    def __cinit__(self, const int64_t[:, ::1] columns, int64_t limit):
        cdef int i, count = columns.shape[0]
        self.decoder.table.columns = <kr_avro_column *>calloc(max(count, 1), sizeof(kr_avro_column))
        if self.decoder.table.columns == NULL:
            raise MemoryError()
        self.decoder.table.count = count
        self.decoder.table.limit = limit
        for i in range(count):
            self.decoder.table.columns[i].kind = <kr_avro_kind>columns[i, 0]
            self.decoder.table.columns[i].width = columns[i, 1]
            self.decoder.table.columns[i].first = columns[i, 2]
            self.decoder.table.columns[i].count = columns[i, 3]
        if not kr_avro_open(&self.decoder.table):
            raise MemoryError("no memory for the columns of decoded values")

    def __dealloc__(self):
        if self.decoder.table.columns != NULL:
            kr_avro_close(&self.decoder.table)
        free(self.decoder.table.columns)

    def buffers(self):
        cdef int i
        cdef kr_avro_column *c
        out = []
        for i in range(self.decoder.table.count):
            c = &self.decoder.table.columns[i]
            validity = Grown.of(&c.validity) if c.has_nulls else None
            out.append((c.length, validity, Grown.of(&c.values), Grown.of(&c.data)))
        return out


def decode_rows(
    const int64_t[:, ::1] columns not None,
    const int64_t[:, ::1] nodes not None,
    constants not None,
    data not None,
    const int64_t[::1] starts not None,
    const int64_t[::1] ends not None,
    const int64_t[::1] roots not None,
    int64_t limit,
):
    if columns.shape[0] < 1 or columns.shape[1] != 4 or nodes.shape[1] != 6:
        raise ValueError("columns have 4 numbers each, nodes 6, and there is a column")
    cdef int64_t rows = starts.shape[0], row, bad
    if ends.shape[0] != rows or roots.shape[0] != rows:
        raise ValueError(f"{rows} starts, {ends.shape[0]} ends and {roots.shape[0]} programs are not for the same rows")
    cdef Input source = Input(data), fixed = Input(constants)
    cdef const int64_t *start = &starts[0] if rows else NULL
    cdef const int64_t *end = &ends[0] if rows else NULL
    cdef const int64_t *root = &roots[0] if rows else NULL
    bad = -1
    with nogil:
        for row in range(rows):
            if root[row] >= 0 and not (0 <= start[row] <= end[row] <= source.size):
                bad = row
                break
    if bad >= 0:
        raise ValueError(f"value {bad} is from byte {starts[bad]} to {ends[bad]}, but the data has {source.size} bytes")
    cdef _Table table = _Table(columns, limit)
    cdef kr_avro_decoder *d = &table.decoder
    d.nodes = <const kr_avro_node *>&nodes[0, 0] if nodes.shape[0] else NULL
    d.constants = fixed.data
    faults = []
    cdef int status = 0
    row = 0
    while row < rows:
        with nogil:
            while row < rows:
                status = kr_avro_row(d, source.data + start[row], source.data + end[row], root[row])
                row += 1
                if status != 0:
                    break
        if status < 0:
            raise MemoryError("no memory for decoded values")
        if status > 0:
            faults.append((row - 1, status, <int64_t>(d.at - source.data) - start[row - 1]))
    return table.buffers(), faults
