from libc.stdint cimport int32_t, int64_t, uint8_t

from kraftlog._native.c_lent cimport kr_lent_large


cdef extern from "json/redact.h" nogil:
    enum:
        KR_REDACT_NAME
        KR_REDACT_ITEM
        KR_REDACT_EVERY
        KR_REDACT_TO_NULL
        KR_REDACT_TO_MASK
        KR_REDACT_TO_HASH
        KR_REDACT_MOST_RULES
        KR_REDACT_HASH_DIGITS
        KR_REDACT_PLACE_NUMBERS

    ctypedef struct kr_redaction_step:
        int32_t kind
        int64_t number
        const uint8_t *name

    ctypedef struct kr_redaction_rule:
        const kr_redaction_step *steps
        int32_t count
        int32_t how

    ctypedef struct kr_redaction_place:
        int64_t at
        int64_t start "from"
        int64_t size

    ctypedef struct kr_redactor:
        const kr_redaction_rule *rules
        int32_t rules_count
        int32_t mask_size
        const uint8_t *mask
        uint8_t *out
        int64_t room
        int64_t written
        kr_redaction_place *places
        int64_t places_room
        int64_t places_count

    int64_t kr_redact_column(kr_redactor *r, const kr_lent_large *v, int64_t row, int64_t *ends,
                                  uint8_t *is_plain)
