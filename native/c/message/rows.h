/* Rows of messages that are being read: where each is, what is wrong with it, and the lengths that its fields start
 * with.
 *
 * A row without a position (NULL) has the field's default: so it is with tagged fields that are absent, and with rows
 * that turned out to be bad. */
#ifndef KRAFTLOG_MESSAGE_ROWS_H
#define KRAFTLOG_MESSAGE_ROWS_H

#include "base/endian.h"
#include "base/status.h"
#include "message/columns.h"

enum { KR_BLOCK_ROWS = 256, KR_STRING_MAX = 0x7fff, KR_DEEPEST = 8 };

typedef struct {
    kr_error error; /* position: bytes from the start of the value */
    int64_t row;
    int32_t field;
} kr_message_fault;

typedef struct {
    kr_program program;
    kr_column *columns; /* fields_count of them, then one for the unknown tagged fields of each struct */
    int32_t uuid_text;  /* uuids as text, else as bytes */
    int32_t no_memory;
    kr_growing faults;    /* of kr_message_fault */
    const uint8_t *limit; /* up to here at the least there are bytes behind any row before it */
    const uint8_t **scratch;
    int64_t scratch_used, scratch_size;
    int64_t interpreted; /* rows that no generated decoder has read */
} kr_message_decoder;

/* Some rows of a message, or of a struct in it: where each starts, where it is read, and where it must end. */
typedef struct {
    const uint8_t *const *start;
    const uint8_t **pos;
    const uint8_t *const *end;
    int64_t n;   /* at most KR_BLOCK_ROWS */
    int64_t row; /* the number of the first one */
} kr_rows;

/* An upper bound of the bytes that all rows have left. */
static inline int64_t kr_rows_left(const kr_rows *r) {
    int64_t left = 0;
    for (int64_t i = 0; i < r->n; i++) left += r->pos[i] ? r->end[i] - r->pos[i] : 0;
    return left;
}

static void kr_row_fail(kr_message_decoder *d, int32_t field, kr_rows *r, int64_t i, int status, int64_t expected,
                        int64_t actual) {
    kr_message_fault fault;
    memset(&fault, 0, sizeof fault);
    kr_fail(&fault.error, status, r->pos[i] - r->start[i], expected, actual);
    fault.row = r->row + i;
    fault.field = field;
    if (!kr_push_repeated(&d->faults, &fault, sizeof fault, 1)) d->no_memory = 1;
    r->pos[i] = 0;
}

/* An unsigned varint; -1 after a failure. */
KR_ALWAYS_INLINE int64_t kr_row_uvarint(kr_message_decoder *d, int32_t field, kr_rows *r, int64_t i) {
    const uint8_t *p = r->pos[i], *end = r->end[i];
    if (KR_LIKELY(p < end && *p < 0x80)) {
        r->pos[i] = p + 1;
        return *p;
    }
    uint64_t x;
    const uint8_t *next = kr_uvarint(p, end, KR_VARINT_MAX, &x);
    if (!next && end - p < KR_VARINT_MAX) {
        kr_row_fail(d, field, r, i, KR_TRUNCATED_FIELD, 1, 0);
    } else if (!next) {
        kr_row_fail(d, field, r, i, KR_VARINT_TOO_LONG, KR_VARINT_MAX, KR_VARINT_MAX);
    } else if ((uint32_t)x > INT32_MAX) { /* Kafka takes it for a negative number, and writes none */
        kr_row_fail(d, field, r, i, KR_OUT_OF_RANGE, INT32_MAX, (uint32_t)x);
    } else {
        r->pos[i] = next;
        return (int64_t)(uint32_t)x;
    }
    return -1;
}

enum { KR_LENGTH_NULL = -1, KR_LENGTH_FAILED = -2 };

/* The length of a string, of bytes or of an array, which has been compared with nothing yet. */
KR_ALWAYS_INLINE int64_t kr_row_length(kr_message_decoder *d, int32_t field, kr_rows *r, int64_t i, int plain_width) {
    const kr_field *f = &d->program.fields[field];
    int64_t length;
    if (d->program.is_compact) {
        length = kr_row_uvarint(d, field, r, i) - 1;
        if (length == -2) return KR_LENGTH_FAILED;
    } else {
        const uint8_t *p = r->pos[i];
        if (r->end[i] - p < plain_width) {
            kr_row_fail(d, field, r, i, KR_TRUNCATED_FIELD, plain_width, r->end[i] - p);
            return KR_LENGTH_FAILED;
        }
        length = plain_width == 2 ? kr_load_int16(p) : kr_load_int32(p);
        r->pos[i] = p + plain_width;
    }
    if (length >= 0) return length;
    if (f->is_nullable) return KR_LENGTH_NULL;
    kr_row_fail(d, field, r, i, KR_UNEXPECTED_NULL, 0, 0);
    return KR_LENGTH_FAILED;
}

#endif
