/* Record batches: the header as it stands in the file, and the crc over a batch. batch/step.h goes from one to the
 * next.
 *
 *   magic 2 and above                          magic 0 and 1 (one message, or a wrapper around compressed ones)
 *    0 base_offset             int64            0 offset      int64   of a wrapper: the last inner one
 *    8 batch_length            int32            8 size        int32   bytes behind this field
 *   12 partition_leader_epoch  int32           12 crc         uint32  CRC32 of what follows
 *   16 magic                   int8            16 magic       int8
 *   17 crc                     uint32 CRC32C   17 attributes  int8    0-2 compression, 3 timestamp type
 *   21 attributes              int16           18 timestamp   int64   magic 1 only
 *   23 last_offset_delta       int32              key         int32 length, bytes
 *   27 base_timestamp          int64              value       int32 length, bytes
 *   35 max_timestamp           int64
 *   43 producer_id             int64
 *   51 producer_epoch          int16           attributes of magic 2: 0-2 compression, 3 timestamp type,
 *   53 base_sequence           int32           4 transactional, 5 control batch, 6 delete horizon; the crc covers
 *   57 records_count           int32           the bytes from the attributes on
 *   61 records
 */
#ifndef KRAFTLOG_BATCH_BATCH_H
#define KRAFTLOG_BATCH_BATCH_H

#include "base/crc.h"
#include "base/endian.h"
#include "base/status.h"
#include "batch/record.h"
#include "input/input.h"

enum {
    KR_LENGTH_AT = 8,
    KR_LEADER_EPOCH_AT = 12,
    KR_MAGIC_AT = 16,
    KR_CRC_AT = 17,
    KR_ATTRIBUTES_AT = 21,
    KR_LAST_OFFSET_DELTA_AT = 23,
    KR_BASE_TIMESTAMP_AT = 27,
    KR_MAX_TIMESTAMP_AT = 35,
    KR_PRODUCER_ID_AT = 43,
    KR_PRODUCER_EPOCH_AT = 51,
    KR_BASE_SEQUENCE_AT = 53,
    KR_RECORDS_COUNT_AT = 57,
    KR_RECORD_BATCH_OVERHEAD = 61,
    KR_LOG_OVERHEAD = 12, /* base_offset and batch_length, which batch_length does not count */
    KR_MIN_BATCH_LENGTH = KR_RECORD_BATCH_OVERHEAD - KR_LOG_OVERHEAD,
    KR_HEADER_UP_TO_MAGIC = 17,

    KR_LEGACY_CRC_AT = 12,
    KR_LEGACY_ATTRIBUTES_AT = 17,
    KR_LEGACY_TIMESTAMP_AT = 18,
    KR_LEGACY_MIN_LENGTH_V0 = 14,
    KR_LEGACY_MIN_LENGTH_V1 = 22,

    KR_COMPRESSION_MASK = 0x07,
    KR_TIMESTAMP_TYPE_BIT = 0x08,
    KR_TRANSACTIONAL_BIT = 0x10,
    KR_CONTROL_BIT = 0x20,
    KR_DELETE_HORIZON_BIT = 0x40,
    KR_LAST_COMPRESSION = 4, /* none, gzip, snappy, lz4, zstd */

    KR_CRC_NOT_CHECKED = -1,
    KR_NO_CONTROL_TYPE = -1,
    KR_SMALLEST_RECORD = 7 /* a one-byte length and six one-byte fields */
};

/* One header as it stands in the file; of magic 0 and 1 the fields that they lack are -1 (counts and deltas 1 and 0).
 * `rows` is how many records a decoder has put out for it. */
typedef struct {
    int64_t position;
    int64_t base_offset;
    int64_t base_timestamp;
    int64_t max_timestamp;
    int64_t producer_id;
    uint32_t crc;
    int32_t batch_length;
    int32_t partition_leader_epoch;
    int32_t last_offset_delta;
    int32_t base_sequence;
    int32_t records_count;
    int32_t rows;
    int32_t coordinator_epoch; /* of an ABORT or COMMIT marker */
    int16_t attributes;
    int16_t producer_epoch;
    int16_t control_type;
    int8_t magic;
    int8_t crc_ok;
} kr_batch_header;

static inline int64_t kr_batch_end(const kr_batch_header *h) { return h->position + KR_LOG_OVERHEAD + h->batch_length; }
static inline int kr_compression(const kr_batch_header *h) { return h->attributes & KR_COMPRESSION_MASK; }
static inline int kr_is_control(const kr_batch_header *h) { return h->magic >= 2 && (h->attributes & KR_CONTROL_BIT); }
static inline int64_t kr_last_offset(const kr_batch_header *h) {
    return kr_add_wrapping(h->base_offset, h->last_offset_delta);
}

/* Whether the offset behind the batch is one that 64 bits hold. */
static inline int kr_has_next_offset(const kr_batch_header *h) {
    int64_t most = INT64_MAX - 1 - (h->last_offset_delta > 0 ? h->last_offset_delta : 0);
    int64_t least = h->last_offset_delta < 0 ? INT64_MIN - h->last_offset_delta : INT64_MIN;
    return h->base_offset <= most && h->base_offset >= least;
}

/* Of an uncompressed control batch, its first record: the key is version int16, type int16; the value of an ABORT (0)
 * or COMMIT (1) marker is version int16, coordinator_epoch int32. Reads at most KR_CONTROL_PREFIX bytes. */
enum {
    KR_CONTROL_PREFIX = KR_VARINT_MAX + 1 + KR_VARLONG_MAX + 3 * KR_VARINT_MAX + 4 + 6,
    KR_HEADER_READ = KR_RECORD_BATCH_OVERHEAD + KR_CONTROL_PREFIX, /* what kr_header_read looks at */
    KR_LAST_MARKER = 1
};

static inline void kr_control_load(const uint8_t *p, const uint8_t *end, kr_batch_header *h) {
    kr_record r;
    int32_t length, value_length;
    uint8_t padded[KR_CONTROL_PREFIX + KR_VARLONG_MAX];
    if (end - p < KR_SMALLEST_RECORD + 4) return;
    if (end - p < KR_CONTROL_PREFIX) {
        const int64_t size = end - p;
        kr_copy_before_zeros(padded, p, size, (int64_t)sizeof padded - size);
        p = padded;
        end = padded + size;
    }
    if (!(p = kr_varint_unchecked(p, &length)) || !(p = kr_record_begin(p, &r)) || r.key_length < 4) return;
    h->control_type = kr_load_int16(p + 2);
    if (h->control_type < 0 || h->control_type > KR_LAST_MARKER || r.key_length != 4) return;
    if ((p = kr_varint_unchecked(p + 4, &value_length)) && value_length >= 6 && end - p >= 6)
        h->coordinator_epoch = kr_load_int32(p + 2);
}

static inline void kr_header_load_legacy(const uint8_t *p, kr_batch_header *h) {
    h->crc = kr_load_uint32(p + KR_LEGACY_CRC_AT);
    h->attributes = (int8_t)p[KR_LEGACY_ATTRIBUTES_AT];
    h->base_timestamp = h->magic == 1 ? kr_load_int64(p + KR_LEGACY_TIMESTAMP_AT) : -1;
    h->max_timestamp = h->base_timestamp;
    h->partition_leader_epoch = -1;
    h->last_offset_delta = 0;
    h->producer_id = -1;
    h->producer_epoch = -1;
    h->base_sequence = -1;
    h->records_count = kr_compression(h) ? -1 : 1;
}

static inline void kr_header_load_v2(const uint8_t *p, kr_batch_header *h) {
    h->crc = kr_load_uint32(p + KR_CRC_AT);
    h->attributes = kr_load_int16(p + KR_ATTRIBUTES_AT);
    h->base_timestamp = kr_load_int64(p + KR_BASE_TIMESTAMP_AT);
    h->max_timestamp = kr_load_int64(p + KR_MAX_TIMESTAMP_AT);
    h->partition_leader_epoch = kr_load_int32(p + KR_LEADER_EPOCH_AT);
    h->last_offset_delta = kr_load_int32(p + KR_LAST_OFFSET_DELTA_AT);
    h->producer_id = kr_load_int64(p + KR_PRODUCER_ID_AT);
    h->producer_epoch = kr_load_int16(p + KR_PRODUCER_EPOCH_AT);
    h->base_sequence = kr_load_int32(p + KR_BASE_SEQUENCE_AT);
    h->records_count = kr_load_int32(p + KR_RECORDS_COUNT_AT);
}

static inline int32_t kr_least_batch_length(int8_t magic) {
    return magic >= 2 ? KR_MIN_BATCH_LENGTH : magic == 1 ? KR_LEGACY_MIN_LENGTH_V1 : KR_LEGACY_MIN_LENGTH_V0;
}

/* What all headers begin with, and what is not known of the batch yet. */
static inline void kr_header_load_front(const uint8_t *p, int64_t position, kr_batch_header *h) {
    h->position = position;
    h->base_offset = kr_load_int64(p);
    h->batch_length = kr_load_int32(p + KR_LENGTH_AT);
    h->magic = (int8_t)p[KR_MAGIC_AT];
    h->rows = 0;
    h->crc_ok = KR_CRC_NOT_CHECKED;
    h->control_type = KR_NO_CONTROL_TYPE;
    h->coordinator_epoch = -1;
}

/* The header at `position`. KR_TORN_TAIL: the batch would end behind the input. Nothing else is judged. */
static inline int kr_header_read(kr_input *in, int64_t position, kr_batch_header *h, kr_error *e) {
    int64_t left = in->size - position;
    if (left <= 0) return KR_END;
    if (!kr_need(in, position, left < KR_HEADER_READ ? in->size : position + KR_HEADER_READ))
        return kr_fail(e, KR_UNREADABLE, position, 0, 0);
    const uint8_t *p = in->start + position;
    if (left < KR_HEADER_UP_TO_MAGIC) return kr_fail(e, KR_TORN_TAIL, position, KR_HEADER_UP_TO_MAGIC, left);
    kr_header_load_front(p, position, h);
    int32_t least = kr_least_batch_length(h->magic);
    if (h->batch_length < least) return kr_fail(e, KR_BAD_BATCH_LENGTH, position, least, h->batch_length);
    if (h->magic < 0) return kr_fail(e, KR_BAD_MAGIC, position, 2, h->magic);
    if (h->batch_length > left - KR_LOG_OVERHEAD) return kr_fail(e, KR_TORN_TAIL, position, least, left);
    if (h->magic < 2) {
        kr_header_load_legacy(p, h);
        return KR_OK;
    }
    kr_header_load_v2(p, h);
    if ((h->attributes & KR_CONTROL_BIT) && !kr_compression(h) && h->records_count > 0) {
        int64_t end = kr_batch_end(h), read = position + KR_HEADER_READ;
        kr_control_load(p + KR_RECORD_BATCH_OVERHEAD, in->start + (end < read ? end : read), h);
    }
    return KR_OK;
}

/* The crc over a batch. Of an input that fails it does not match. */
static inline uint32_t kr_batch_crc(kr_input *in, const kr_batch_header *h) {
    uint32_t crc = 0;
    int64_t end = kr_batch_end(h), at = h->position + (h->magic >= 2 ? KR_ATTRIBUTES_AT : KR_MAGIC_AT);
    if (end - h->position <= KR_LARGE_BATCH && !kr_need(in, h->position, end)) return ~h->crc;
    while (at < end) {
        int64_t piece = end - at < KR_LARGE_BATCH ? end : at + KR_LARGE_BATCH;
        if (!kr_need(in, at, piece)) return ~h->crc;
        const uint8_t *p = in->start + at;
        crc = h->magic >= 2 ? kr_crc32c(crc, p, (size_t)(piece - at)) : kr_crc32(crc, p, (size_t)(piece - at));
        at = piece;
    }
    return crc;
}

/* Brings a batch into memory. A large one only if its crc matches, or is not to be checked: its length may be damaged.
 * KR_OK, KR_BAD_CRC, KR_UNREADABLE. */
static inline int kr_batch_need(kr_input *in, const kr_batch_header *h, int check_crc, kr_error *e) {
    int64_t end = kr_batch_end(h);
    if (check_crc && in->move && end - h->position > KR_LARGE_BATCH) {
        uint32_t crc = kr_batch_crc(in, h);
        if (crc != h->crc) return kr_fail(e, KR_BAD_CRC, h->position, h->crc, crc);
    }
    return kr_need(in, h->position, end) ? KR_OK : kr_fail(e, KR_UNREADABLE, h->position, 0, 0);
}

#endif
