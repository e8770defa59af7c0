from libc.stdint cimport int32_t, int64_t, uint8_t

from kraftlog._native.c_decoder cimport kr_error


cdef extern from "arrow/varint_column.h" nogil:
    int64_t kr_varints_size(const int32_t *values, int64_t n)
    int64_t kr_varlongs_size(const int64_t *values, int64_t n)
    void kr_varints_encode(const int32_t *values, int64_t n, uint8_t *out)
    void kr_varlongs_encode(const int64_t *values, int64_t n, uint8_t *out)
    int64_t kr_varints_count(const uint8_t *p, int64_t size)
    int kr_varints_decode(const uint8_t *p, int64_t size, int32_t *out, kr_error *e)
    int kr_varlongs_decode(const uint8_t *p, int64_t size, int64_t *out, kr_error *e)
