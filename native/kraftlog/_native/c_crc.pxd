from libc.stdint cimport uint8_t, uint32_t


cdef extern from "base/crc.h" nogil:
    void kr_crc_init()
    uint32_t kr_crc32c(uint32_t crc, const uint8_t *p, size_t n)
    uint32_t kr_crc32(uint32_t crc, const uint8_t *p, size_t n)
