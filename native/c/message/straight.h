/* Decodes messages of one definition and any of its versions, row by row: by straight-line code where it was generated
 * of the definition, and by the interpreter where it was not, or where that code refuses a row. */
#ifndef KRAFTLOG_MESSAGE_STRAIGHT_H
#define KRAFTLOG_MESSAGE_STRAIGHT_H

#include "batch/metadata_marker.h"
#include "message/shape.h"

typedef struct {
    kr_messages messages;
    const int32_t *versions; /* for each value, as `messages.starts` */
} kr_versioned;

/* Reads rows of a block until one is refused, and returns how many; their first value is number `at` of its column. */
typedef int64_t kr_straight_rows(kr_message_decoder *d, const kr_versioned *v, int64_t from, int64_t to, int64_t at);

/* Rows that follow each other, and what they have in front of their messages: a short frame (frame version, api key and
 * version, a byte each), of keys the int16 of their type, and of values behind keys that of their version. */
typedef struct {
    const uint8_t *data;
    const int32_t *ends;
    const uint8_t *limit, *most; /* there are bytes up to here; there is room for messages up to here */
    int64_t from, to;            /* rows that are to be read; `from` is the first that is not when it ends */
    int64_t first_row;           /* what `from` was */
    int64_t at;                  /* the number in its column of the message at `from` */
    int32_t first, versions;     /* that there are */
    int32_t number;              /* the api key of frames, and of keys */
    const kr_program *programs;  /* for each version */
    const uint8_t *prompt;       /* for each field */
    kr_message_shapes *shapes;
    const uint8_t *valid; /* of values behind keys: a bit for each from `valid_at` on, or NULL */
    int64_t valid_at;
    uint8_t *is_tombstone; /* of values behind keys: receives for each row whether it has none */
    uint8_t is_refused;    /* whether the row at which it ends is one that the interpreter must read */
} kr_straight_run;

/* Reads values until one is of another type, is refused or has no room. */
typedef void kr_straight_runs(kr_message_decoder *d, kr_straight_run *run);

enum { KR_SHORT_FRAME = 3, KR_INT16_PREFIX = 2 };

/* Reads a message; NULL when the interpreter must. */
typedef const uint8_t *kr_straight_one(kr_message_decoder *d, const uint8_t *p, const uint8_t *end, int32_t version,
                                       int64_t i);

/* Writes the fields of a message that begins at byte `p` with what stands in front of it, and has this shape; 0 when
 * the interpreter must. */
typedef int kr_straight_shaped(kr_message_decoder *d, const kr_message_shape *s, const uint8_t *p, int64_t i);

typedef struct {
    const char *name;
    uint64_t digest;       /* of the definition that it was generated of */
    const uint8_t *prompt; /* for each field */
    kr_straight_rows *rows;
    kr_straight_runs *run;
    int has_shapes; /* whether `run` writes rows by their shapes */
} kr_straight;

/* What the decoder of a message is, given its `one`. */
KR_ALWAYS_INLINE int64_t kr_straight_each(kr_message_decoder *d, const kr_versioned *v, int64_t from, int64_t to,
                                          int64_t at, kr_straight_one *one) {
    const kr_messages *m = &v->messages;
    const uint8_t *const limit = d->limit;
    for (int64_t i = from; i < to; i++) {
        int64_t row = m->rows[i];
        const uint8_t *start = m->values.data + m->values.ends[row], *end = m->values.data + m->values.ends[row + 1];
        if (KR_UNLIKELY(limit - end < KR_PADDING)) return i - from;
        if (KR_UNLIKELY(one(d, start + m->starts[row], end, v->versions[row], at + i - from) != end)) return i - from;
    }
    return to - from;
}

/* Up to where messages end that there is room for, and enough bytes behind. */
static inline int32_t kr_straight_most(const kr_straight_run *run) {
    int64_t padded = run->limit - run->data - KR_PADDING, room = run->most - run->data;
    return (int32_t)(padded < room ? padded : room);
}

/* Where a row ends that is not decoded: the interpreter must read it unless there is no room. */
static inline int kr_straight_stops(const kr_straight_run *run, int32_t end) { return run->data + end <= run->most; }

enum { KR_AHEAD = 768 }; /* bytes: further than processors look by themselves */

/* Fetches what will be read soon, whether it is there or not. */
KR_ALWAYS_INLINE void kr_fetch_ahead(const uint8_t *p) { __builtin_prefetch((const void *)((uintptr_t)p + KR_AHEAD)); }

/* The bytes of a short frame, to be compared: four can be read. */
KR_ALWAYS_INLINE uint32_t kr_short_frame(const uint8_t *p) {
    static const uint8_t of_frame[4] = {0xff, 0xff, 0xff, 0};
    uint32_t bytes, mask;
    memcpy(&bytes, p, sizeof bytes);
    memcpy(&mask, of_frame, sizeof mask);
    return bytes & mask;
}

KR_ALWAYS_INLINE int32_t kr_short_frame_version(uint32_t frame) {
    uint8_t bytes[sizeof frame];
    memcpy(bytes, &frame, sizeof frame);
    return bytes[2];
}

/* Whether a row begins with a short frame of the type, and of a version that there is. */
static inline int kr_has_short_frame(const kr_straight_run *run, const uint8_t *p, int64_t size) {
    return size >= KR_SHORT_FRAME && p[0] == KR_FRAME_VERSION && p[1] == run->number &&
           (uint32_t)(p[2] - run->first) < (uint32_t)run->versions;
}

/* The decoder of rows with a short frame, which is mostly that of the row before. */
KR_ALWAYS_INLINE void kr_straight_frames(kr_message_decoder *d, kr_straight_run *run, kr_straight_one *one) {
    const uint8_t *const data = run->data;
    const int32_t *const ends = run->ends;
    const int64_t to = run->to, shift = run->at - run->from;
    const int32_t most = kr_straight_most(run);
    uint32_t frame = 0; /* no frame of a type is */
    int64_t i = run->from;
    int32_t at = ends[i], end = at;
    int is_refused = 0;
    for (; i < to; i++, at = end) {
        end = ends[i + 1];
        const uint8_t *p = data + at;
        kr_fetch_ahead(p);
        if (KR_UNLIKELY(end > most || kr_short_frame(p) != frame)) {
            if (!kr_has_short_frame(run, p, end - at)) break;
            if (end > most) {
                is_refused = kr_straight_stops(run, end);
                break;
            }
            frame = kr_short_frame(p);
        }
        if (KR_UNLIKELY(one(d, p + KR_SHORT_FRAME, data + end, kr_short_frame_version(frame), i + shift) !=
                        data + end)) {
            is_refused = end - at >= KR_SHORT_FRAME; /* else these are bytes of the next row */
            break;
        }
    }
    run->from = i;
    run->at = i + shift;
    run->is_refused = (uint8_t)is_refused;
}

/* Whether a row has the shape that is kept at its place. */
typedef struct {
    int is_shaped, is_read;
    int64_t place; /* below zero when it can have no shape */
} kr_shaped_row;

/* Reads a row that has a shape, of so many bytes that end at `end`. */
KR_ALWAYS_INLINE kr_shaped_row kr_read_shaped(kr_message_decoder *d, const kr_message_shapes *shapes, const uint8_t *p,
                                              int32_t size, int is_padded, int64_t i, kr_straight_shaped *shaped,
                                              const int fixed) {
    kr_shaped_row row = {0, 0, -1};
    if (!shaped || KR_UNLIKELY((uint32_t)size > KR_SHAPED_BYTES) || KR_UNLIKELY(!is_padded)) return row;
    row.place = kr_shape_place(size, p[fixed]);
    const kr_message_shape *s = shapes->of[row.place];
    row.is_shaped = kr_has_shape(s, p, size, fixed);
    if (KR_LIKELY(row.is_shaped)) row.is_read = shaped(d, s, p, i);
    return row;
}

/* The decoder of keys, which are of version 0. */
KR_ALWAYS_INLINE void kr_straight_keys(kr_message_decoder *d, kr_straight_run *run, kr_straight_one *one,
                                       kr_straight_shaped *shaped, const int fixed) {
    const uint8_t *const data = run->data;
    const int32_t *const ends = run->ends;
    kr_message_shapes *const shapes = run->shapes;
    const int64_t to = run->to, shift = run->at - run->from;
    const int32_t most = kr_straight_most(run), number = run->number;
    int64_t i = run->from;
    int32_t at = ends[i], end = at;
    int is_refused = 0;
    for (; i < to; i++, at = end) {
        end = ends[i + 1];
        const uint8_t *p = data + at;
        kr_fetch_ahead(p);
        kr_shaped_row row = kr_read_shaped(d, shapes, p, end - at, end <= most, i + shift, shaped, fixed);
        if (KR_LIKELY(row.is_read)) continue;
        if (end - at < KR_INT16_PREFIX || kr_load_int16(p) != number) break;
        if (KR_UNLIKELY(end > most)) {
            is_refused = kr_straight_stops(run, end);
            break;
        }
        is_refused = row.is_shaped || one(d, p + KR_INT16_PREFIX, data + end, 0, i + shift) != data + end;
        if (KR_UNLIKELY(is_refused)) break;
        if (row.place >= 0)
            kr_shape_note(shapes, row.place, run->programs, run->prompt, p, KR_INT16_PREFIX, end - at, fixed);
    }
    run->from = i;
    run->at = i + shift;
    run->is_refused = (uint8_t)is_refused;
}

/* The decoder of values behind keys; those that are null are tombstones, whose fields are absent. It stops at one where
 * messages have no shapes. */
KR_ALWAYS_INLINE void kr_straight_values(kr_message_decoder *d, kr_straight_run *run, kr_straight_one *one,
                                         kr_straight_shaped *shaped, const int fixed) {
    const uint8_t *const data = run->data, *const valid = run->valid;
    const int32_t *const ends = run->ends;
    kr_message_shapes *const shapes = run->shapes;
    uint8_t *const tombstones = run->is_tombstone - run->from;
    const int64_t to = run->to, valid_at = run->valid_at;
    const int32_t most = kr_straight_most(run), first = run->first;
    const uint32_t versions = (uint32_t)run->versions;
    int64_t i = run->from, number = run->at;
    int32_t at = ends[i], end = at;
    int is_refused = 0;
    for (; i < to; i++, at = end) {
        end = ends[i + 1];
        const uint8_t *p = data + at;
        kr_fetch_ahead(p);
        int is_tombstone = !kr_is_valid(valid, valid_at + i);
        tombstones[i] = (uint8_t)is_tombstone;
        if (KR_UNLIKELY(is_tombstone)) {
            is_refused = shaped && !shaped(d, &kr_absent_shape, kr_absent_row, number);
            if (!shaped || is_refused) break;
            number++;
            continue;
        }
        kr_shaped_row row = kr_read_shaped(d, shapes, p, end - at, end <= most, number, shaped, fixed);
        number += row.is_read;
        if (KR_LIKELY(row.is_read)) continue;
        if (end - at < KR_INT16_PREFIX) break;
        int32_t version = kr_load_int16(p);
        if ((uint32_t)(version - first) >= versions) break;
        if (KR_UNLIKELY(end > most)) {
            is_refused = kr_straight_stops(run, end);
            break;
        }
        is_refused = row.is_shaped || one(d, p + KR_INT16_PREFIX, data + end, version, number) != data + end;
        if (KR_UNLIKELY(is_refused)) break;
        if (row.place >= 0)
            kr_shape_note(shapes, row.place, &run->programs[version - first], run->prompt, p, KR_INT16_PREFIX, end - at,
                          fixed);
        number++;
    }
    run->from = i;
    run->at = number;
    run->is_refused = (uint8_t)is_refused;
}

/* Where a block ends: its rows are few, and so are their bytes; at `from` when its first row has too many. */
static int64_t kr_straight_block(const kr_messages *m, int64_t from, int64_t *bytes) {
    int64_t to = from, most = m->count - from < KR_STRAIGHT_ROWS ? m->count : from + KR_STRAIGHT_ROWS;
    for (*bytes = 0; to < most; to++) {
        int64_t size = m->values.ends[m->rows[to] + 1] - m->values.ends[m->rows[to]];
        if (*bytes + size > KR_STRAIGHT_BYTES) break;
        *bytes += size;
    }
    return to;
}

/* The rows from this one on that are of its version, up to a block. */
static int64_t kr_same_version(const kr_versioned *v, int64_t from) {
    const kr_messages *m = &v->messages;
    int64_t to = from + 1;
    while (to < m->count && to < from + KR_BLOCK_ROWS && v->versions[m->rows[to]] == v->versions[m->rows[from]]) to++;
    return to - from;
}

/* Whether the versions of all rows are among the `count` ones from `first` on. */
static inline int kr_versions_within(const kr_versioned *v, int32_t first, int64_t count) {
    int within = 1;
    for (int64_t i = 0; i < v->messages.count; i++) {
        int64_t version = (int64_t)v->versions[v->messages.rows[i]] - first;
        within &= version >= 0 && version < count;
    }
    return within;
}

/* Decodes messages behind those that the columns have, in order. `programs` has one for each version from `first` on;
 * `straight` is NULL for a definition of which no code was generated. Returns 0 when memory is short. */
static int kr_decode_versions(kr_message_decoder *d, const kr_program *programs, int32_t first,
                              const kr_straight *straight, const kr_versioned *v) {
    const kr_messages *m = &v->messages;
    int64_t at = 0;
    d->program = programs[0]; /* all have the same fields */
    kr_expect_rows(d, m->count);
    while (at < m->count && !d->no_memory) {
        if (straight) {
            int64_t bytes, to = kr_straight_block(m, at, &bytes), had = d->columns[0].item.count;
            if (!kr_make_room(d, 0, to - at, bytes)) d->no_memory = 1;
            if (d->no_memory) break;
            int64_t done = straight->rows(d, v, at, to, had);
            int refused = at + done < to || to == at;
            kr_settle_struct(d, straight->prompt, 0, had + done, refused ? KR_FILL : KR_CUT);
            d->columns[0].item.count = had + done;
            at += done;
            if (!refused) continue;
        }
        int64_t n = straight ? 1 : kr_same_version(v, at);
        d->program = programs[v->versions[m->rows[at]] - first];
        kr_interpret_block(d, m, at, n);
        at += n;
    }
    if (straight && !d->no_memory) kr_settle_struct(d, straight->prompt, 0, d->columns[0].item.count, KR_FILL_USED);
    return !d->no_memory;
}

#endif
