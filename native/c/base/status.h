/* Outcomes of reading and writing record batches.
 *
 * One list holds the number, the short code shown in the `errors` table and the sentence made from the two numbers of
 * kr_error, so that C, Cython and Python cannot drift apart. In a sentence {expected} and {actual} stand for the
 * fields of kr_error.
 */
#ifndef KRAFTLOG_BASE_STATUS_H
#define KRAFTLOG_BASE_STATUS_H

#include <stdint.h>

/* clang-format off */
#define KR_STATUS_LIST(X) \
    /* results: not faults */ \
    X(OK, "ok", "") \
    X(END, "end", "") \
    X(TORN_TAIL, "torn_tail", "{actual} bytes at the end hold no complete batch") \
    X(CHUNK_FULL, "chunk_full", "") \
    X(NEEDS_ROOM, "needs_room", "") \
    X(NEEDS_DECOMPRESSION, "needs_decompression", "") \
    X(NEEDS_TRANSACTIONS, "needs_transactions", "") \
    X(UNREADABLE, "unreadable_file", "") \
    /* faults of a batch */ \
    X(BAD_BATCH_LENGTH, "bad_batch_length", "batch_length {actual} is not between {expected} and the bytes left") \
    X(BAD_MAGIC, "bad_magic", "magic {actual} is not 0, 1, 2 or above") \
    X(OFFSET_OVERFLOW, "offset_overflow", "base_offset {actual} and last_offset_delta {expected} leave no next offset") \
    X(BAD_CRC, "bad_crc", "stored crc {expected}, computed crc {actual}") \
    X(BAD_RECORDS_COUNT, "bad_records_count", "records_count {actual} is negative") \
    X(MISSING_RECORDS, "missing_records", "records_count {expected}, but the batch ends after {actual} records") \
    X(TRAILING_BYTES, "trailing_bytes", "{actual} bytes left after the last of {expected} records") \
    X(UNKNOWN_COMPRESSION, "unknown_compression", "compression type {actual} is not between 0 and {expected}") \
    X(DECOMPRESSION_FAILED, "decompression_failed", "") \
    X(DECOMPRESSION_LIMIT, "decompression_limit", "more than the allowed {expected} bytes after decompression") \
    X(TOO_MUCH_DAMAGE, "too_much_damage", "{actual} bytes were summed in vain; the {expected} bytes left are not searched") \
    /* faults of a record */ \
    X(TRUNCATED_FIELD, "truncated_field", "a field of {expected} bytes, but {actual} bytes left") \
    X(VARINT_TOO_LONG, "varint_too_long", "a varint of more than {expected} bytes") \
    X(BAD_RECORD_LENGTH, "bad_record_length", "record length {actual} is not between 0 and the {expected} bytes left") \
    X(BAD_KEY_LENGTH, "bad_key_length", "key_length {actual} exceeds {expected} bytes left") \
    X(BAD_VALUE_LENGTH, "bad_value_length", "value_length {actual} exceeds {expected} bytes left") \
    X(BAD_HEADERS_COUNT, "bad_headers_count", "headers_count {actual} is not between 0 and the {expected} bytes left") \
    X(BAD_HEADER_KEY_LENGTH, "bad_header_key_length", "header_key_length {actual} is not between 0 and the {expected} bytes left") \
    X(BAD_HEADER_VALUE_LENGTH, "bad_header_value_length", "header_value_length {actual} exceeds {expected} bytes left") \
    X(BAD_RECORD_SIZE, "bad_record_size", "record length {expected}, but its fields take {actual} bytes") \
    X(BAD_INNER_MAGIC, "bad_inner_magic", "a message of magic {actual} inside a wrapper of magic {expected}") \
    X(BAD_INNER_CRC, "bad_inner_crc", "a message inside a wrapper has the crc {expected}, computed crc {actual}") \
    X(NESTED_COMPRESSION, "nested_compression", "a message inside a compressed wrapper is compressed itself, type {actual}") \
    X(EMPTY_WRAPPER, "empty_wrapper", "a compressed wrapper without a message") \
    X(BAD_WRAPPER_OFFSET, "bad_wrapper_offset", "a wrapper of offset {actual}, which is less than {expected}, that of its last message") \
    /* faults of a message */ \
    X(NULL_KEY, "null_key", "the key is null") \
    X(NULL_VALUE, "null_value", "the value is null") \
    X(BAD_FRAME_VERSION, "bad_frame_version", "frame version {actual} is not {expected}") \
    X(BAD_LENGTH, "bad_length", "length {actual} exceeds {expected} bytes left") \
    X(STRING_TOO_LONG, "string_too_long", "a string of {actual} bytes, more than {expected}") \
    X(BAD_ELEMENTS_COUNT, "bad_elements_count", "{actual} elements, but {expected} bytes left") \
    X(UNEXPECTED_NULL, "unexpected_null", "null, which this version does not allow") \
    X(BAD_TAGGED_FIELDS_COUNT, "bad_tagged_fields_count", "{actual} tagged fields, but {expected} bytes left") \
    X(BAD_TAGGED_FIELD_SIZE, "bad_tagged_field_size", "a tagged field of {expected} bytes, of which {actual} were read") \
    X(REPEATED_TAG, "repeated_tag", "tag {actual} stands there twice") \
    X(TAGS_NOT_RISING, "tags_not_rising", "tag {actual} comes after tag {expected} and is not higher") \
    X(MESSAGE_TRAILING_BYTES, "message_trailing_bytes", "{actual} bytes left behind the message") \
    X(BAD_UUID, "bad_uuid", "text of {actual} bytes is not a uuid, which has {expected} characters of base64") \
    X(OUT_OF_RANGE, "out_of_range", "{actual} is not between 0 and {expected}") \
    X(UNWRITABLE_FIELD, "unwritable_field", "version {expected} has no place for its value") \
    /* faults of a caller */ \
    X(RECORD_TOO_LARGE, "record_too_large", "a batch of this record alone takes {actual} bytes, the cap is {expected}") \
    X(UNEXPECTED_MARKER, "unexpected_marker", "it begins, ends or aborts a transaction")
/* clang-format on */

enum kr_status {
#define X(name, code, text) KR_##name,
    KR_STATUS_LIST(X)
#undef X
        KR_STATUS_COUNT
};

static const char *const kr_status_codes[KR_STATUS_COUNT] = {
#define X(name, code, text) code,
    KR_STATUS_LIST(X)
#undef X
};

static const char *const kr_status_texts[KR_STATUS_COUNT] = {
#define X(name, code, text) text,
    KR_STATUS_LIST(X)
#undef X
};

/* What went wrong and where. `position` counts bytes from the start of the input that was given; inside a compressed
 * batch it is the batch's. `record_index` is -1 when the fault is the batch's own. */
typedef struct {
    int32_t status;
    int32_t record_index;
    int64_t position;
    int64_t expected;
    int64_t actual;
    int64_t lost; /* bytes that are left out because of it, where the finder knows; KR_REST: all that follow */
} kr_error;

enum { KR_REST = -1 };

static inline int kr_fail(kr_error *e, int status, int64_t position, int64_t expected, int64_t actual) {
    e->status = status;
    e->record_index = -1;
    e->position = position;
    e->expected = expected;
    e->actual = actual;
    e->lost = 0;
    return status;
}

#endif
