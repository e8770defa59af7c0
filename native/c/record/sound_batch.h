/* Batches that need no second look, a record at a time: for callers that make an object of each record.
 *
 * What is not plain and sound (compressed, of an old format, damaged, cut off) is left to the decoder as a whole: here
 * it is neither judged nor passed.
 */
#ifndef KRAFTLOG_RECORD_SOUND_BATCH_H
#define KRAFTLOG_RECORD_SOUND_BATCH_H

#include "record/decoder.h"

enum kr_sound_status { KR_SOUND_END, KR_SOUND_RECORDS, KR_SOUND_PASSED, KR_SOUND_NOT };

typedef struct {
    kr_input input;
    int64_t position;
    int64_t next_offset;      /* behind the last batch that was passed; -1: none yet */
    const kr_decoder *filter; /* bounds and aborted transactions; NULL: all batches are wanted */
    int ignores_crc;
} kr_sound;

typedef struct {
    const uint8_t *p, *end;
    int32_t left;
} kr_sound_records;

static inline void kr_sound_pass(kr_sound *s, const kr_batch_header *h) {
    s->position = kr_batch_end(h);
    s->next_offset = kr_last_offset(h) + 1;
}

/* How many bytes the batch at s->position says it has; 0 where that cannot be read. */
static inline int64_t kr_sound_size(const kr_sound *s) {
    if (s->input.size - s->position < KR_LOG_OVERHEAD) return 0;
    return (int64_t)kr_load_int32(s->input.start + s->position + KR_LENGTH_AT) + KR_LOG_OVERHEAD;
}

/* Looks at the batch at s->position. KR_SOUND_RECORDS: its header is whole and its crc matches, `r` stands before its
 * records. KR_SOUND_PASSED: all of them are out of bounds or aborted. KR_SOUND_END. KR_SOUND_NOT: anything else. */
static inline int kr_sound_open(kr_sound *s, kr_batch_header *h, kr_sound_records *r) {
    kr_error e;
    if (s->position >= s->input.size) return KR_SOUND_END;
    if (kr_header_read(&s->input, s->position, h, &e) != KR_OK || !kr_has_next_offset(h)) return KR_SOUND_NOT;
    if (h->magic != 2 || kr_compression(h) || h->records_count < 0) return KR_SOUND_NOT;
    if (!s->ignores_crc && kr_batch_crc(&s->input, h) != h->crc) return KR_SOUND_NOT;
    if (s->filter && (kr_is_aborted(s->filter, h) || kr_is_outside(s->filter, h))) {
        kr_sound_pass(s, h);
        return KR_SOUND_PASSED;
    }
    r->p = s->input.start + h->position + KR_RECORD_BATCH_OVERHEAD;
    r->end = s->input.start + kr_batch_end(h);
    r->left = h->records_count;
    return KR_SOUND_RECORDS;
}

/* The next record; 0 when there is none, or when it is not sound. */
static inline int kr_sound_next(kr_sound_records *s, kr_record *r) {
    if (s->left == 0) return 0;
    kr_reader in = kr_reader_make(s->p, s->p, s->end);
    kr_record_read(&in, r);
    if (in.error.status != KR_OK) return 0;
    s->p = r->end;
    s->left--;
    return 1;
}

/* Whether all records have been read, and nothing follows them. */
static inline int kr_sound_is_done(const kr_sound_records *s) { return s->left == 0 && s->p == s->end; }

static inline int64_t kr_record_offset(const kr_batch_header *h, const kr_record *r) {
    return kr_add_wrapping(h->base_offset, r->offset_delta);
}

static inline int64_t kr_record_timestamp(const kr_batch_header *h, const kr_record *r) {
    return h->attributes & KR_TIMESTAMP_TYPE_BIT ? h->max_timestamp
                                                 : kr_add_wrapping(h->base_timestamp, r->timestamp_delta);
}

#endif
