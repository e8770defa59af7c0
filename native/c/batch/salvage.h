/* Searching for batches behind damage, when a caller asks for it: by magic and crc, at every byte.
 *
 * What is found may lie inside of a batch: a value can hold batches, and a producer chooses values. No reader searches
 * unless a caller asks for it, and what stands at or behind `salvaged_at` is marked as salvaged.
 */
#ifndef KRAFTLOG_BATCH_SALVAGE_H
#define KRAFTLOG_BATCH_SALVAGE_H

#include "batch/batch.h"

typedef struct kr_salvage {
    int64_t from, found; /* no sound batch starts in [from, found) */
    int64_t salvaged_at; /* -1, or the first batch that was found by a search */
    int64_t wasted;      /* bytes summed whose crc did not match */
} kr_salvage;

/* Crafted input can hold many headers whose batches overlap, and each one asks for a sum over megabytes. Work stays in
 * proportion to the input: beyond this much in vain the rest is given up, in a fault that says so. */
enum { KR_WASTE_PASSES = 16, KR_WASTE_ALLOWED = 64 << 20 };

static inline kr_salvage kr_salvage_make(void) {
    kr_salvage s = {0, 0, -1, 0};
    return s;
}

static inline int kr_is_hopeless(const kr_input *in) {
    return in->salvage->wasted > KR_WASTE_PASSES * in->size + KR_WASTE_ALLOWED;
}

/* Whether the bytes at `position` look like a header that a broker would write. */
static inline int kr_is_plausible(const uint8_t *p, int64_t left) {
    int8_t magic = (int8_t)p[KR_MAGIC_AT];
    if (magic < 0 || magic > 2 || kr_load_int64(p) < 0) return 0;
    if (kr_load_int32(p + KR_LENGTH_AT) < kr_least_batch_length(magic)) return 0;
    if (magic < 2) {
        int attributes = left > KR_LEGACY_ATTRIBUTES_AT ? p[KR_LEGACY_ATTRIBUTES_AT] : 0;
        return (attributes & ~0x0f) == 0 && (attributes & KR_COMPRESSION_MASK) < KR_LAST_COMPRESSION;
    }
    if (left < KR_RECORD_BATCH_OVERHEAD) return 1; /* cut off */
    int attributes = kr_load_int16(p + KR_ATTRIBUTES_AT);
    return (attributes & ~0x7f) == 0 && (attributes & KR_COMPRESSION_MASK) <= KR_LAST_COMPRESSION &&
           kr_load_int32(p + KR_LAST_OFFSET_DELTA_AT) >= 0 && kr_load_int32(p + KR_RECORDS_COUNT_AT) >= 0;
}

/* Whether a whole batch with a matching crc stands at `position`. */
static inline int kr_is_sound(kr_input *in, int64_t position) {
    kr_batch_header h;
    kr_error ignored;
    if (in->size - position < KR_HEADER_UP_TO_MAGIC || !kr_need(in, position, position + KR_HEADER_UP_TO_MAGIC))
        return 0;
    if (in->start[position + KR_MAGIC_AT] > 2 || kr_header_read(in, position, &h, &ignored) != KR_OK) return 0;
    if (!kr_is_plausible(in->start + position, in->size - position)) return 0;
    if (kr_batch_crc(in, &h) == h.crc) return 1;
    if (in->salvage) in->salvage->wasted += h.batch_length;
    return 0;
}

/* The first sound batch at or behind `position`; the input's size when there is none. */
static inline int64_t kr_find_batch(kr_input *in, int64_t position) {
    kr_salvage *s = in->salvage;
    if (position >= s->from && position < s->found) return s->found;
    int64_t ahead = in->ahead, stop = in->stop;
    if (in->ahead < KR_SEARCH_AHEAD) in->ahead = KR_SEARCH_AHEAD;
    in->stop = in->size;
    s->from = position;
    while (position < in->size && !kr_is_sound(in, position)) {
        if (in->failed || kr_is_hopeless(in)) position = in->size;
        if (position < in->size) position++;
    }
    s->found = position;
    in->ahead = ahead;
    in->stop = stop;
    return position;
}

/* Where to go on behind `position`, at which no batch can be read; `end` is where the next one is expected, or -1. */
static inline int64_t kr_salvage_behind(kr_input *in, int64_t position, int64_t end) {
    kr_salvage *s = in->salvage;
    if (end >= 0 && kr_is_sound(in, end)) return end;
    int64_t found = kr_find_batch(in, position + 1);
    if (found < in->size && (s->salvaged_at < 0 || found < s->salvaged_at)) s->salvaged_at = found;
    return found;
}

#endif
