from libc.stdint cimport int64_t, uint8_t


cdef extern from "base/growing.h" nogil:
    ctypedef struct kr_growing:
        uint8_t *bytes
        int64_t size, capacity

    void kr_growing_free(kr_growing *b)


cdef extern from "avro/columns.h" nogil:
    ctypedef enum kr_avro_kind:
        KR_AVRO_NUMBERS
        KR_AVRO_BYTES
        KR_AVRO_STRUCT
        KR_AVRO_LIST

    ctypedef struct kr_avro_column:
        kr_avro_kind kind
        int width, first, count
        int64_t length
        int has_nulls
        kr_growing validity, values, data

    ctypedef struct kr_avro_table:
        kr_avro_column *columns
        int count
        int64_t made, limit

    int kr_avro_open(kr_avro_table *t)
    void kr_avro_close(kr_avro_table *t)


cdef extern from "avro/program.h" nogil:
    enum:
        KR_AVRO_FAULTS_END

    enum:
        KR_AVRO_NULL
        KR_AVRO_BOOL
        KR_AVRO_TO_INT
        KR_AVRO_TO_LONG
        KR_AVRO_TO_FLOAT
        KR_AVRO_TO_DOUBLE
        KR_AVRO_TO_MICROS
        KR_AVRO_FLOAT
        KR_AVRO_WIDENED
        KR_AVRO_DOUBLE
        KR_AVRO_TEXT
        KR_AVRO_BINARY
        KR_AVRO_FIXED
        KR_AVRO_TO_DECIMAL
        KR_AVRO_ENUM
        KR_AVRO_RECORD
        KR_AVRO_ARRAY
        KR_AVRO_MAP
        KR_AVRO_UNION
        KR_AVRO_MEMBER
        KR_AVRO_DEFAULT
        KR_AVRO_NEVER
        KR_AVRO_UNRESOLVED

    ctypedef struct kr_avro_node:
        int64_t op, column, first, count, a, b

    const char *kr_avro_sentence(int status)


cdef extern from "avro/decode.h" nogil:
    ctypedef struct kr_avro_decoder:
        kr_avro_table table
        const kr_avro_node *nodes
        const uint8_t *constants
        const uint8_t *at

    int kr_avro_row(kr_avro_decoder *d, const uint8_t *start, const uint8_t *end, int64_t root)
