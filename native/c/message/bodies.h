/* What the generated decoders call for each field: a value is read and put behind the others of its column.
 *
 * Each body takes the number of the row, which is that of the value in its column, and returns where the next field
 * starts; NULL when the interpreter must read the row instead. Counts and sizes that follow from the number of rows are
 * not kept: message/settle.h sets them. Room in columns, and KR_PADDING bytes behind the value, are made sure of
 * before.
 */
#ifndef KRAFTLOG_MESSAGE_BODIES_H
#define KRAFTLOG_MESSAGE_BODIES_H

#include "message/settle.h"

/* ---- values of fixed width ---- */

KR_ALWAYS_INLINE void kr_body_fixed(const kr_message_decoder *d, kr_column *c, int64_t i, const uint8_t *p,
                                    const int kind) {
    kr_level *l = &c->item;
    if (kind == KR_KIND_UUID && d->uuid_text) {
        int32_t end = (int32_t)(KR_UUID_TEXT_SIZE * (i + 1));
        kr_uuid_text(l->data.bytes + KR_UUID_TEXT_SIZE * i, p);
        memcpy(l->ends.bytes + 4 * (i + 1), &end, 4);
    } else {
        kr_store_value(kind, l->data.bytes + kr_column_width(kind) * i, p);
    }
}

/* ---- lengths, and what is null ---- */

static const uint8_t *kr_body_long_length(const uint8_t *p, const uint8_t *end, int64_t *length) {
    uint64_t x;
    p = kr_uvarint(p, end, KR_VARINT_MAX, &x);
    if (!p || (uint32_t)x > INT32_MAX) return 0;
    *length = (int64_t)(uint32_t)x - 1;
    return p;
}

/* A length, which has been compared with nothing yet; KR_LENGTH_NULL only where null is allowed. */
KR_ALWAYS_INLINE const uint8_t *kr_body_length(const uint8_t *p, const uint8_t *end, const int compact,
                                               const int plain_width, const int nullable, int64_t *length) {
    if (compact) {
        if (KR_UNLIKELY(p >= end)) return 0;
        *length = (int64_t)*p - 1;
        if (KR_LIKELY(*p < 0x80))
            p++;
        else if (!(p = kr_body_long_length(p, end, length)))
            return 0;
    } else {
        if (KR_UNLIKELY(end - p < plain_width)) return 0;
        *length = plain_width == 2 ? kr_load_int16(p) : kr_load_int32(p);
        p += plain_width;
        if (KR_UNLIKELY(*length < KR_LENGTH_NULL)) *length = KR_LENGTH_NULL;
    }
    return KR_LIKELY(*length >= 0) || nullable ? p : 0;
}

static int kr_note_null(kr_level *l, int64_t i, int is_there) {
    if (l->valid.size > i) l->valid.size = i;
    int64_t unwritten = i - l->valid.size; /* of values that are all there */
    if (!kr_reserve(&l->valid, unwritten + 1)) return 0;
    memset(l->valid.bytes + l->valid.size, 1, (size_t)unwritten);
    l->valid.bytes[i] = (uint8_t)is_there;
    l->valid.size = i + 1;
    l->nulls += !is_there;
    return 1;
}

/* Opens the validity of a column that is prompt, or makes room in it. */
static __attribute__((noinline)) int kr_open_prompt_valid(kr_level *l, int64_t i, int is_there) {
    int is_open = l->valid.capacity != 0;
    l->valid.size = is_open ? i : 0;
    if (!kr_reserve(&l->valid, i - l->valid.size + KR_STRAIGHT_ROWS)) return 0;
    if (!is_open) memset(l->valid.bytes, 1, (size_t)i);
    l->valid.bytes[i] = (uint8_t)is_there;
    return 1;
}

/* Notes whether the value of a row is there; 0 when memory is short. A column that is prompt, and null in some version,
 * has a byte for every row once its validity is open. */
KR_ALWAYS_INLINE int kr_body_valid(kr_level *l, int64_t i, int is_there, const int prompt) {
    if (prompt) {
        if (KR_UNLIKELY(l->valid.capacity <= i))
            return (is_there && !l->valid.capacity) || kr_open_prompt_valid(l, i, is_there);
        l->valid.bytes[i] = (uint8_t)is_there;
        return 1;
    }
    if (KR_LIKELY(is_there && !l->nulls)) return 1;
    if (KR_UNLIKELY(l->valid.size != i || l->valid.capacity <= i)) return kr_note_null(l, i, is_there);
    l->valid.bytes[i] = (uint8_t)is_there;
    l->valid.size = i + 1;
    l->nulls += !is_there;
    return 1;
}

/* Rows without a list that are filled without a branch on how many there are. A block that begins behind such a gap has
 * room all the same: there is slack behind what was made sure of. */
enum { KR_SHORT_GAP = 8 };
_Static_assert(4 * KR_SHORT_GAP < KR_GROWING_SLACK, "a gap is less than the slack");

/* Makes the lists of a field that is not prompt reach a row; 0 when memory is short. */
KR_ALWAYS_INLINE int kr_body_reach(kr_message_decoder *d, const uint8_t *prompt, int32_t field, int64_t i,
                                   const int null_default) {
    kr_column *c = &d->columns[field];
    kr_level *l = &c->list;
    int64_t gap = i - l->count;
    int is_short = null_default && gap <= KR_SHORT_GAP && l->nulls && l->valid.size == l->count &&
                   l->valid.capacity >= i + KR_SHORT_GAP && l->ends.capacity >= 4 * (i + 2 * KR_SHORT_GAP);
    if (!KR_LIKELY(is_short)) return gap == 0 || kr_catch_up(d, prompt, field, i);
    int32_t end = (int32_t)c->item.count, ends[KR_SHORT_GAP];
    for (int k = 0; k < KR_SHORT_GAP; k++) ends[k] = end;
    memcpy(l->ends.bytes + 4 * (l->count + 1), ends, sizeof ends);
    memset(l->valid.bytes + l->count, 0, KR_SHORT_GAP);
    l->valid.size = l->count = i;
    l->nulls += gap;
    return 1;
}

/* ---- text and bytes ---- */

/* Stores where value i ends. */
KR_ALWAYS_INLINE void kr_store_end(kr_level *l, int64_t i, int64_t end) {
    int32_t narrow = (int32_t)end;
    memcpy(l->ends.bytes + 4 * (i + 1), &narrow, 4);
}

KR_ALWAYS_INLINE const uint8_t *kr_body_text(kr_column *c, int64_t i, const uint8_t *p, const uint8_t *end,
                                             const int kind, const int compact, const int nullable, const int prompt) {
    kr_level *l = &c->item;
    const int is_text = kind == KR_KIND_STRING;
    int64_t length;
    p = kr_body_length(p, end, compact, is_text ? 2 : 4, nullable, &length);
    if (KR_UNLIKELY(!p)) return 0;
    int there = length != KR_LENGTH_NULL;
    if ((nullable || prompt) && !kr_body_valid(l, i, there, prompt)) return 0;
    int64_t n = there ? length : 0;
    if (KR_UNLIKELY(n > end - p || (is_text && n > KR_STRING_MAX))) return 0;
    uint8_t *to = l->data.bytes + l->data.size;
    if (is_text)
        l->data.size += kr_copy_text(to, p, n, 1);
    else {
        kr_copy_padded(to, p, n);
        l->data.size += n;
    }
    kr_store_end(l, i, l->data.size);
    return p + n;
}

/* ---- lists ---- */

/* The number of elements of a list, which has so many bytes at least. */
KR_ALWAYS_INLINE const uint8_t *kr_body_elements(kr_level *list, int64_t i, const uint8_t *p, const uint8_t *end,
                                                 const int wire, const int compact, const int nullable,
                                                 const int prompt, int64_t *elements) {
    int64_t length;
    p = kr_body_length(p, end, compact, 4, nullable, &length);
    if (KR_UNLIKELY(!p)) return 0;
    int there = length != KR_LENGTH_NULL;
    if ((nullable || prompt) && !kr_body_valid(list, i, there, prompt)) return 0;
    *elements = there ? length : 0;
    return KR_LIKELY(*elements * wire <= end - p) ? p : 0;
}

KR_ALWAYS_INLINE void kr_body_end_list(kr_column *c, int64_t i) { kr_store_end(&c->list, i, c->item.count); }

enum { KR_SHORT_BODY = 4 }; /* elements that are copied without a branch on how many there are */

/* Stores KR_SHORT_BODY elements; int32 in pairs. */
KR_ALWAYS_INLINE void kr_store_short_list(uint8_t *to, const uint8_t *p, const int kind) {
    const int wire = kr_wire_width(kind), width = kr_column_width(kind);
    for (int k = 0; k < KR_SHORT_BODY && kind != KR_KIND_INT32; k++) kr_store_value(kind, to + width * k, p + wire * k);
    for (int k = 0; k < KR_SHORT_BODY && kind == KR_KIND_INT32; k += 2) {
        uint64_t pair = (uint64_t)kr_load_int64(p + 4 * k);
#if !defined(__BYTE_ORDER__) || __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
        pair = pair << 32 | pair >> 32;
#endif
        memcpy(to + 4 * k, &pair, 8);
    }
}

/* Appends n elements; returns how many there are. */
KR_ALWAYS_INLINE int64_t kr_put_elements(const kr_message_decoder *d, kr_column *c, const uint8_t *p, int64_t n,
                                         const int kind) {
    const int wire = kr_wire_width(kind), width = kr_column_width(kind);
    const int64_t count = c->item.count;
    c->item.count = count + n;
    if (kind == KR_KIND_UUID && d->uuid_text) {
        for (int64_t k = 0; k < n; k++) kr_body_fixed(d, c, count + k, p + wire * k, kind);
    } else {
        uint8_t *to = c->item.data.bytes + width * count;
        if (width <= KR_PADDING / KR_SHORT_BODY && KR_LIKELY(n <= KR_SHORT_BODY))
            kr_store_short_list(to, p, kind);
        else
            for (int64_t k = 0; k < n; k++) kr_store_value(kind, to + width * k, p + wire * k);
    }
    return count + n;
}

KR_ALWAYS_INLINE const uint8_t *kr_body_list(const kr_message_decoder *d, kr_column *c, int64_t i, const uint8_t *p,
                                             const uint8_t *end, const int kind, const int compact, const int nullable,
                                             const int prompt) {
    const int wire = kr_wire_width(kind);
    int64_t n;
    p = kr_body_elements(&c->list, i, p, end, wire, compact, nullable, prompt, &n);
    if (KR_UNLIKELY(!p)) return 0;
    kr_store_end(&c->list, i, kr_put_elements(d, c, p, n, kind));
    return p + wire * n;
}

KR_ALWAYS_INLINE const uint8_t *kr_body_texts(kr_column *c, int64_t i, const uint8_t *p, const uint8_t *end,
                                              const int kind, const int compact, const int nullable, const int prompt) {
    int64_t n;
    p = kr_body_elements(&c->list, i, p, end, 1, compact, nullable, prompt, &n);
    for (int64_t k = 0; p && k < n; k++) p = kr_body_text(c, c->item.count++, p, end, kind, compact, 0, 0);
    if (p) kr_body_end_list(c, i);
    return p;
}

/* ---- structs and tagged fields ---- */

/* Puts a struct that is null; 0 when memory is short. */
static __attribute__((noinline, cold)) int kr_body_null_struct(kr_message_decoder *d, const uint8_t *prompt,
                                                               int32_t field, int64_t i) {
    if (!kr_catch_up(d, prompt, field, i)) return 0;
    kr_put_default_items(d, field, 1, 1);
    return !d->no_memory && kr_make_field_room(d, field, KR_STRAIGHT_ROWS, KR_STRAIGHT_BYTES);
}

/* A tag above the one before, and the end of its field; NULL for what the interpreter must look at. */
KR_ALWAYS_INLINE const uint8_t *kr_body_tag(const uint8_t *p, const uint8_t *end, int *tag, const uint8_t **tag_end) {
    if (KR_UNLIKELY(end - p < 2 || ((p[0] | p[1]) & 0x80) || p[1] > end - p - 2 || p[0] <= *tag)) return 0;
    *tag = p[0];
    *tag_end = p + 2 + p[1];
    return p + 2;
}

/* ---- tagged fields that are looked for in their order, before all others ---- */

/* The number of a row that has other tagged fields. The compiler knows nothing of it: else it would compute for every
 * row what few rows need. */
KR_ALWAYS_INLINE int64_t kr_seldom(int64_t i) {
    __asm__("" : "+r"(i));
    return i;
}

/* The tagged fields of a struct that are left, and where the next one starts. */
typedef struct {
    const uint8_t *p;
    int64_t left;
} kr_tags;

/* All bits, or none. What it returns must not be known to the compiler, which would make a branch of it. */
KR_ALWAYS_INLINE uint64_t kr_all_bits(uint64_t is_set) {
    uint64_t bits = 0 - is_set;
    __asm__("" : "+r"(bits));
    return bits;
}

KR_ALWAYS_INLINE const uint8_t *kr_choose_bytes(uint64_t bits, const uint8_t *then, const uint8_t *otherwise) {
    return (const uint8_t *)((uintptr_t)otherwise ^ (((uintptr_t)then ^ (uintptr_t)otherwise) & bits));
}

/* How many there may be, and the bytes of the longest: a message that ends within one is read up to behind its end, and
 * refused there. */
enum { KR_MOST_SOUGHT = 2, KR_LONGEST_SOUGHT = 3 + 4 * KR_SHORT_BODY };
_Static_assert(KR_MOST_SOUGHT *KR_LONGEST_SOUGHT + KR_LONGEST_SOUGHT <= KR_PADDING, "what is read behind the end");

/* Whether a field is there cannot be foreseen, so that there is no branch on it. What is odd is left for others. */
KR_ALWAYS_INLINE kr_tags kr_body_tagged_fixed(const kr_message_decoder *d, kr_column *c, int64_t i, kr_tags t,
                                              const int tag, const int kind, const uint8_t *absent) {
    const int wire = kr_wire_width(kind);
    int is_tag = (t.left != 0) & (kr_load_int16(t.p) == (tag << 8 | wire));
    uint64_t there = kr_all_bits((uint64_t)is_tag);
    kr_body_fixed(d, c, i, kr_choose_bytes(there, t.p + 2, absent), kind);
    kr_tags behind = {t.p + ((2 + wire) & (int64_t)there), t.left + (int64_t)there};
    return behind;
}

static __attribute__((noinline)) const uint8_t *kr_body_tagged_long_list(const kr_message_decoder *d, kr_column *c,
                                                                         int64_t i, const uint8_t *p,
                                                                         const uint8_t *end, int kind) {
    const uint8_t *tag_end;
    int tag = -1;
    if (!(p = kr_body_tag(p, end, &tag, &tag_end))) return 0;
    return kr_body_list(d, c, i, p, tag_end, kind, 1, 1, 1) == tag_end ? tag_end : 0;
}

/* The same for a list that is null where it is absent. Nothing is at `p` when the interpreter must read the row. */
KR_ALWAYS_INLINE kr_tags kr_body_tagged_list(const kr_message_decoder *d, kr_column *c, int64_t i, kr_tags t,
                                             const uint8_t *end, const int tag, const int kind) {
    static const uint8_t nothing[KR_PADDING] = {0, 1, 1}; /* a list without elements */
    kr_level *l = &c->list;
    const int wire = kr_wire_width(kind), width = kr_column_width(kind);
    uint64_t there = kr_all_bits((uint64_t)((t.left != 0) & (t.p[0] == tag)));
    const uint8_t *p = kr_choose_bytes(there, t.p, nothing);
    int64_t n = (int64_t)p[2] - 1, size = 3 + wire * n;
    if (KR_UNLIKELY((uint64_t)n > KR_SHORT_BODY || p[1] != size - 2)) {
        kr_tags behind = {kr_body_tagged_long_list(d, c, i, t.p, end, kind), t.left - 1};
        return behind;
    }
    if (KR_UNLIKELY(!kr_body_valid(l, i, (int)(there & 1), 1))) {
        t.p = 0;
        return t;
    }
    kr_store_short_list(c->item.data.bytes + width * c->item.count, p + 3, kind);
    c->item.count += n;
    kr_body_end_list(c, i);
    kr_tags behind = {t.p + (size & (int64_t)there), t.left + (int64_t)there};
    return behind;
}

#endif
