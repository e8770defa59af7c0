from libc.stdint cimport int32_t, int64_t

from kraftlog._native.c_lent cimport kr_lent_large


cdef extern from "arrow/hash_column.h" nogil:
    void kr_murmur2_column(const kr_lent_large *v, int32_t *out)
    void kr_hash_code_column(const kr_lent_large *v, int32_t *out)
    void kr_crc32c_column(const kr_lent_large *v, int64_t *out)
