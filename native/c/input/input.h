/* The bytes that a reader works on: a whole buffer, or a file of which a window is in memory.
 *
 *   0            from                until            size
 *   |  not here  |  start + position  |   not here    |
 *
 * Code that reads [a, b) asks kr_need first. Over a window the answer may move it: pointers that were made before are
 * void then. A window that cannot be moved, because the file was truncated, an I/O error occurred or it has no `move`,
 * sets `failed`, and every later question is answered with no; runners check it before they believe what they have come
 * to.
 */
#ifndef KRAFTLOG_INPUT_INPUT_H
#define KRAFTLOG_INPUT_INPUT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/varint.h"

enum { KR_SEEN_BYTES = 21 }; /* of a header: up to its crc */

typedef struct kr_input {
    const uint8_t *start; /* of a window: where byte 0 would be */
    int64_t size;         /* of the buffer or file */
    int64_t from, until;  /* in memory */
    int64_t spare;        /* bytes without meaning behind `until` that can be read */
    /* Moves the window so that it has [a, b), and up to min(a + ahead, stop) if that is more. Not 0: it cannot. */
    int (*move)(struct kr_input *in, int64_t a, int64_t b);
    void *owner;
    int64_t ahead, stop;
    int64_t window_bytes;
    int64_t long_batch; /* bytes of a batch from which a reader of headers alone does better with a read for each */
    int is_held;        /* whether much of the window stays when it moves */
    int failed;
    int64_t seen_at; /* -1, or the position of the last header of the walk, and its first bytes */
    uint8_t seen[KR_SEEN_BYTES];
    struct kr_salvage *salvage; /* 0, or batches are searched for behind damage (batch/salvage.h) */
} kr_input;

enum {
    KR_FIRST_AHEAD = 4 << 10,    /* bytes read behind the first short batch */
    KR_SEARCH_AHEAD = 256 << 10, /* bytes: the least window where all bytes are looked at */
    KR_LARGE_BATCH = 16 << 20    /* bytes: a larger batch is brought into memory when its crc is known to match */
};

static inline kr_input kr_input_make(const uint8_t *start, int64_t size) {
    kr_input in = {start, size, 0, size, 0, 0, 0, 0, 0, 0, 0, 0, 0, -1, {0}, 0};
    return in;
}

static int kr_input_move(kr_input *in, int64_t a, int64_t b) {
    if (!in->failed) in->failed = !in->move || in->move(in, a, b) != 0;
    return !in->failed;
}

/* Whether [a, b) is in memory, or can be brought there; b is not behind the size. */
static inline int kr_need(kr_input *in, int64_t a, int64_t b) {
    return KR_LIKELY(a >= in->from && b <= in->until) || kr_input_move(in, a, b);
}

/* Long batches are passed over by a small read of each header; what lies between is not read. Short ones are read
 * together, the more of them the longer they go on: among long ones there are markers. */
static inline void kr_choose_ahead(kr_input *in, int64_t batch_bytes) {
    if (!in->move) return;
    int64_t more = in->ahead ? 2 * in->ahead : KR_FIRST_AHEAD;
    in->ahead = batch_bytes >= in->long_batch ? 0 : more < in->window_bytes ? more : in->window_bytes;
}

/* Whether nothing but zeros stands from `position` to the end of the input. */
static inline int kr_is_zero(kr_input *in, int64_t position) {
    int64_t end;
    for (; position < in->size; position = end) {
        end = in->size - position < KR_SEARCH_AHEAD ? in->size : position + KR_SEARCH_AHEAD;
        if (!kr_need(in, position, end)) return 0;
        const uint8_t *p = in->start + position;
        int64_t n = end - position, i = 0;
        if (p[0]) return 0; /* nearly always told by the first byte */
        for (; i + 64 <= n; i += 64) {
            uint64_t words[8], any = 0;
            memcpy(words, p + i, 64);
            for (int k = 0; k < 8; k++) any |= words[k];
            if (any) return 0;
        }
        for (; i < n; i++)
            if (p[i]) return 0;
    }
    return 1;
}

/* Remembers the header at a position, which is in memory. */
static inline void kr_input_see(kr_input *in, int64_t position) {
    in->seen_at = position;
    memcpy(in->seen, in->start + position, KR_SEEN_BYTES);
}

#endif
