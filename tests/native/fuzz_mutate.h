/* Damage: seed files are cut into batches, and runs of batches are bent in ways that readers have tripped over. */
#ifndef KRAFTLOG_TESTS_FUZZ_MUTATE_H
#define KRAFTLOG_TESTS_FUZZ_MUTATE_H

#include "batch/batch.h"
#include "bytes.h"
#include "check.h"

enum { MOST_SEEDS = 1024, MOST_BATCHES = 1 << 14, MOST_INPUT = 1 << 17, USUAL_BATCH = 1 << 10 };

typedef struct {
    const uint8_t *at;
    int64_t size;
} piece;

typedef struct {
    piece files[MOST_SEEDS];
    int64_t files_count;
    piece batches[MOST_BATCHES]; /* sound ones, of all files */
    int64_t batches_count;
} corpus;

typedef struct {
    uint8_t at[MOST_INPUT];
    int64_t size;
} fuzz_input;

static inline void corpus_add(corpus *c, const uint8_t *p, int64_t size) {
    kr_input in = kr_input_make(p, size);
    kr_batch_header h;
    kr_error e;
    if (c->files_count == MOST_SEEDS) return;
    c->files[c->files_count++] = (piece){p, size};
    for (int64_t at = 0; kr_header_read(&in, at, &h, &e) == KR_OK; at = kr_batch_end(&h)) {
        if (c->batches_count == MOST_BATCHES || kr_batch_crc(&in, &h) != h.crc) continue;
        c->batches[c->batches_count++] = (piece){p + at, kr_batch_end(&h) - at};
    }
}

static inline piece random_batch(const corpus *c) { return c->batches[random_below(c->batches_count)]; }

/* Puts n bytes where `drop` bytes were, as far as they have room. */
static inline void replace(fuzz_input *in, int64_t at, int64_t drop, const uint8_t *p, int64_t n) {
    static uint8_t copy[MOST_INPUT];
    if (n > MOST_INPUT - (in->size - drop)) return;
    if (n) memcpy(copy, p, (size_t)n); /* the bytes may come from the input itself */
    memmove(in->at + at + n, in->at + at + drop, (size_t)(in->size - at - drop));
    if (n) memcpy(in->at + at, copy, (size_t)n);
    in->size += n - drop;
}

static inline int32_t batch_length_at(const fuzz_input *in, int64_t at) { return kr_load_int32(in->at + at + 8); }

static inline int has_batch(const fuzz_input *in, int64_t at) {
    return in->size - at >= 26 && batch_length_at(in, at) >= 14 && batch_length_at(in, at) <= in->size - at - 12;
}

/* Where some batch starts, as the lengths say; or anywhere, when there is none. */
static inline int64_t random_start(const fuzz_input *in) {
    int64_t starts[256], count = 0;
    for (int64_t at = 0; count < 256 && has_batch(in, at); at += 12 + batch_length_at(in, at)) starts[count++] = at;
    return count ? starts[random_below(count)] : random_below(in->size);
}

static inline int64_t interesting(void) {
    static const int64_t values[] = {0,    1,     2,     3,         4,         5,         6,         7,
                                     13,   14,    22,    48,        49,        60,        61,        63,
                                     64,   127,   128,   255,       256,       8191,      8192,      32767,
                                     1000, 65535, 65536, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, 0x80808080};
    int64_t value = values[random_below(sizeof values / sizeof *values)];
    return random_below(2) || value == INT64_MIN ? value : -value;
}

static inline void set_at(fuzz_input *in, int64_t at, int64_t value, int64_t width) {
    if (at + width <= in->size) set_big_endian(in->at + at, value, (int)width);
}

static inline void bend_header(fuzz_input *in) {
    static const int8_t fields[][2] = {{0, 8},  {8, 4},  {12, 4}, {16, 1}, {17, 4}, {21, 2}, {23, 4}, {27, 8},
                                       {35, 8}, {43, 8}, {51, 2}, {53, 4}, {57, 4}, {17, 1}, {18, 4}, {26, 4}};
    int64_t field = random_below(sizeof fields / sizeof *fields);
    set_at(in, random_start(in) + fields[field][0], interesting(), fields[field][1]);
}

/* One more or one less: lengths and counts that nearly fit. */
static inline void nudge(fuzz_input *in) {
    static const int8_t fields[] = {8, 57, 23, 18, 26};
    int64_t at = random_start(in) + fields[random_below(5)];
    if (at + 4 <= in->size) set_at(in, at, (int64_t)kr_load_int32(in->at + at) + random_below(7) - 3, 4);
}

static inline void resize_batch(fuzz_input *in) {
    int64_t at = random_start(in);
    if (!has_batch(in, at)) return;
    int64_t length = batch_length_at(in, at), place = 21 + random_below(length - 8), more = random_below(12);
    uint8_t noise[12];
    for (int64_t i = 0; i < more; i++) noise[i] = (uint8_t)(random_below(2) ? random_next() : 0x80);
    int64_t drop = random_below(length + 12 - place + 1 < 12 ? length + 12 - place + 1 : 12);
    int64_t size = in->size;
    replace(in, at + place, drop, noise, more);
    if (random_below(4)) set_at(in, at + 8, length + in->size - size, 4);
}

static inline void mutate_once(fuzz_input *in, const corpus *c) {
    if (!in->size) {
        piece b = random_batch(c);
        replace(in, 0, 0, b.at, b.size);
        return;
    }
    int64_t at = random_below(in->size), left = in->size - at;
    piece other = random_batch(c);
    switch (random_below(14)) {
    case 0:
    case 1:
        in->at[at] ^= (uint8_t)(1u << random_below(8));
        break;
    case 2:
        in->at[at] = (uint8_t)interesting();
        break;
    case 3:
        set_at(in, at, interesting(), 1ll << random_below(4));
        break;
    case 4:
    case 5:
        bend_header(in);
        break;
    case 6:
    case 7:
        nudge(in);
        break;
    case 8:
    case 9:
        resize_batch(in);
        break;
    case 10: /* another batch, whole or in part, between, or over, what is there */
        replace(in, random_below(2) ? random_start(in) : at, 0, other.at,
                random_below(3) ? other.size : random_below(other.size));
        break;
    case 11: /* the same bytes once more */
        replace(in, random_start(in), 0, in->at + at, random_below(left + 1 < 2000 ? left + 1 : 2000));
        break;
    case 12:
        in->size = at;
        break;
    default: { /* noise or zeros, between batches or at the end */
        uint8_t noise[100];
        int64_t n = random_below(100), zeros = random_below(2);
        for (int64_t i = 0; i < n; i++) noise[i] = zeros ? 0 : (uint8_t)random_next();
        replace(in, random_below(2) ? in->size : random_start(in), 0, noise, n);
    }
    }
}

/* The crcs of all batches, so that what is behind them is looked at. */
static inline void mend_crcs(fuzz_input *in) {
    for (int64_t at = 0; has_batch(in, at); at += 12 + batch_length_at(in, at)) {
        const uint8_t *p = in->at + at, *end = p + 12 + batch_length_at(in, at);
        if ((int8_t)p[16] < 2)
            set_at(in, at + 12, kr_crc32(0, p + 16, (size_t)(end - p - 16)), 4);
        else if (end - p >= 61)
            set_at(in, at + 17, kr_crc32c(0, p + 21, (size_t)(end - p - 21)), 4);
    }
}

static inline void choose_part_of_file(fuzz_input *in, const corpus *c) {
    piece file = c->files[random_below(c->files_count)];
    replace(in, 0, 0, file.at, file.size < MOST_INPUT / 2 ? file.size : MOST_INPUT / 2);
    if (random_below(8) == 0 || !in->size) return;
    int64_t from = random_start(in), to = from;
    for (int64_t n = 1 + random_below(5); n > 0 && has_batch(in, to); n--) to += 12 + batch_length_at(in, to);
    if (to > from) {
        in->size = to;
        replace(in, 0, from, 0, 0);
    }
}

/* A few sound batches, mostly small and neighbours; sometimes a part of a file, with what is odd in it. */
static inline void choose_input(fuzz_input *in, const corpus *c) {
    in->size = 0;
    if (random_below(64) == 0) {
        choose_part_of_file(in, c);
        return;
    }
    int64_t from = random_below(c->batches_count);
    for (int tries = 0; tries < 3 && c->batches[from].size > USUAL_BATCH; tries++)
        from = random_below(c->batches_count);
    int64_t to = from + 1 + random_below(3);
    for (int64_t i = from; i < to && i < c->batches_count; i++)
        replace(in, in->size, 0, c->batches[i].at, c->batches[i].size);
}

static inline void copy_input(fuzz_input *to, const fuzz_input *from) {
    memcpy(to->at, from->at, (size_t)from->size);
    to->size = from->size;
}

/* Damages an input; half of the time its crcs are right afterwards. */
static inline void mutate(fuzz_input *in, const corpus *c) {
    for (int64_t n = random_below(6); n > 0; n--) mutate_once(in, c);
    if (random_below(2)) mend_crcs(in);
}

#endif
