"""Declarations of native/c/message/*.h."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from kraftlog._native.c_arrow cimport ArrowArray
from kraftlog._native.c_decoder cimport kr_error
from kraftlog._native.c_lent cimport kr_lent_binary


cdef extern from "message/program.h" nogil:
    enum:
        KR_KIND_BOOL
        KR_KIND_INT8
        KR_KIND_INT16
        KR_KIND_UINT16
        KR_KIND_INT32
        KR_KIND_UINT32
        KR_KIND_INT64
        KR_KIND_FLOAT64
        KR_KIND_UUID
        KR_KIND_STRING
        KR_KIND_BYTES
        KR_KIND_STRUCT
        KR_LOW_TAGS
        KR_UUID_SIZE

    ctypedef struct kr_field:
        pass

    ctypedef struct kr_program:
        const kr_field *fields
        const uint8_t *text
        int32_t fields_count
        int32_t is_compact


cdef extern from "message/columns.h" nogil:
    ctypedef struct kr_growing:
        uint8_t *bytes
        int64_t size

    ctypedef struct kr_level:
        int64_t count
        int64_t nulls
        kr_growing data
        kr_growing ends
        kr_growing valid

    ctypedef struct kr_column:
        kr_level list
        kr_level item
        kr_growing tags

    void kr_column_free(kr_column *c)
    void kr_column_open(kr_column *c)
    void kr_growing_free(kr_growing *b)
    int kr_reserve(kr_growing *b, int64_t more)
    int kr_push_repeated(kr_growing *b, const void *value, int64_t width, int64_t n)


cdef extern from "message/decode.h" nogil:
    ctypedef struct kr_message_fault:
        kr_error error
        int64_t row
        int32_t field

    ctypedef struct kr_message_decoder:
        kr_program program
        kr_column *columns
        int32_t uuid_text
        int32_t no_memory
        kr_growing faults
        const uint8_t *limit
        int64_t interpreted

    ctypedef struct kr_messages:
        kr_lent_binary values
        const int64_t *rows
        const int32_t *starts
        int64_t count

    void kr_message_decoder_close(kr_message_decoder *d)
    int kr_rows_within(const int64_t *rows, int64_t n, int64_t count)

cdef extern from "message/straight.h" nogil:
    ctypedef struct kr_versioned:
        kr_messages messages
        const int32_t *versions

    ctypedef struct kr_straight_run:
        pass

    ctypedef void kr_straight_runs(kr_message_decoder *d, kr_straight_run *run)

    ctypedef struct kr_straight:
        const char *name
        uint64_t digest
        kr_straight_runs *run

    int kr_versions_within(const kr_versioned *v, int32_t first, int64_t count)
    int kr_decode_versions(kr_message_decoder *d, const kr_program *programs, int32_t first, const kr_straight *straight,
                           const kr_versioned *v)


cdef extern from "straight_decoders.h" nogil:
    const kr_straight *kr_straight_of(const char *name, uint64_t digest)


cdef extern from "message/arrays.h" nogil:
    int kr_message_arrays_count(const kr_message_decoder *d, int with_unknown)
    int kr_message_arrays(ArrowArray **out, kr_message_decoder *d, int32_t columns, int with_unknown,
                          const uint8_t *is_absent)


cdef extern from "message/json.h" nogil:
    ctypedef struct kr_json_printer:
        kr_message_decoder *d
        kr_growing *out

    void kr_print_message(kr_json_printer *j, const uint8_t *start, const uint8_t *pos, const uint8_t *end, int64_t row)


cdef extern from "message/encode.h" nogil:
    ctypedef struct kr_field_source:
        const uint8_t *list_valid
        const uint8_t *valid
        int64_t list_valid_at
        int64_t valid_at
        const int32_t *list_ends
        const int32_t *ends
        const uint8_t *data
        int64_t data_at
        const int64_t *tags

    ctypedef struct kr_message_encoder:
        kr_program program
        const kr_field_source *sources
        int32_t uuid_text
        int32_t no_memory
        kr_growing out
        kr_error error
        int32_t error_field

    int kr_encode_message(kr_message_encoder *e, int64_t row)


cdef extern from "batch/metadata_marker.h" nogil:
    enum:
        KR_FIRST_MARKER_KEY
        KR_LAST_MARKER_KEY


cdef extern from "text/uuid_text.h" nogil:
    const char *KR_ZERO_UUID_TEXT
    void kr_uuid_text_init()


cdef extern from "message/frame.h" nogil:
    enum:
        KR_NO_TYPE
        KR_NO_VERSION
        KR_FRAME_VERSION

    ctypedef struct kr_frame_fault:
        int64_t row
        int32_t status
        int64_t expected
        int64_t actual

    ctypedef struct kr_frames:
        int32_t *types
        int32_t *versions
        int32_t *starts
        kr_growing faults
        int no_memory

    ctypedef struct kr_group:
        int32_t type
        int32_t first_version
        int32_t last_version
        int64_t count

    enum:
        KR_MOST_GROUPS
        KR_MANY_GROUPS

    void kr_read_frames(const kr_lent_binary *values, int64_t n, kr_frames *f)
    void kr_read_int16_prefixes(const kr_lent_binary *values, int64_t n, int32_t when_null, kr_frames *f, int32_t *numbers,
                                int32_t none)
    int kr_group_rows(const int32_t *types, const int32_t *versions, int64_t n, kr_group *groups, uint8_t *ids,
                      int64_t *rows)


cdef extern from "base/status.h" nogil:
    enum:
        KR_OK
        KR_NULL_KEY


cdef extern from "message/side.h" nogil:
    ctypedef struct kr_side:
        const kr_program *programs
        const kr_straight *straight
        int32_t first
        int32_t versions
        kr_message_decoder *decoder

    kr_side kr_side_begin(kr_side *kept)
    int kr_side_end(kr_side *s)
    void kr_side_leave(kr_side *kept, kr_side *s)
    void kr_side_close(kr_side *s)


cdef extern from "message/pass.h" nogil:
    enum:
        KR_PASS_TYPES

    ctypedef struct kr_pass_type:
        kr_side values
        int is_skipped
        kr_growing rows

    int64_t kr_pass_run(kr_pass_type *types, const kr_lent_binary *v, int64_t start, int64_t end)


cdef extern from "message/keyed_pass.h" nogil:
    enum:
        KR_KEYED_TYPES
        KR_KEYED_FAULT
        KR_KEYED_NO_MEMORY

    ctypedef struct kr_keyed_type:
        kr_side key
        kr_side value
        kr_growing rows
        kr_growing tombstones
        int is_skipped

    int kr_keyed_end(kr_keyed_type *t)
    int64_t kr_keyed_run(kr_keyed_type **types, const kr_lent_binary *keys, const kr_lent_binary *values, int64_t start,
                         int64_t end)
