"""Checksums over any contiguous buffer."""

from libc.stdint cimport uint32_t

from kraftlog._native.c_crc cimport kr_crc32, kr_crc32c, kr_crc_init
from kraftlog._native.memory cimport Input

kr_crc_init()

cdef enum:
    WORTH_RELEASING = 1 << 14  # bytes; below, handing over the GIL takes longer than the sum


def crc32c(buffer, uint32_t value=0):
    cdef Input source = Input(buffer)
    if source.size < WORTH_RELEASING:
        return kr_crc32c(value, source.data, source.size)
    with nogil:
        value = kr_crc32c(value, source.data, source.size)
    return value


def crc32(buffer, uint32_t value=0):
    cdef Input source = Input(buffer)
    with nogil:
        value = kr_crc32(value, source.data, source.size)
    return value
