from libc.stdint cimport int64_t, uint8_t

from kraftlog._native.c_codecs cimport kr_plain
from kraftlog._native.c_memory cimport kr_busy


cdef class Decompressor:
    cdef kr_busy busy
    cdef kr_plain plain  # of the batch that was decompressed last, with KR_PADDING readable bytes behind it
    cdef int64_t capacity
    cdef readonly int64_t limit
    cdef readonly str detail
    cdef object fallback, error
    cdef bint by_libraries

    cdef int run(self, const uint8_t *data, int64_t size, int compression, int magic) noexcept nogil
    cdef int _reserve(self, int64_t room) noexcept nogil
    cdef int _unsnappy(self, const uint8_t *data, int64_t size, int64_t most) noexcept nogil
    cdef int _by_library(self, const uint8_t *data, int64_t size, int compression, int64_t most) noexcept nogil
    cdef int _gunzip(self, void *context, const uint8_t *data, int64_t size) noexcept nogil
    cdef int _by_fallback(self, const uint8_t *data, int64_t size, int compression) noexcept
