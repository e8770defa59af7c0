/* A decoder over bytes in a block that ends where they end. */
#ifndef KRAFTLOG_TESTS_DRIVE_H
#define KRAFTLOG_TESTS_DRIVE_H

#include "bytes.h"
#include "check.h"
#include "record/decoder.h"
#include "room.h"

typedef struct {
    kr_decoder d;
    uint8_t *input;
    int64_t size;
} drive;

/* Reads all of the bytes, asks for all columns, checks crcs and hides control records; the test changes what it likes.
 */
static inline void drive_open(drive *v, const uint8_t *p, int64_t size, int64_t rows, int64_t chunk_bytes) {
    kr_decoder *d = &v->d;
    memset(d, 0, sizeof *d);
    v->input = exact_copy(p, size);
    v->size = size;
    d->input = kr_input_make(v->input, size);
    d->end = size;
    d->want = KR_WANT_ALL;
    d->check_crc = 1;
    d->start_offset = INT64_MIN;
    d->end_offset = INT64_MAX;
    d->start_timestamp = INT64_MIN;
    d->torn_at = -1;
    d->next_offset = -1;
    d->columns = room_make(rows, chunk_bytes, 2 * rows, KR_WANT_ALL);
}

static inline void drive_new_room(drive *v, int64_t rows, int64_t chunk_bytes, int64_t headers) {
    room_check(&v->d.columns, v->d.want);
    room_free(&v->d.columns);
    v->d.columns = room_make(rows, chunk_bytes, headers, v->d.want);
}

/* As much room as the batch that waits may take. */
static inline void drive_grow(drive *v) {
    int64_t size = v->d.needs_bytes;
    drive_new_room(v, size / KR_SMALLEST_RECORD + 2, size, size / 2 + 1);
}

static inline void drive_close(drive *v) {
    room_check(&v->d.columns, v->d.want);
    room_free(&v->d.columns);
    exact_free(v->input, v->size);
}

/* Hands over plain bytes with the padding that they need and no more. */
static inline int drive_offer(drive *v, const uint8_t *plain, int64_t size) {
    uint8_t *p = room_block(size + KR_PADDING);
    memset(p, 0xff, (size_t)(size + KR_PADDING));
    if (size) memcpy(p, plain, (size_t)size);
    int status = kr_decode_decompressed(&v->d, p, size);
    free(p);
    return status;
}

#endif
