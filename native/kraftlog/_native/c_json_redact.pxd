from libc.stdint cimport int32_t, int64_t, uint8_t

from kraftlog._native.c_hash cimport kr_large_values


cdef extern from "json/redact.h" nogil:
    enum:
        KR_JSON_NAME
        KR_JSON_ITEM
        KR_JSON_EVERY
        KR_JSON_TO_NULL
        KR_JSON_TO_MASK
        KR_JSON_TO_HASH
        KR_JSON_MOST_RULES
        KR_JSON_HASH_DIGITS
        KR_JSON_PLACE_NUMBERS

    ctypedef struct kr_json_step:
        int32_t kind
        int64_t number
        const uint8_t *name

    ctypedef struct kr_json_rule:
        const kr_json_step *steps
        int32_t count
        int32_t how

    ctypedef struct kr_json_place:
        int64_t at
        int64_t start "from"
        int64_t size

    ctypedef struct kr_json_redactor:
        const kr_json_rule *rules
        int32_t rules_count
        int32_t mask_size
        const uint8_t *mask
        uint8_t *out
        int64_t room
        int64_t written
        kr_json_place *places
        int64_t places_room
        int64_t places_count

    int64_t kr_json_redact_column(kr_json_redactor *r, const kr_large_values *v, int64_t row, int64_t *ends,
                                  uint8_t *is_plain)
