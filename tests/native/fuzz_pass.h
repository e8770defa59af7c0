/* One pass of the decoder over an input, in chunks of any size, with a check of all that must hold on the way; and what
 * came out of it, as one hash a column, so that passes can be compared. */
#ifndef KRAFTLOG_TESTS_FUZZ_PASS_H
#define KRAFTLOG_TESTS_FUZZ_PASS_H

#include "fuzz_mutate.h"
#include "record/decoder.h"
#include "room.h"

enum { COLUMNS = 7, MOST_STRETCHES = 4096 };

typedef struct {
    kr_decoder d;                 /* its settings and bounds */
    int64_t rows, bytes, headers; /* of a chunk */
    uint64_t salt;                /* of what compressed batches hold */
} pass;

/* The rows of one batch. */
typedef struct {
    int64_t position, end;
    uint64_t hash;
} stretch;

typedef struct {
    uint64_t column[COLUMNS]; /* in the order of enum kr_want */
    uint64_t faults_hash;
    int64_t rows, faults, torn_at;
    int strays; /* faults behind which the decoder and a scanner may go on at different places */
    int64_t stretches_count;
    stretch stretches[MOST_STRETCHES]; /* the last field, as most of it is never looked at */
} outcome;

static inline uint64_t hash_int(uint64_t hash, int64_t value) {
    hash = (hash ^ (uint64_t)value) * 0x9E3779B97F4A7C15ull;
    return hash ^ hash >> 29;
}

static inline uint64_t hash_value(uint64_t hash, const kr_binary_column *c, int64_t i) {
    hash = hash_int(hash, room_bit(c->validity, i) ? c->ends[i + 1] - c->ends[i] : -1);
    for (int64_t k = c->ends[i]; k < c->ends[i + 1]; k += 8) {
        int64_t word = 0, left = c->ends[i + 1] - k;
        memcpy(&word, c->data + k, (size_t)(left < 8 ? left : 8));
        hash = hash_int(hash, word);
    }
    return hash;
}

static inline uint64_t hash_headers(uint64_t hash, const kr_columns *c, int64_t row) {
    hash = hash_int(hash, c->headers.ends[row + 1] - c->headers.ends[row]);
    for (int64_t i = c->headers.ends[row]; i < c->headers.ends[row + 1]; i++)
        hash = hash_value(hash_value(hash, &c->headers.key, i), &c->headers.value, i);
    return hash;
}

static inline void hash_row(uint64_t *column, const kr_columns *c, int64_t i, uint32_t want) {
    if (want & KR_WANT_KEY) column[0] = hash_value(column[0], &c->key, i);
    if (want & KR_WANT_VALUE) column[1] = hash_value(column[1], &c->value, i);
    if (want & KR_WANT_OFFSET) column[2] = hash_int(column[2], c->offset[i]);
    if (want & KR_WANT_TIMESTAMP)
        column[3] = hash_int(column[3], room_bit(c->timestamp.validity, i) ? c->timestamp.values[i] : INT64_MIN);
    if (want & KR_WANT_TIMESTAMP_MS) column[4] = hash_int(column[4], c->timestamp_ms[i]);
    if (want & KR_WANT_HEADERS) column[5] = hash_headers(column[5], c, i);
    if (want & KR_WANT_CONTROL_TYPE) column[6] = hash_int(column[6], c->control_type[i]);
}

static inline void take_chunk(outcome *o, const kr_columns *c, uint32_t want) {
    int64_t row = 0;
    room_check(c, want);
    for (int64_t i = 0; i < c->batches; i++) {
        uint64_t own[COLUMNS] = {0}, hash = 0;
        for (int64_t n = c->batch[i].rows; n > 0; n--, row++) {
            hash_row(o->column, c, row, want);
            hash_row(own, c, row, want);
        }
        for (int k = 0; k < COLUMNS; k++) hash = hash_int(hash, (int64_t)own[k]);
        if (o->stretches_count < MOST_STRETCHES)
            o->stretches[o->stretches_count++] = (stretch){c->batch[i].position, kr_batch_end(&c->batch[i]), hash};
    }
    o->rows += c->rows;
}

static inline void take_faults(outcome *o, kr_decoder *d) {
    CHECK_TRUE(d->faults_count <= KR_MAX_FAULTS);
    for (int i = 0; i < d->faults_count; i++) {
        const kr_fault *f = &d->faults[i];
        const kr_error *e = &f->error;
        CHECK_TRUE(e->status >= KR_BAD_BATCH_LENGTH && e->status <= KR_BAD_WRAPPER_OFFSET);
        CHECK_TRUE(f->batch_position >= 0 && f->batch_position < d->input.size);
        CHECK_TRUE(e->record_index >= -1 && e->position >= 0 && f->skipped >= 0 && e->lost >= KR_REST);
        if (e->record_index < 0 && e->status != KR_MISSING_RECORDS && e->status != KR_TRAILING_BYTES) {
            CHECK_INT(f->batch_position, e->status == KR_BAD_VALUE_LENGTH || e->status == KR_TRUNCATED_FIELD ||
                                                 e->status == KR_BAD_KEY_LENGTH
                                             ? f->batch_position
                                             : e->position);
            CHECK_TRUE(f->skipped > 0 && f->batch_position + f->skipped <= d->input.size);
        }
        o->strays += e->status == KR_BAD_RECORDS_COUNT || e->status == KR_UNKNOWN_COMPRESSION ||
                     (e->record_index < 0 && (e->status == KR_BAD_VALUE_LENGTH || e->status == KR_TRUNCATED_FIELD ||
                                              e->status == KR_BAD_KEY_LENGTH));
        const int64_t fields[] = {e->status, e->record_index,   e->position,    e->expected, e->actual,
                                  e->lost,   f->batch_position, f->base_offset, f->skipped};
        for (size_t k = 0; k < sizeof fields / sizeof *fields; k++)
            o->faults_hash = hash_int(o->faults_hash, fields[k]);
    }
    o->faults += d->faults_count;
    d->faults_count = 0;
}

/* What a compressed batch is said to hold: damaged records of some other batch, always the same for the same batch.
 * Returns 0 where it is said not to decompress. */
static inline int plain_bytes(fuzz_input *plain, const corpus *c, const kr_batch_header *h, uint64_t salt) {
    uint64_t state = random_state;
    random_state = hash_int(hash_int(salt, h->position), h->crc) | 1;
    random_next();
    int ok = random_below(8) != 0;
    plain->size = 0;
    for (int tries = 0; tries < 20; tries++) {
        piece b = random_batch(c);
        int is_legacy = b.at[KR_MAGIC_AT] < 2;
        if (is_legacy != (h->magic < 2)) continue;
        if (!is_legacy && tries < 10 && kr_load_int32(b.at + KR_RECORDS_COUNT_AT) != h->records_count) continue;
        int64_t skip = is_legacy ? 0 : KR_RECORD_BATCH_OVERHEAD;
        replace(plain, plain->size, 0, b.at + skip, b.size - skip);
        if (!is_legacy || random_below(3) == 0) break;
    }
    if (plain->size) /* bits only: the seeds of mutate_once are whole batches */
        for (int64_t n = random_below(4) - 1; n > 0; n--)
            plain->at[random_below(plain->size)] ^= (uint8_t)(1u << random_below(8));
    if (random_below(10) == 0) plain->size = random_below(plain->size + 1);
    random_state = state;
    return ok;
}

static inline void open_chunk(kr_decoder *d, int64_t rows, int64_t size, int64_t headers) {
    room_free(&d->columns);
    d->columns = room_make(rows, size, headers, d->want);
}

static inline int offer_plain(kr_decoder *d, const corpus *c, uint64_t salt) {
    static fuzz_input plain;
    CHECK_TRUE(d->payload >= d->input.start && d->payload_size >= 0 &&
               d->payload_size <= d->input.start + d->input.size - d->payload);
    if (!plain_bytes(&plain, c, &d->batch, salt)) {
        kr_decompression_failed(d, KR_DECOMPRESSION_FAILED, 0);
        return KR_OK;
    }
    uint8_t *p = room_block(plain.size + KR_PADDING);
    memcpy(p, plain.at, (size_t)plain.size);
    memset(p + plain.size, (int)salt & 0xff, KR_PADDING);
    int status = kr_decode_decompressed(d, p, plain.size);
    free(p);
    return status;
}

static inline void run_pass(const pass *settings, const corpus *c, outcome *o) {
    static kr_decoder d;
    int status = KR_OK;
    int64_t grown_at = -1;
    d = settings->d;
    memset(o, 0, offsetof(outcome, stretches));
    open_chunk(&d, settings->rows, settings->bytes, settings->headers);
    while (status != KR_END && !failures) {
        int64_t position = d.position;
        status = kr_decoder_run(&d);
        if (status == KR_NEEDS_DECOMPRESSION) status = offer_plain(&d, c, settings->salt);
        CHECK_TRUE(d.position >= position && d.position <= d.input.size);
        int64_t faults = d.faults_count;
        take_faults(o, &d);
        if (status == KR_NEEDS_ROOM) {
            CHECK_TRUE(grown_at < d.position && d.columns.bytes == 0 && d.columns.rows == 0);
            open_chunk(&d, d.needs_bytes / KR_SMALLEST_RECORD + 2, d.needs_bytes, d.needs_bytes / 2 + 1);
            grown_at = d.position;
        } else if (status != KR_OK) {
            CHECK_TRUE(status == KR_END || (status == KR_CHUNK_FULL && (d.columns.bytes || faults)));
            take_chunk(o, &d.columns, d.want);
            open_chunk(&d, settings->rows, settings->bytes, settings->headers);
        }
    }
    o->torn_at = d.torn_at;
    CHECK_TRUE(o->torn_at >= -1 && o->torn_at < (d.input.size ? d.input.size : 1));
    room_free(&d.columns);
}

#endif
