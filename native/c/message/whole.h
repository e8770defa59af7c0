/* Whether a message is one that every decoder reads without a fault: a walk over its program that writes nothing. What
 * is odd in any way is refused, for the decoder to judge. */
#ifndef KRAFTLOG_MESSAGE_WHOLE_H
#define KRAFTLOG_MESSAGE_WHOLE_H

#include "message/decode.h"

enum { KR_WHOLE_NULL = -1, KR_WHOLE_ODD = -2, KR_SHORT_VARINT = 4 };

static const uint8_t *kr_pass_struct(const kr_program *program, int32_t field, const uint8_t *p, const uint8_t *end);

/* An unsigned varint of at most four bytes; KR_WHOLE_ODD for any other. */
KR_ALWAYS_INLINE int64_t kr_pass_uvarint(const uint8_t **at, const uint8_t *end) {
    uint64_t x;
    const uint8_t *p = kr_uvarint(*at, end, KR_SHORT_VARINT, &x);
    if (!p) return KR_WHOLE_ODD;
    *at = p;
    return (int64_t)x;
}

/* The length of a string, of bytes or of an array. */
KR_ALWAYS_INLINE int64_t kr_pass_length(const kr_program *program, const kr_field *f, int width, const uint8_t **at,
                                        const uint8_t *end) {
    int64_t length;
    if (program->is_compact) {
        length = kr_pass_uvarint(at, end);
        if (length == KR_WHOLE_ODD) return KR_WHOLE_ODD;
        length -= 1;
    } else {
        if (end - *at < width) return KR_WHOLE_ODD;
        length = width == 2 ? kr_load_int16(*at) : kr_load_int32(*at);
        *at += width;
    }
    if (length >= 0) return length;
    return f->is_nullable ? KR_WHOLE_NULL : KR_WHOLE_ODD;
}

/* One value, or one element of an array. */
static const uint8_t *kr_pass_item(const kr_program *program, int32_t field, const uint8_t *p, const uint8_t *end) {
    const kr_field *f = &program->fields[field];
    int wire = kr_wire_width(f->kind);
    if (KR_LIKELY(wire)) return end - p < wire ? 0 : p + wire;
    if (f->kind == KR_KIND_STRUCT) return kr_pass_struct(program, field, p, end);
    int is_text = f->kind == KR_KIND_STRING;
    int64_t length = kr_pass_length(program, f, is_text ? 2 : 4, &p, end);
    if (length == KR_WHOLE_NULL) return f->is_array ? 0 : p;
    if (length < 0 || length > end - p || (is_text && length > KR_STRING_MAX)) return 0;
    return p + length;
}

static const uint8_t *kr_pass_field(const kr_program *program, int32_t field, const uint8_t *p, const uint8_t *end) {
    const kr_field *f = &program->fields[field];
    if (f->is_array) {
        int64_t count = kr_pass_length(program, f, 4, &p, end);
        int wire = kr_wire_width(f->kind);
        if (count == KR_WHOLE_NULL) return p;
        if (count < 0 || count > (end - p) / (wire ? wire : 1)) return 0;
        if (wire) return p + count * wire;
        for (int64_t k = 0; k < count && p; k++) p = kr_pass_item(program, field, p, end);
        return p;
    }
    if (f->kind == KR_KIND_STRUCT && f->is_nullable) {
        int64_t there;
        if (f->place == KR_PLACE_TAGGED) {
            there = kr_pass_uvarint(&p, end);
            if (there <= 0) return there ? 0 : p;
        } else {
            if (p == end) return 0;
            if ((int8_t)*p++ < 0) return p;
        }
    }
    return kr_pass_item(program, field, p, end);
}

/* The tagged fields of a struct, in rising order. */
static const uint8_t *kr_pass_tagged(const kr_program *program, const kr_field *f, const uint8_t *p,
                                     const uint8_t *end) {
    int64_t count = kr_pass_uvarint(&p, end), last = -1;
    if (count < 0) return 0;
    for (int64_t k = 0; k < count; k++) {
        int64_t tag = kr_pass_uvarint(&p, end), size = kr_pass_uvarint(&p, end);
        if (tag <= last || size < 0 || size > end - p) return 0;
        last = tag;
        int32_t known = kr_known_tag(program->fields, f, tag);
        if (known && kr_pass_field(program, f->first + known - 1, p, p + size) != p + size) return 0;
        p += size;
    }
    return p;
}

static const uint8_t *kr_pass_struct(const kr_program *program, int32_t field, const uint8_t *p, const uint8_t *end) {
    const kr_field *f = &program->fields[field];
    for (int32_t c = f->first; c < f->first + f->count && p; c++)
        if (program->fields[c].place == KR_PLACE_IN_ORDER) p = kr_pass_field(program, c, p, end);
    return p && program->is_compact ? kr_pass_tagged(program, f, p, end) : p;
}

enum { KR_MOST_RUNS = 4 };

/* A message whose fields are numbers and text: bytes of numbers, text, bytes of numbers and so on, and tagged fields.
 */
typedef struct {
    int16_t bytes[KR_MOST_RUNS]; /* before each text, and behind the last one */
    int16_t texts;               /* KR_WHOLE_ODD for any other message */
} kr_flat;

static inline kr_flat kr_flat_of(const kr_program *program) {
    const kr_field *f = &program->fields[0];
    kr_flat flat = {{0}, 0};
    for (int32_t c = f->first; c < f->first + f->count; c++) {
        const kr_field *child = &program->fields[c];
        if (child->place != KR_PLACE_IN_ORDER) continue;
        int is_text = child->kind == KR_KIND_STRING && !child->is_nullable;
        if (child->is_array || !(is_text || kr_wire_width(child->kind)) || flat.texts + is_text >= KR_MOST_RUNS) {
            flat.texts = KR_WHOLE_ODD;
            return flat;
        }
        flat.texts = (int16_t)(flat.texts + is_text);
        flat.bytes[flat.texts] = (int16_t)(flat.bytes[flat.texts] + kr_wire_width(child->kind));
    }
    return flat;
}

static inline int kr_message_is_whole(const kr_program *program, const uint8_t *p, const uint8_t *end) {
    return kr_pass_struct(program, 0, p, end) == end;
}

/* The same of a flat message. */
KR_ALWAYS_INLINE int kr_flat_is_whole(const kr_program *program, const kr_flat *flat, const uint8_t *p,
                                      const uint8_t *end) {
    int64_t size = end - p, at = 0;
    for (int k = 0; k < flat->texts; k++) {
        int64_t length;
        at += flat->bytes[k];
        if (program->is_compact) {
            if (at >= size || p[at] >= 0x80) return kr_message_is_whole(program, p, end);
            length = p[at++] - 1;
        } else {
            if (at + 2 > size) return 0;
            length = kr_load_int16(p + at);
            at += 2;
        }
        if (length < 0 || length > size - at) return 0;
        at += length;
    }
    at += flat->bytes[flat->texts];
    if (at > size || !program->is_compact) return at == size;
    return kr_pass_tagged(program, &program->fields[0], p + at, end) == end;
}

/* Whether a key is whole, and no other bytes say the same: integers and text without what is replaced. */
static inline int kr_key_is_whole(const kr_program *program, const uint8_t *p, const uint8_t *end) {
    const kr_field *f = &program->fields[0];
    if (program->is_compact) return 0;
    for (int32_t c = f->first; c < f->first + f->count; c++) {
        const kr_field *child = &program->fields[c];
        const uint8_t *begin = p;
        if (child->place != KR_PLACE_IN_ORDER || child->is_array || child->is_nullable) return 0;
        if (child->kind == KR_KIND_BOOL || child->kind == KR_KIND_FLOAT64 || child->kind == KR_KIND_STRUCT) return 0;
        p = kr_pass_item(program, c, p, end);
        if (!p) return 0;
        if (child->kind == KR_KIND_STRING && !kr_is_utf8(begin + 2, p - begin - 2)) return 0;
    }
    return p == end;
}

#endif
