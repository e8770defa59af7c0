/* Decoding a stretch of input into columns, batch after batch.
 *
 * kr_decoder_run goes on until the columns are full, the stretch ends, the input cannot be read, or a batch must be
 * decompressed, which the caller does. Faults do not stop it: each one is kept as a kr_fault, and decoding goes on
 * behind it.
 */
#ifndef KRAFTLOG_RECORD_DECODER_H
#define KRAFTLOG_RECORD_DECODER_H

#include "batch/step.h"
#include "record/legacy.h"
#include "text/search.h"

typedef struct {
    kr_error error;
    int64_t batch_position;
    int64_t base_offset;
    int64_t skipped; /* bytes; of a compressed batch, of its plain bytes when they are what is bad */
} kr_fault;

enum {
    KR_MAX_FAULTS = 16,
    KR_FAULTS_OF_A_BATCH = 2,
    KR_ROWS_OF_A_BYTE = 16 /* of a compressed batch, at most: memory for more is not allocated by a header alone */
};

/* An aborted transaction: transactional batches of the producer that start at bytes [first, marker), or whose base
 * offsets are within that. */
typedef struct {
    int64_t producer_id, first, marker;
} kr_aborted;

typedef struct {
    kr_input input;
    int64_t position, end; /* the next batch; batches that start at `end` or behind are not read */
    uint32_t want;
    int8_t check_crc;
    int8_t include_control;
    int8_t strict;                    /* the rows before the first fault, and no more */
    int64_t start_offset, end_offset; /* batches wholly outside [start_offset, end_offset) are passed over */
    int64_t start_timestamp;          /* as are batches whose max_timestamp is less */
    /* hidden from a read_committed reader: batches of these, which are in the order of their fields, */
    const kr_aborted *aborted;
    int64_t aborted_count;
    int8_t aborted_by_offset;
    int8_t follows; /* whether transactional batches may be decoded only before `known` (record/follow.h) */
    int64_t known;
    int8_t is_hidden; /* the batch at `position`, if it is decoded all the same, for want of another way behind it */
    const kr_texts *texts; /* 0, or batches whose plain bytes do not hold them are only checked */
    kr_columns columns;
    kr_fault faults[KR_MAX_FAULTS];
    int32_t faults_count;
    int64_t torn_at;        /* -1: none seen */
    int64_t hidden_records; /* of aborted transactions, within the bounds of offsets */
    int64_t next_offset;    /* behind the last batch that was passed, decoded or not; -1: none yet */
    int64_t needs_bytes;    /* with KR_NEEDS_ROOM: what the batch at `position` may take, */
    int64_t needs_rows;     /* how many records it may hold, */
    int64_t needs_input;    /* what it takes of the input, */
    int8_t needs_copies;    /* and whether its bytes do not stay where they are */
    /* with KR_NEEDS_DECOMPRESSION */
    kr_batch_header batch;
    const uint8_t *payload;
    int64_t payload_size;
} kr_decoder;

static inline void kr_note_fault(kr_decoder *d, const kr_error *e, int64_t position, int64_t base_offset,
                                 int64_t skipped) {
    kr_fault *f = &d->faults[d->faults_count++];
    f->error = *e;
    f->batch_position = position;
    f->base_offset = base_offset;
    f->skipped = skipped;
}

/* A batch whose header is whole is left out, as e says: it is noted and the decoder goes on behind it. */
static inline void kr_leave_out(kr_decoder *d, const kr_batch_header *h, kr_error *e) {
    int64_t next;
    int status = kr_give_up_batch(&d->input, h, e, &next);
    if (status == KR_TORN_TAIL)
        d->torn_at = h->position;
    else
        kr_note_fault(d, e, h->position, h->base_offset, next - h->position);
    d->position = next;
}

/* The decoder is done with a batch whose header is believed. */
static inline void kr_pass(kr_decoder *d, const kr_batch_header *h) {
    d->position = kr_batch_end(h);
    d->next_offset = kr_last_offset(h) + 1;
}

static inline int kr_is_outside(const kr_decoder *d, const kr_batch_header *h) {
    if (h->max_timestamp < d->start_timestamp && h->max_timestamp != -1) return 1;
    int64_t last = kr_last_offset(h);
    if (last < h->base_offset) last = h->base_offset;
    int is_wrapper = h->magic < 2 && kr_compression(h);
    int bounded = d->end_offset != INT64_MAX; /* else the largest offset is within it as well */
    return last < d->start_offset || (bounded && !is_wrapper && h->base_offset >= d->end_offset);
}

/* How many records of a batch are within the bounds, by its header. */
static inline int64_t kr_records_inside(const kr_decoder *d, const kr_batch_header *h) {
    if (h->records_count < 0 || kr_is_outside(d, h)) return 0;
    int64_t first = h->base_offset > d->start_offset ? h->base_offset : d->start_offset;
    int64_t last = kr_last_offset(h);
    if (d->end_offset <= last) last = d->end_offset - 1;
    int64_t most = last - first + 1; /* fewer when a cleaner has removed some */
    return most < h->records_count ? most : h->records_count;
}

/* Whether it may begin, go on with or end a transaction. */
static inline int kr_is_of_transaction(const kr_batch_header *h) {
    return h->magic >= 2 && h->attributes & (KR_TRANSACTIONAL_BIT | KR_CONTROL_BIT);
}

/* By offset as Kafka's consumer decides it: a transaction that begins inside of a batch hides all of that. */
static inline int kr_is_aborted(const kr_decoder *d, const kr_batch_header *h) {
    int is_data = (h->attributes & (KR_TRANSACTIONAL_BIT | KR_CONTROL_BIT)) == KR_TRANSACTIONAL_BIT;
    if (!d->aborted_count || h->magic < 2 || !is_data) return 0;
    int64_t at = d->aborted_by_offset ? h->base_offset : h->position;
    int64_t end = d->aborted_by_offset ? kr_last_offset(h) : at;
    if (end < at) end = at;
    int64_t low = 0, high = d->aborted_count; /* the first that lies behind the batch */
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        const kr_aborted *t = &d->aborted[middle];
        if (t->producer_id > h->producer_id || (t->producer_id == h->producer_id && t->first > end))
            high = middle;
        else
            low = middle + 1;
    }
    if (low == 0) return 0;
    const kr_aborted *t = &d->aborted[low - 1];
    return t->producer_id == h->producer_id && at < t->marker;
}

/* Notes the room that a batch of so many plain bytes needs, and returns whether the columns must be taken first.
 * `bytes` 0 in the columns means that they are empty. */
static inline int kr_ask_for_room(kr_decoder *d, const kr_batch_header *h, int64_t bytes) {
    d->needs_bytes = bytes;
    d->needs_input = kr_batch_end(h) - h->position;
    d->needs_copies = kr_compression(h) || d->input.move;
    d->needs_rows = bytes / KR_SMALLEST_RECORD + 1;
    if (h->magic >= 2 && h->records_count < d->needs_rows) d->needs_rows = h->records_count;
    return d->columns.bytes == 0 ? KR_NEEDS_ROOM : KR_CHUNK_FULL;
}

static inline int kr_room(kr_decoder *d, const kr_batch_header *h, int64_t bytes) {
    const kr_columns *c = &d->columns;
    int status = kr_ask_for_room(d, h, bytes);
    int64_t max_bytes = c->max_bytes < INT32_MAX || c->bytes == 0 ? c->max_bytes : INT32_MAX; /* Arrow's ends */
    int fits = c->bytes + bytes <= max_bytes && c->rows + d->needs_rows <= c->max_rows && c->batches < c->max_batches;
    int is_copied = (d->want & KR_VIEWS) && d->needs_copies;
    return fits && (!is_copied || c->max_copied) ? KR_OK : status;
}

/* Where the next header is read to: where it stays if the batch has rows, so that it is not copied, or into `other`. */
KR_ALWAYS_INLINE kr_batch_header *kr_next_header(const kr_columns *c, kr_batch_header *other) {
    return c->batches < c->max_batches ? &c->batch[c->batches] : other;
}

KR_ALWAYS_INLINE void kr_keep_batch(kr_columns *c, const kr_batch_header *h) {
    if (h != &c->batch[c->batches]) c->batch[c->batches] = *h;
    c->batches++;
}

/* The rows of the batch are in the columns: keep them, or take them back if they are not to be seen. */
KR_ALWAYS_INLINE void kr_keep_rows(kr_decoder *d, kr_batch_header *h, const kr_columns *before, int64_t bytes) {
    kr_columns *c = &d->columns;
    if (d->is_hidden) d->hidden_records += c->rows - before->rows;
    if ((kr_is_control(h) && !d->include_control) || d->is_hidden) kr_columns_return_to(c, before, d->want);
    h->rows = (int32_t)(c->rows - before->rows);
    c->bytes += bytes;
    if (h->rows || (d->want & KR_EVERY_BATCH)) kr_keep_batch(c, h);
}

/* What a walk over the records came to: a fault is noted, and KR_NEEDS_ROOM takes the batch back. */
KR_ALWAYS_INLINE int kr_settle(kr_decoder *d, kr_batch_header *h, const kr_columns *before, int64_t bytes, int status,
                               const kr_error *e) {
    if (status == KR_NEEDS_ROOM) {
        kr_columns_return_to(&d->columns, before, d->want);
        return kr_ask_for_room(d, h, bytes);
    }
    if (status != KR_OK) kr_note_fault(d, e, h->position, h->base_offset, e->lost);
    kr_keep_rows(d, h, before, bytes);
    kr_pass(d, h);
    return KR_OK;
}

/* Where views of a batch of so many bytes point: into a buffer, but not into the window of a file. 0: it is too far
 * from the first batch in the columns for the 32 bits of an offset. */
static inline int kr_place_views(kr_decoder *d, const kr_batch_header *h, int64_t bytes) {
    kr_columns *c = &d->columns;
    c->view_from = 0;
    if (!(d->want & KR_VIEWS) || d->input.move) return 1;
    if (c->bytes == 0) c->view_origin = h->position;
    c->view_from = d->input.start + c->view_origin;
    return h->position + bytes - c->view_origin <= INT32_MAX || c->bytes == 0;
}

/* Batches of one record each, as controllers write them, one after the other, the first of which begins in memory: with
 * room in the columns, not compressed and no control batches. Stops at one that is odd in any way, with nothing done
 * for it: nothing is put out before all of a batch is known to be sound, so nothing has to be taken back. */
KR_ALWAYS_INLINE void kr_decode_ones(kr_decoder *d, const uint32_t want) {
    kr_columns *c = &d->columns;
    kr_input *in = &d->input;
    const int64_t readable = in->until - (in->spare < KR_PADDING ? KR_PADDING - in->spare : 0);
    const int64_t max_bytes = c->max_bytes < INT32_MAX ? c->max_bytes : INT32_MAX;
    const int64_t first = d->position;
    int64_t last = first;
    if ((want & KR_VIEWS) && in->move && !c->max_copied) return;
    while (d->position < d->end && c->batches < c->max_batches && c->rows < c->max_rows) {
        kr_record r;
        kr_batch_header *h = &c->batch[c->batches];
        const int64_t position = d->position, rows = c->rows;
        const uint8_t *p = in->start + position;
        if (KR_UNLIKELY(readable - position < KR_RECORD_BATCH_OVERHEAD)) break;
        const int64_t size = (int64_t)kr_load_int32(p + KR_LENGTH_AT) + KR_LOG_OVERHEAD;
        const uint8_t *end = p + size;
        if (p[KR_MAGIC_AT] != 2 || kr_load_int32(p + KR_RECORDS_COUNT_AT) != 1) break;
        if (KR_UNLIKELY(size <= KR_RECORD_BATCH_OVERHEAD || size > readable - position)) break;
        kr_header_load_front(p, position, h);
        kr_header_load_v2(p, h);
        if (KR_UNLIKELY(h->attributes & (KR_COMPRESSION_MASK | KR_CONTROL_BIT) || c->bytes + size > max_bytes)) break;
        if (KR_UNLIKELY(!kr_has_next_offset(h) || kr_is_outside(d, h))) break;
        if (KR_UNLIKELY(d->follows && kr_is_of_transaction(h))) break;
        if ((want & KR_VIEWS) && !kr_place_views(d, h, size)) break;
        p += KR_RECORD_BATCH_OVERHEAD;
        if (KR_UNLIKELY(!kr_record_alone(p, end, &r) && !(kr_record_fast(p, end, &r) && r.end == end))) break;
        p -= KR_RECORD_BATCH_OVERHEAD;
        if (KR_UNLIKELY(kr_crc32c(0, p + KR_ATTRIBUTES_AT, (size_t)(size - KR_ATTRIBUTES_AT)) != h->crc)) break;
        if (KR_UNLIKELY(!kr_record_put(c, h, &r, 1, want))) break;
        h->crc_ok = 1;
        h->rows = (int32_t)(c->rows - rows);
        c->bytes += size;
        c->batches += h->rows || (want & KR_EVERY_BATCH);
        kr_pass(d, h);
        last = position;
    }
    if (d->position != first && in->move) kr_input_see(in, last);
}

/* Whether a batch of one record is next, as far as what is in memory tells. */
KR_ALWAYS_INLINE int kr_is_alone(const kr_decoder *d) {
    const kr_input *in = &d->input;
    if (d->position < in->from || in->until - d->position < KR_RECORD_BATCH_OVERHEAD) return 0;
    const uint8_t *p = in->start + d->position;
    return p[KR_MAGIC_AT] == 2 && kr_load_int32(p + KR_RECORDS_COUNT_AT) == 1 && d->check_crc && !d->aborted_count;
}

static __attribute__((noinline)) void kr_decode_alone(kr_decoder *d) {
    switch (d->want) {
    case KR_WANT_VALUES:
        kr_decode_ones(d, KR_WANT_VALUES);
        break;
    case KR_WANT_MARKERS:
        kr_decode_ones(d, KR_WANT_MARKERS);
        break;
    default:
        kr_decode_ones(d, d->want);
    }
}

/* The batch at d->position, neither compressed nor torn. */
static inline int kr_decode_plain(kr_decoder *d, kr_batch_header *h) {
    kr_error e;
    int status;
    int64_t bytes = kr_batch_end(h) - h->position;
    kr_columns *c = &d->columns;
    if ((status = kr_room(d, h, bytes)) != KR_OK) return status;
    if (!kr_place_views(d, h, bytes)) return KR_CHUNK_FULL;
    const kr_columns before = *c;
    const uint8_t *start = d->input.start, *p = start + h->position, *end = p + bytes;
    kr_walk w = {p + KR_RECORD_BATCH_OVERHEAD,
                 end,
                 start + d->input.until + d->input.spare - KR_PADDING,
                 0,
                 h->records_count,
                 {d->check_crc ? p + KR_ATTRIBUTES_AT : end, end, 0},
                 d->strict};
    if (h->magic >= 2)
        status = kr_records_decode(&w, c, h, start, &e, d->want);
    else
        status = kr_legacy_decode(c, h, start, &e, d->want);
    if (d->check_crc) {
        uint32_t crc = h->magic >= 2 ? kr_crc32c(w.ahead.crc, w.ahead.pos, (size_t)(end - w.ahead.pos))
                                     : kr_batch_crc(&d->input, h);
        h->crc_ok = crc == h->crc;
        if (!h->crc_ok) {
            kr_columns_return_to(c, &before, d->want);
            kr_fail(&e, KR_BAD_CRC, h->position, h->crc, crc);
            kr_leave_out(d, h, &e);
            return KR_OK;
        }
    }
    return kr_settle(d, h, &before, bytes, status, &e);
}

/* Called after KR_NEEDS_DECOMPRESSION when the payload could not be decompressed. */
static inline void kr_decompression_failed(kr_decoder *d, int status, int64_t expected) {
    kr_error e;
    kr_fail(&e, status, d->batch.position, expected, -1);
    kr_pass(d, &d->batch);
    kr_note_fault(d, &e, d->batch.position, d->batch.base_offset, d->position - d->batch.position);
}

/* Called by the owner of the decoder after KR_NEEDS_DECOMPRESSION with the plain bytes of d->batch, which must be
 * followed by KR_PADDING readable bytes. */
static inline int kr_decode_decompressed(kr_decoder *d, const uint8_t *data, int64_t size) {
    kr_error e;
    kr_batch_header *h = &d->batch;
    const kr_columns before = d->columns;
    int64_t bytes = size + KR_RECORD_BATCH_OVERHEAD;
    if (size > INT32_MAX) { /* more than Arrow's ends can count, and than any batch holds */
        kr_decompression_failed(d, KR_DECOMPRESSION_LIMIT, INT32_MAX);
        return KR_OK;
    }
    int status = kr_room(d, h, bytes);
    if (status != KR_OK) return status;
    d->columns.view_from = 0; /* the plain bytes do not stay */
    kr_walk w = {data, data + size, data + size, 0, h->records_count, {data + size, data + size, 0}, d->strict};
    if (h->magic >= 2)
        status = kr_records_decode(&w, &d->columns, h, data, &e, d->want);
    else
        status = kr_inner_decode(&d->columns, h, data, data + size, d->check_crc, d->strict, &e, d->want);
    return kr_settle(d, h, &before, bytes, status, &e);
}

/* Passes over a batch that holds none of what is searched for, with what is wrong with its records: `w` is walked into
 * no columns. */
static __attribute__((noinline)) void kr_pass_judged(kr_decoder *d, const kr_batch_header *h, kr_walk *w,
                                                     const uint8_t *start) {
    kr_columns none = {0};
    kr_error e;
    int status, is_wrapper = h->magic < 2 && kr_compression(h);
    if (is_wrapper)
        status = kr_inner_decode(&none, h, w->p, w->end, d->check_crc, d->strict, &e, 0);
    else if (h->magic < 2)
        status = kr_legacy_decode(&none, h, start, &e, 0);
    else
        status = kr_records_walk(w, &none, h, start, &e, 0);
    if (status != KR_OK) kr_note_fault(d, &e, h->position, h->base_offset, e.lost);
    kr_pass(d, h);
}

/* Passes over the batch at d->position, not compressed and in memory, if it holds none of what is searched for; else
 * returns 0, as of one whose crc does not match: it is decoded, which says so. */
static inline int kr_pass_without_texts(kr_decoder *d, const kr_batch_header *h) {
    const uint8_t *start = d->input.start, *p = start + h->position, *end = start + kr_batch_end(h);
    int64_t before = h->magic >= 2 ? KR_RECORD_BATCH_OVERHEAD : KR_LOG_OVERHEAD;
    if (kr_holds_texts(p + before, end - p - before, d->texts)) return 0;
    if (d->check_crc && kr_batch_crc(&d->input, h) != h->crc) return 0;
    kr_walk w = {p + before,    end,      start + d->input.until + d->input.spare - KR_PADDING, 0, h->records_count,
                 {end, end, 0}, d->strict};
    kr_pass_judged(d, h, &w, start);
    return 1;
}

/* The same for the plain bytes of d->batch, whose crc has been compared. */
static inline int kr_pass_decompressed(kr_decoder *d, const uint8_t *data, int64_t size) {
    if (!d->texts || size > INT32_MAX || kr_holds_texts(data, size, d->texts)) return 0;
    const uint8_t *end = data + size;
    kr_walk w = {data, end, end, 0, d->batch.records_count, {end, end, 0}, d->strict};
    kr_pass_judged(d, &d->batch, &w, data);
    return 1;
}

/* Whether the header of a data batch tells its rows in the wanted columns: each of its offsets has a record, and
 * timestamps are those of the broker, one for all. After compaction offsets are missing, and the records say which. */
static inline int kr_header_tells(const kr_decoder *d, const kr_batch_header *h) {
    if (!(d->want & KR_FROM_HEADERS)) return 0;
    uint32_t of_records = d->want & (KR_WANT_ALL | KR_ONLY_MARKERS) & ~(uint32_t)KR_HEADER_COLUMNS;
    if (!(h->attributes & KR_TIMESTAMP_TYPE_BIT)) of_records |= d->want & (KR_WANT_TIMESTAMP | KR_WANT_TIMESTAMP_MS);
    if (of_records || d->texts || h->magic < 2 || kr_is_control(h)) return 0;
    if (h->records_count <= 0 || h->records_count - 1 != h->last_offset_delta) return 0;
    return h->records_count <= (int64_t)KR_ROWS_OF_A_BYTE * h->batch_length;
}

/* Puts the rows that kr_header_tells; the crc of the batch has been compared. */
static __attribute__((noinline)) int kr_decode_header(kr_decoder *d, kr_batch_header *h) {
    int64_t bytes = (int64_t)h->records_count * KR_SMALLEST_RECORD + KR_RECORD_BATCH_OVERHEAD;
    int status = kr_room(d, h, bytes);
    if (status != KR_OK) return status;
    const kr_columns before = d->columns;
    kr_record r = {0};
    for (; r.offset_delta < h->records_count; r.offset_delta++) kr_record_put(&d->columns, h, &r, 0, d->want);
    return kr_settle(d, h, &before, bytes, KR_OK, 0);
}

/* Checks a compressed batch as far as its bytes allow and points at its payload. */
static inline int kr_open_compressed(kr_decoder *d, kr_batch_header *h) {
    kr_error e;
    uint32_t crc = d->check_crc ? kr_batch_crc(&d->input, h) : (uint32_t)h->crc;
    int status = KR_OK, last = h->magic < 2 ? KR_LAST_LEGACY_COMPRESSION : KR_LAST_COMPRESSION;
    const uint8_t *start = d->input.start;
    h->crc_ok = d->check_crc ? crc == h->crc : KR_CRC_NOT_CHECKED;
    if (h->crc_ok == 0)
        status = kr_fail(&e, KR_BAD_CRC, h->position, h->crc, crc);
    else if (kr_compression(h) > last)
        status = kr_fail(&e, KR_UNKNOWN_COMPRESSION, h->position, last, kr_compression(h));
    else if (h->magic < 2)
        status = kr_legacy_payload(h, start, &d->payload, &d->payload_size, &e);
    if (status != KR_OK) {
        kr_leave_out(d, h, &e);
        return KR_OK;
    }
    if (KR_UNLIKELY(kr_header_tells(d, h))) return kr_decode_header(d, h);
    if (h->magic >= 2) {
        d->payload = start + h->position + KR_RECORD_BATCH_OVERHEAD;
        d->payload_size = h->batch_length - KR_MIN_BATCH_LENGTH;
    }
    d->batch = *h;
    return KR_NEEDS_DECOMPRESSION;
}

/* Whether a batch that is not decoded may be passed over: its length leads to another header, and its fields are what
 * they were when the crc was made, where they say that it is hidden. */
static inline int kr_is_passed(kr_decoder *d, const kr_batch_header *h) {
    d->is_hidden = (int8_t)kr_is_aborted(d, h);
    if (!d->is_hidden && !kr_is_outside(d, h)) return 0;
    if (d->is_hidden && d->check_crc && kr_batch_crc(&d->input, h) != h->crc) return 0;
    if (!kr_is_followed(&d->input, h, kr_batch_end(h))) return 0;
    if (d->is_hidden) d->hidden_records += kr_records_inside(d, h);
    return 1;
}

static inline int kr_decode_next(kr_decoder *d) {
    kr_batch_header other, *h = kr_next_header(&d->columns, &other);
    kr_error e;
    int64_t next, position = d->position;
    int unchecked =
        d->want & KR_EVERY_BATCH ? KR_CHECK_CONTROL : KR_CHECK_LENGTH; /* headers may say that it is a marker */
    int status = kr_batch_next(&d->input, position, d->check_crc ? KR_CHECK_LATER : unchecked, h, &e, &next);
    if (status == KR_END) return KR_END;
    if (status != KR_OK) {
        if (status == KR_TORN_TAIL)
            d->torn_at = position;
        else
            kr_note_fault(d, &e, position, status == KR_BAD_CRC ? h->base_offset : -1, next - position);
        d->position = next;
        return KR_OK;
    }
    if (d->follows && position >= d->known && kr_is_of_transaction(h)) return KR_NEEDS_TRANSACTIONS;
    if (next < d->input.until) __builtin_prefetch(d->input.start + next);
    if (kr_is_passed(d, h)) {
        kr_pass(d, h);
        return KR_OK;
    }
    if (d->input.failed) return KR_OK;
    if (h->records_count < 0 && h->magic >= 2) {
        uint32_t crc = d->check_crc ? kr_batch_crc(&d->input, h) : (uint32_t)h->crc;
        if (crc != h->crc)
            kr_fail(&e, KR_BAD_CRC, position, h->crc, crc);
        else
            kr_fail(&e, KR_BAD_RECORDS_COUNT, position, 0, h->records_count);
        kr_leave_out(d, h, &e);
        return KR_OK;
    }
    status = kr_batch_need(&d->input, h, d->check_crc, &e);
    if (status == KR_BAD_CRC) kr_leave_out(d, h, &e);
    if (status != KR_OK) return KR_OK;
    if (kr_compression(h)) return kr_open_compressed(d, h);
    if (KR_UNLIKELY(d->texts != 0) && kr_pass_without_texts(d, h)) return KR_OK;
    return kr_decode_plain(d, h);
}

static inline int kr_decoder_run(kr_decoder *d) {
    while (d->position < d->end) {
        if (d->faults_count > (d->strict ? 0 : KR_MAX_FAULTS - KR_FAULTS_OF_A_BATCH)) return KR_CHUNK_FULL;
        if (kr_is_alone(d)) {
            kr_decode_alone(d);
            if (d->position >= d->end) break;
        }
        int64_t position = d->position;
        int32_t faults = d->faults_count;
        int status = kr_decode_next(d);
        if (d->input.failed) { /* nothing was put out for the batch, and nothing that was noted counts */
            d->position = position;
            d->faults_count = faults;
            return KR_UNREADABLE;
        }
        if (status != KR_OK) return status;
    }
    return KR_END;
}

#endif
