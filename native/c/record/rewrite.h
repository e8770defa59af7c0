/* Changes that brokers make to whole batches of magic 2 where they stand. The crc covers neither the base offset nor
 * the leader epoch; where the timestamp type or the largest timestamp changes, the batch is sealed again.
 */
#ifndef KRAFTLOG_RECORD_REWRITE_H
#define KRAFTLOG_RECORD_REWRITE_H

#include "record/encoder.h"

typedef struct {
    int8_t sets_base_offset, sets_leader_epoch, sets_timestamp_type, sets_max_timestamp;
    int8_t is_log_append_time;
    int32_t partition_leader_epoch;
    int64_t base_offset; /* of the first batch; the others follow without gaps */
    int64_t max_timestamp;
} kr_changes;

static inline int kr_reseals(const kr_changes *c) { return c->sets_timestamp_type || c->sets_max_timestamp; }

/* Whether every batch is one of magic 2 that may be changed; *next_offset is the one behind the last batch. A batch
 * that is sealed again must have been sound before, or its damage would no longer be seen. */
static inline int kr_changes_check(kr_input *in, const kr_changes *c, kr_batch_header *h, int64_t *next_offset,
                                   kr_error *e) {
    int status;
    int64_t position = 0, offset = c->base_offset;
    *next_offset = offset;
    while ((status = kr_header_read(in, position, h, e)) == KR_OK) {
        if (h->magic != 2) return kr_fail(e, KR_BAD_MAGIC, position, 2, h->magic);
        if (c->sets_base_offset) h->base_offset = offset;
        if (h->last_offset_delta < 0 || !kr_has_next_offset(h))
            return kr_fail(e, KR_OFFSET_OVERFLOW, position, h->last_offset_delta, h->base_offset);
        if (kr_reseals(c)) {
            uint32_t crc = kr_batch_crc(in, h);
            if (crc != h->crc) return kr_fail(e, KR_BAD_CRC, position, h->crc, crc);
        }
        *next_offset = offset = kr_last_offset(h) + 1;
        position = kr_batch_end(h);
    }
    return status == KR_END ? KR_OK : status;
}

/* Changes the batches of a buffer that kr_changes_check found to hold nothing else. */
static inline void kr_changes_apply(uint8_t *p, int64_t size, const kr_changes *c) {
    int64_t offset = c->base_offset;
    for (uint8_t *end = p + size; p < end; p += KR_LOG_OVERHEAD + kr_load_int32(p + KR_LENGTH_AT)) {
        if (c->sets_base_offset) {
            kr_store_int64(p, offset);
            offset += (int64_t)kr_load_int32(p + KR_LAST_OFFSET_DELTA_AT) + 1;
        }
        if (c->sets_leader_epoch) kr_store_int32(p + KR_LEADER_EPOCH_AT, c->partition_leader_epoch);
        if (c->sets_timestamp_type) {
            int type = c->is_log_append_time ? KR_TIMESTAMP_TYPE_BIT : 0;
            kr_store_int16(p + KR_ATTRIBUTES_AT,
                           (int16_t)((kr_load_int16(p + KR_ATTRIBUTES_AT) & ~KR_TIMESTAMP_TYPE_BIT) | type));
        }
        if (c->sets_max_timestamp) kr_store_int64(p + KR_MAX_TIMESTAMP_AT, c->max_timestamp);
        if (kr_reseals(c)) kr_seal_batch(p, KR_LOG_OVERHEAD + kr_load_int32(p + KR_LENGTH_AT));
    }
}

#endif
