from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t

from kraftlog._native.c_decoder cimport kr_batch_header, kr_error
from kraftlog._native.c_lent cimport kr_lent_binary
from kraftlog._native.memory cimport kr_input


cdef extern from "record/encoder.h" nogil:
    enum:
        KR_RECORD_OVERHEAD
        KR_RECORD_TOO_LARGE

    enum kr_time_unit:
        KR_MILLISECONDS
        KR_MICROSECONDS
        KR_NANOSECONDS

    ctypedef struct kr_source:
        int64_t rows
        kr_lent_binary key, value
        const int64_t *timestamp
        kr_time_unit timestamp_unit
        const int32_t *header_ends
        const uint8_t *header_validity
        int64_t header_validity_offset
        kr_lent_binary header_key, header_value

    ctypedef struct kr_encoder:
        int64_t base_offset, producer_id, max_batch_bytes
        int32_t max_batch_records, base_sequence, partition_leader_epoch
        int16_t producer_epoch, attributes
        int64_t timestamp
        const int32_t *batch_records
        int64_t planned
        int8_t refuse_markers
        uint8_t *out
        int64_t capacity, written, batch_at
        int32_t count
        int64_t row
        kr_error error

    ctypedef struct kr_record_lists:
        int64_t count, at
        kr_lent_binary begin_marker, end_marker

    kr_record_lists kr_record_lists_of(const kr_encoder *w, int64_t count, const int64_t *ends, int64_t *written)
    int kr_encoder_run_lists(kr_encoder *w, const kr_source *s, int64_t first_row, kr_record_lists *l)
    int64_t kr_source_bytes(const kr_lent_binary *s, int64_t first, int64_t last)
    int kr_encoder_run(kr_encoder *w, const kr_source *s)
    void kr_encoder_close_batch(kr_encoder *w)
    void kr_seal_batch(uint8_t *p, int64_t size)


cdef extern from "record/rewrite.h" nogil:
    ctypedef struct kr_changes:
        int8_t sets_base_offset, sets_leader_epoch, sets_timestamp_type, sets_max_timestamp, is_log_append_time
        int32_t partition_leader_epoch
        int64_t base_offset, max_timestamp

    int kr_changes_check(kr_input *input, const kr_changes *c, kr_batch_header *h, int64_t *next_offset, kr_error *e)
    void kr_changes_apply(uint8_t *p, int64_t size, const kr_changes *c)
