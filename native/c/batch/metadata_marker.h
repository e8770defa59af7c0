/* Records of the metadata log that tell of transactions, known by their first bytes: frame version, api key and version
 * as unsigned varints, then the message. */
#ifndef KRAFTLOG_BATCH_METADATA_MARKER_H
#define KRAFTLOG_BATCH_METADATA_MARKER_H

#include "batch/record.h"

enum { KR_FRAME_VERSION = 1, KR_FEATURE_LEVEL_KEY = 12, KR_FIRST_MARKER_KEY = 23, KR_LAST_MARKER_KEY = 25 };

KR_ALWAYS_INLINE int kr_is_marker_key(uint32_t key) { return key >= KR_FIRST_MARKER_KEY && key <= KR_LAST_MARKER_KEY; }

/* The api key of a metadata record whose varints are longer than needed; 0, which is that of no record of use here, for
 * what is no metadata record. */
static inline uint32_t kr_odd_api_key(const uint8_t *p, const uint8_t *end) {
    uint64_t frame, key;
    if (!(p = kr_uvarint(p, end, KR_VARINT_MAX, &frame)) || (uint32_t)frame != KR_FRAME_VERSION) return 0;
    return kr_uvarint(p, end, KR_VARINT_MAX, &key) ? (uint32_t)key : 0;
}

KR_ALWAYS_INLINE uint32_t kr_api_key(const uint8_t *value, int64_t length) {
    if (length < 2) return 0;
    if (KR_LIKELY((value[0] | value[1]) < 0x80)) return value[0] == KR_FRAME_VERSION ? value[1] : 0;
    return kr_odd_api_key(value, value + length);
}

KR_ALWAYS_INLINE int kr_is_marker(const kr_record *r) {
    return kr_is_marker_key(kr_api_key(r->value, r->value_length));
}

/* Whether a record tells of transactions: a marker, or a FeatureLevelRecord, which may say that there are none. */
KR_ALWAYS_INLINE int kr_is_marker_or_level(const uint8_t *value, int64_t length) {
    enum { MARKERS = 7 << KR_FIRST_MARKER_KEY, WANTED = MARKERS | 1 << KR_FEATURE_LEVEL_KEY };
    uint32_t key = kr_api_key(value, length);
    return key <= KR_LAST_MARKER_KEY && ((uint32_t)WANTED >> key & 1);
}

#endif
