"""Varints and varlongs: NumPy arrays to bytes and back."""

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t

from kraftlog._native.c_decoder cimport kr_error
from kraftlog._native.c_varint cimport (
    kr_varints_count,
    kr_varints_decode,
    kr_varints_encode,
    kr_varints_size,
    kr_varlongs_decode,
    kr_varlongs_encode,
    kr_varlongs_size,
)
from kraftlog._native.memory cimport Input


def encode_varints(const int32_t[::1] values):
    cdef int64_t n = values.shape[0], size
    cdef const int32_t *source = &values[0] if n else NULL
    with nogil:
        size = kr_varints_size(source, n)
    out = bytearray(size)
    cdef uint8_t *target = out
    with nogil:
        kr_varints_encode(source, n, target)
    return out


def encode_varlongs(const int64_t[::1] values):
    cdef int64_t n = values.shape[0], size
    cdef const int64_t *source = &values[0] if n else NULL
    with nogil:
        size = kr_varlongs_size(source, n)
    out = bytearray(size)
    cdef uint8_t *target = out
    with nogil:
        kr_varlongs_encode(source, n, target)
    return out


def decode_varints(buffer):
    """The values, or the failure as (status, position, expected, actual)."""
    return _decoded(buffer, np.int32)


def decode_varlongs(buffer):
    """The values, or the failure as (status, position, expected, actual)."""
    return _decoded(buffer, np.int64)


cdef _decoded(buffer, dtype):
    cdef Input source = Input(buffer)
    cdef kr_error e
    cdef int64_t n
    cdef bint is_long = dtype is np.int64
    with nogil:
        n = kr_varints_count(source.data, source.size)
    out = np.empty(n, dtype)
    cdef uint8_t[::1] view = out.view(np.uint8)
    cdef uint8_t *target = &view[0] if n else NULL
    with nogil:
        if is_long:
            kr_varlongs_decode(source.data, source.size, <int64_t *>target, &e)
        else:
            kr_varints_decode(source.data, source.size, <int32_t *>target, &e)
    return out if e.status == 0 else (e.status, e.position, e.expected, e.actual)
