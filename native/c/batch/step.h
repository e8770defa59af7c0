/* From one batch to the next: the one walk under the decoder, the scan over headers and the lookahead.
 *
 * Every walk comes to the same batches, whether it compares crcs or not:
 *   - a header is believed when the next one follows from it, or its crc matches;
 *   - a batch whose crc does not match is left out. Where a header follows behind it, or a batch whose crc matches,
 *     the walk goes on there;
 *   - where none follows, the rest of the input is not read. A batch is never searched for inside of another one, as a
 *     value may hold batches, unless the caller asks for it (batch/salvage.h);
 *   - a batch that is cut off by the end of the input, and zeros up to there, are a torn tail and no fault.
 */
#ifndef KRAFTLOG_BATCH_STEP_H
#define KRAFTLOG_BATCH_STEP_H

#include "batch/salvage.h"

/* Of which batches the crc is compared: */
enum kr_check {
    KR_CHECK_LENGTH,  /* those whose length may be wrong: no header follows */
    KR_CHECK_ALL,     /**/
    KR_CHECK_CONTROL, /* control batches as well: they are small, and much depends on a marker */
    KR_CHECK_LATER    /* none: the caller compares it while it reads the batch, and calls kr_give_up_batch */
};

/* Whether the file is zero from `position` on, but for the first bytes of a header that were written there. */
static inline int kr_is_begun(kr_input *in, int64_t position) {
    return in->size - position > KR_LEADER_EPOCH_AT && kr_is_zero(in, position + KR_LEADER_EPOCH_AT);
}

/* Whether a walk can go on at `position`, behind h: the input ends there, or a header stands there with an offset that
 * is not less and, as all offsets of a segment, within 31 bits. */
static inline int kr_is_followed(kr_input *in, const kr_batch_header *h, int64_t position) {
    int64_t left = in->size - position;
    if (left < KR_HEADER_UP_TO_MAGIC) return 1;
    if (!kr_need(in, position, left < KR_HEADER_READ ? in->size : position + KR_HEADER_READ)) return 0;
    const uint8_t *p = in->start + position;
    int64_t base_offset = kr_load_int64(p);
    if (!kr_is_plausible(p, left)) return 0;
    return base_offset >= h->base_offset && (uint64_t)base_offset - (uint64_t)h->base_offset <= INT32_MAX;
}

static inline int kr_torn(kr_input *in, int64_t position, kr_error *e, int64_t *next) {
    *next = in->size;
    return in->failed ? KR_UNREADABLE : kr_fail(e, KR_TORN_TAIL, position, 0, in->size - position);
}

/* No batch is read at the position of a fault, and nothing follows from it. */
static inline int kr_give_up_rest(kr_input *in, int64_t position, int64_t end, kr_error *e, int64_t *next) {
    *next = in->size;
    if (in->failed) return KR_UNREADABLE;
    if (in->salvage) {
        *next = kr_salvage_behind(in, position, end);
        if (in->failed) return KR_UNREADABLE;
        if (kr_is_hopeless(in))
            return kr_fail(e, KR_TOO_MUCH_DAMAGE, position, in->size - position, in->salvage->wasted);
    }
    if (*next == in->size) e->lost = KR_REST;
    return e->status;
}

/* The batch with header h cannot be read, as e says: where to go on. Returns e's status, or KR_TORN_TAIL or
 * KR_UNREADABLE. */
static inline int kr_give_up_batch(kr_input *in, const kr_batch_header *h, kr_error *e, int64_t *next) {
    if (kr_is_begun(in, h->position)) return kr_torn(in, h->position, e, next);
    *next = kr_batch_end(h);
    /* its own offset may be what is damaged: a sound batch there is believed, too */
    if (!in->salvage && (kr_is_followed(in, h, *next) || kr_is_begun(in, *next) || kr_is_sound(in, *next)))
        return in->failed ? KR_UNREADABLE : e->status;
    return kr_give_up_rest(in, h->position, *next, e, next);
}

/* What no broker begins to write is no torn batch. */
static inline int kr_is_implausible_tail(const kr_input *in, int64_t position) {
    int64_t left = in->size - position;
    return left >= KR_HEADER_UP_TO_MAGIC && !kr_is_plausible(in->start + position, left);
}

/* The header at `position`, and where the next one is expected. KR_OK, KR_END, KR_TORN_TAIL, KR_UNREADABLE (the input
 * failed), or a fault of e; then the bytes up to `next` are lost. With a bad crc the header is whole all the same. */
static inline int kr_batch_next(kr_input *in, int64_t position, int check, kr_batch_header *h, kr_error *e,
                                int64_t *next) {
    int status = kr_header_read(in, position, h, e);
    if (KR_LIKELY(status == KR_OK)) {
        *next = kr_batch_end(h);
        if (in->move) kr_input_see(in, position);
        if (KR_LIKELY(check == KR_CHECK_LATER && kr_has_next_offset(h))) return KR_OK;
        if (!kr_has_next_offset(h)) {
            kr_fail(e, KR_OFFSET_OVERFLOW, position, h->last_offset_delta, h->base_offset);
            return kr_give_up_batch(in, h, e, next);
        }
        int may_be_begun = h->magic == 0 && h->crc == 0; /* all zero from the leader epoch on */
        int is_asked = check == KR_CHECK_ALL || (check == KR_CHECK_CONTROL && kr_is_control(h)) || may_be_begun;
        if (!is_asked && KR_LIKELY(kr_is_followed(in, h, *next))) return KR_OK;
        if (in->failed) return KR_UNREADABLE;
        uint32_t crc = kr_batch_crc(in, h);
        if (in->failed) return KR_UNREADABLE;
        h->crc_ok = crc == h->crc;
        if (h->crc_ok) return KR_OK;
        kr_fail(e, KR_BAD_CRC, position, h->crc, crc);
        return kr_give_up_batch(in, h, e, next);
    }
    *next = in->size;
    if (status == KR_END || status == KR_UNREADABLE) return status;
    if (status == KR_BAD_MAGIC && h->batch_length <= in->size - position - KR_LOG_OVERHEAD)
        return kr_give_up_batch(in, h, e, next);
    if (status == KR_TORN_TAIL && kr_is_implausible_tail(in, position))
        status = kr_fail(e, KR_BAD_BATCH_LENGTH, position, kr_least_batch_length(h->magic), h->batch_length);
    if ((status == KR_TORN_TAIL && !in->salvage) || kr_is_begun(in, position)) return kr_torn(in, position, e, next);
    status = kr_give_up_rest(in, position, -1, e, next);
    if (status != KR_TORN_TAIL) return status;
    if (*next == in->size) return kr_torn(in, position, e, next);
    return kr_fail(e, KR_BAD_BATCH_LENGTH, position, kr_least_batch_length(h->magic), h->batch_length);
}

#endif
