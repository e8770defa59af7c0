/* Records of the metadata log that tell of transactions, known by their first bytes: frame version, api key and version
 * as unsigned varints, then the message. */
#ifndef KRAFTLOG_BATCH_METADATA_MARKER_H
#define KRAFTLOG_BATCH_METADATA_MARKER_H

#include "batch/record.h"
#include "text/utf8.h"

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

enum { KR_NO_TEXT = -1, KR_ODD_MARKER = -2 };

/* A varint of one or two bytes, none more than needed; -1 for others. */
static inline int64_t kr_short_uvarint(const uint8_t **p, const uint8_t *end) {
    const uint8_t *at = *p;
    if (end - at >= 1 && at[0] < 0x80) {
        *p = at + 1;
        return at[0];
    }
    if (end - at < 2 || at[1] >= 0x80 || !at[1]) return -1;
    *p = at + 2;
    return (at[0] & 0x7f) | (int64_t)at[1] << 7;
}

/* The text of a marker as writers write it: its length, and where it is; KR_NO_TEXT where there is none. KR_ODD_MARKER
 * for a marker with more tags, longer varints or what is no UTF-8, which the caller reads by other means. */
static inline int64_t kr_marker_text(const uint8_t *value, int64_t length, const uint8_t **text) {
    const uint8_t *p = value + 4, *end = value + length;
    if (length < 4 || value[0] != KR_FRAME_VERSION || !kr_is_marker_key(value[1]) || value[2]) return KR_ODD_MARKER;
    if (!value[3]) return length == 4 ? KR_NO_TEXT : KR_ODD_MARKER;
    if (value[3] != 1 || length < 5 || *p++ || value[1] == KR_FIRST_MARKER_KEY + 1) return KR_ODD_MARKER;
    int64_t field = kr_short_uvarint(&p, end);
    if (field != end - p) return KR_ODD_MARKER;
    int64_t size = kr_short_uvarint(&p, end) - 1;
    if (size < 0 || size != end - p || !kr_is_utf8(p, size)) return KR_ODD_MARKER;
    *text = p;
    return size;
}

#endif
