/* What stands before a message and says what it is.
 *
 *     metadata, tiered storage   value: uvarint frame version 1 | uvarint type | uvarint version | message
 *     coordinators               key:   int16 type | message     value: int16 version | message, null for a tombstone
 */
#ifndef KRAFTLOG_MESSAGE_FRAME_H
#define KRAFTLOG_MESSAGE_FRAME_H

#include "arrow/lent.h"
#include "base/endian.h"
#include "base/reader.h"
#include "batch/metadata_marker.h"
#include "message/columns.h"

enum { KR_NO_TYPE = INT32_MIN, KR_NO_VERSION = INT32_MIN, KR_FRAME_MOST = 32767 };

/* Why the frame of a row cannot be read. */
typedef struct {
    int64_t row;
    int32_t status, unused;
    int64_t expected, actual;
} kr_frame_fault;

/* What was found in each row. */
typedef struct {
    int32_t *types;    /* KR_NO_TYPE where it could not be read */
    int32_t *versions; /* KR_NO_VERSION where there is none */
    int32_t *starts;   /* byte at which the message starts */
    kr_growing faults; /* of kr_frame_fault */
    int no_memory;
} kr_frames;

static inline kr_reader kr_value_reader(const kr_lent_binary *v, int64_t i) {
    const uint8_t *start = v->data + v->ends[i];
    return kr_reader_make(start, start, v->data + v->ends[i + 1]);
}

static inline void kr_frame_fail(kr_frames *f, int64_t i, int32_t status, int64_t expected, int64_t actual) {
    kr_frame_fault fault = {i, status, 0, expected, actual};
    if (!kr_push_repeated(&f->faults, &fault, sizeof fault, 1)) f->no_memory = 1;
}

static inline int32_t kr_frame_number(kr_reader *r) {
    uint64_t x = KR_LIKELY(r->pos < r->end && *r->pos < 0x80) ? *r->pos++ : kr_read_groups(r, KR_VARINT_MAX);
    return x > KR_FRAME_MOST ? KR_FRAME_MOST + 1 : (int32_t)x;
}

static void kr_read_frames(const kr_lent_binary *values, int64_t n, kr_frames *f) {
    for (int64_t i = 0; i < n; i++) {
        const uint8_t *p = values->data + values->ends[i];
        int64_t size = values->ends[i + 1] - values->ends[i];
        if (KR_LIKELY(!values->validity && size >= 3 && p[0] == KR_FRAME_VERSION && (p[1] | p[2]) < 0x80)) {
            f->types[i] = p[1];
            f->versions[i] = p[2];
            f->starts[i] = 3;
            continue;
        }
        f->types[i] = KR_NO_TYPE;
        f->versions[i] = KR_NO_VERSION;
        f->starts[i] = 0;
        if (kr_lent_is_null(values, i)) {
            kr_frame_fail(f, i, KR_NULL_VALUE, 0, 0);
            continue;
        }
        kr_reader r = kr_value_reader(values, i);
        int32_t frame = kr_frame_number(&r);
        if (r.error.status == KR_OK && frame != KR_FRAME_VERSION) {
            kr_frame_fail(f, i, KR_BAD_FRAME_VERSION, KR_FRAME_VERSION, frame);
            continue;
        }
        int32_t type = kr_frame_number(&r);
        int32_t version = kr_frame_number(&r);
        if (r.error.status != KR_OK) {
            kr_frame_fail(f, i, r.error.status, r.error.expected, r.error.actual);
        } else if (type > KR_FRAME_MOST || version > KR_FRAME_MOST) {
            kr_frame_fail(f, i, KR_OUT_OF_RANGE, KR_FRAME_MOST, type > KR_FRAME_MOST ? type : version);
        } else {
            f->types[i] = type;
            f->versions[i] = version;
            f->starts[i] = (int32_t)(r.pos - r.start);
        }
    }
}

/* The int16 at the start of keys, or of values: `numbers` takes them. */
static void kr_read_int16_prefixes(const kr_lent_binary *values, int64_t n, int32_t when_null, kr_frames *f,
                                   int32_t *numbers, int32_t none) {
    for (int64_t i = 0; i < n; i++) {
        numbers[i] = none;
        f->starts[i] = 2;
        if (kr_lent_is_null(values, i)) {
            if (when_null != KR_OK) kr_frame_fail(f, i, when_null, 0, 0);
            continue;
        }
        int64_t size = values->ends[i + 1] - values->ends[i];
        if (size < 2)
            kr_frame_fail(f, i, KR_TRUNCATED_FIELD, 2, size);
        else
            numbers[i] = kr_load_int16(values->data + values->ends[i]);
    }
}

enum { KR_MOST_GROUPS = 64, KR_MANY_GROUPS = -1 };

typedef struct {
    int32_t type;
    int32_t first_version, last_version; /* the lowest and the highest that there are, or KR_NO_VERSION */
    int64_t count;
} kr_group;

static inline int kr_group_of(kr_group *groups, int count, int32_t type) {
    int g = 0;
    while (g < count && groups[g].type != type) g++;
    return g;
}

/* Sorts rows by type, those of a group in order. Returns how many groups there are, or KR_MANY_GROUPS when that is more
 * than KR_MOST_GROUPS. `ids` has room for a byte for each row, `rows` for a number. */
static int kr_group_rows(const int32_t *types, const int32_t *versions, int64_t n, kr_group *groups, uint8_t *ids,
                         int64_t *rows) {
    int count = 0, last = 0;
    for (int64_t i = 0; i < n; i++) {
        if (!count || groups[last].type != types[i]) {
            last = kr_group_of(groups, count, types[i]);
            if (last == count) {
                if (count == KR_MOST_GROUPS) return KR_MANY_GROUPS;
                kr_group fresh = {types[i], INT32_MAX, KR_NO_VERSION, 0};
                groups[count++] = fresh;
            }
        }
        kr_group *g = &groups[last];
        int32_t lowest = versions[i] == KR_NO_VERSION ? INT32_MAX : versions[i];
        g->first_version = lowest < g->first_version ? lowest : g->first_version;
        g->last_version = versions[i] > g->last_version ? versions[i] : g->last_version;
        g->count++;
        ids[i] = (uint8_t)last;
    }
    for (int g = 0; g < count; g++)
        if (groups[g].last_version == KR_NO_VERSION) groups[g].first_version = KR_NO_VERSION;
    int64_t next[KR_MOST_GROUPS], at = 0;
    for (int g = 0; g < count; g++) {
        next[g] = at;
        at += groups[g].count;
    }
    for (int64_t i = 0; i < n; i++) rows[next[ids[i]]++] = i;
    return count;
}

#endif
