"""Declarations of native/c/batch/record.h, and objects of its parts."""

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int32_t, uint8_t


cdef extern from "batch/record.h" nogil:
    ctypedef struct kr_record:
        int32_t key_length, value_length, headers_count
        const uint8_t *key
        const uint8_t *value
        const uint8_t *headers
        const uint8_t *end

    const uint8_t *kr_header_fast(const uint8_t *p, const uint8_t *end, const uint8_t **key, int32_t *key_length,
                                  const uint8_t **value, int32_t *value_length)


cdef inline object bytes_or_none(const uint8_t *p, int32_t size):
    return None if size < 0 else PyBytes_FromStringAndSize(<const char *>p, size)
