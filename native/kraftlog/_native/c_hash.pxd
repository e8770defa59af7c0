from libc.stdint cimport int32_t, int64_t, uint8_t


cdef extern from "arrow/hash_column.h" nogil:
    ctypedef struct kr_large_values:
        int64_t rows
        const int64_t *ends
        const uint8_t *data
        int64_t data_size

    int64_t kr_values_out_of_bounds(const kr_large_values *v)
    void kr_murmur2_column(const kr_large_values *v, int32_t *out)
    void kr_hash_code_column(const kr_large_values *v, int32_t *out)
    void kr_crc32c_column(const kr_large_values *v, int64_t *out)
