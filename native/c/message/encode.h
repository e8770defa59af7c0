/* Columns to messages: the reverse of message/decode.h, a row at a time. */
#ifndef KRAFTLOG_MESSAGE_ENCODE_H
#define KRAFTLOG_MESSAGE_ENCODE_H

#include "arrow/lent.h"
#include "base/endian.h"
#include "base/status.h"
#include "message/columns.h"
#include "text/uuid_text.h"

/* Buffers of an Arrow column; `list` levels only of arrays. Bits and ends start at the column's first value. */
typedef struct {
    const uint8_t *list_valid, *valid; /* NULL: nothing is null */
    int64_t list_valid_at, valid_at;   /* bit of the first value */
    const int32_t *list_ends, *ends;
    const uint8_t *data;
    int64_t data_at;     /* bit of the first value, of booleans */
    const int64_t *tags; /* of unknown tagged fields, beside their data */
} kr_field_source;

typedef struct {
    kr_program program;
    const kr_field_source *sources; /* for each field, then for the unknown tagged fields of each struct */
    int32_t uuid_text;
    int32_t no_memory;
    kr_growing out;
    kr_error error;
    int32_t error_field;
} kr_message_encoder;

enum { KR_STRING_MAX_WRITTEN = 0x7fff };

static void kr_encode_struct(kr_message_encoder *e, int32_t field, int64_t at);

static void kr_encode_fail(kr_message_encoder *e, int32_t field, int status, int64_t expected, int64_t actual) {
    if (e->error.status != KR_OK) return;
    kr_fail(&e->error, status, -1, expected, actual);
    e->error_field = field;
}

static inline uint8_t *kr_message_room(kr_message_encoder *e, int64_t n) {
    if (!kr_reserve(&e->out, n)) {
        e->no_memory = 1;
        return 0;
    }
    return e->out.bytes + e->out.size;
}

static void kr_put_bytes(kr_message_encoder *e, const void *from, int64_t n) {
    uint8_t *to = kr_message_room(e, n);
    if (!to) return;
    if (n) memcpy(to, from, (size_t)n);
    e->out.size += n;
}

static void kr_put_uvarint(kr_message_encoder *e, uint64_t value) {
    uint8_t *to = kr_message_room(e, KR_VARLONG_MAX);
    if (to) e->out.size += kr_put_uvarint64(to, value) - to;
}

/* A length, or -1 for null. */
static void kr_put_length(kr_message_encoder *e, int64_t length, int plain_width) {
    uint8_t bytes[4];
    if (e->program.is_compact) {
        kr_put_uvarint(e, (uint64_t)(length + 1));
        return;
    }
    if (plain_width == 2)
        kr_store_int16(bytes, (int16_t)length);
    else
        kr_store_int32(bytes, (int32_t)length);
    kr_put_bytes(e, bytes, plain_width);
}

static inline int64_t kr_field_number(const kr_field_source *s, int kind, int64_t at) {
    int16_t x16;
    int32_t x32;
    int64_t x64;
    switch (kind) {
    case KR_KIND_BOOL:
        return kr_has_bit(s->data, s->data_at + at);
    case KR_KIND_INT8:
        return (int8_t)s->data[at];
    case KR_KIND_INT16:
        memcpy(&x16, s->data + 2 * at, 2);
        return x16;
    case KR_KIND_UINT16:
    case KR_KIND_INT32:
        memcpy(&x32, s->data + 4 * at, 4);
        return x32;
    default:
        memcpy(&x64, s->data + 8 * at, 8);
        return x64;
    }
}

/* 22 characters to 16 bytes; 0 when they are not a uuid. */
static int kr_uuid_from_text(uint8_t *to, const uint8_t *text, int64_t n) {
    uint32_t word = 0;
    int bits = 0;
    if (n != KR_UUID_TEXT_SIZE) return 0;
    for (int i = 0; i < KR_UUID_TEXT_SIZE; i++) {
        int digit = kr_base64_url_digits[text[i]];
        if (digit < 0) return 0;
        word = (word << 6) | (uint32_t)digit;
        bits += 6;
        if (bits >= 8) {
            bits -= 8;
            *to++ = (uint8_t)(word >> bits);
        }
    }
    return (word & 15) == 0;
}

static void kr_source_uuid(kr_message_encoder *e, int32_t field, int64_t at, uint8_t *uuid) {
    const kr_field_source *s = &e->sources[field];
    if (!e->uuid_text) {
        memcpy(uuid, s->data + KR_UUID_SIZE * at, KR_UUID_SIZE);
        return;
    }
    int64_t size = s->ends[at + 1] - s->ends[at];
    if (!kr_uuid_from_text(uuid, s->data + s->ends[at], size)) {
        memset(uuid, 0, KR_UUID_SIZE);
        kr_encode_fail(e, field, KR_BAD_UUID, KR_UUID_TEXT_SIZE, size);
    }
}

static void kr_encode_item(kr_message_encoder *e, int32_t field, int64_t at) {
    const kr_field *f = &e->program.fields[field];
    const kr_field_source *s = &e->sources[field];
    uint8_t bytes[KR_UUID_SIZE];
    int64_t number;
    switch (f->kind) {
    case KR_KIND_STRUCT:
        kr_encode_struct(e, field, at);
        return;
    case KR_KIND_UUID:
        kr_source_uuid(e, field, at, bytes);
        break;
    case KR_KIND_STRING:
    case KR_KIND_BYTES: {
        int64_t size = s->ends[at + 1] - s->ends[at];
        if (f->kind == KR_KIND_STRING && size > KR_STRING_MAX_WRITTEN)
            kr_encode_fail(e, field, KR_STRING_TOO_LONG, KR_STRING_MAX_WRITTEN, size);
        kr_put_length(e, size, f->kind == KR_KIND_STRING ? 2 : 4);
        kr_put_bytes(e, s->data + s->ends[at], size);
        return;
    }
    default:
        number = kr_field_number(s, f->kind, at);
        if (f->kind == KR_KIND_UINT16 && (number < 0 || number > UINT16_MAX))
            kr_encode_fail(e, field, KR_OUT_OF_RANGE, UINT16_MAX, number);
        if (f->kind == KR_KIND_UINT32 && (number < 0 || number > UINT32_MAX))
            kr_encode_fail(e, field, KR_OUT_OF_RANGE, UINT32_MAX, number);
        uint8_t wide[8];
        kr_store_int64(wide, number);
        memcpy(bytes, wide + 8 - kr_wire_width(f->kind), (size_t)kr_wire_width(f->kind));
    }
    kr_put_bytes(e, bytes, kr_wire_width(f->kind));
}

static int kr_source_is_null(const kr_message_encoder *e, int32_t field, int64_t at) {
    const kr_field_source *s = &e->sources[field];
    return e->program.fields[field].is_array ? !kr_is_valid(s->list_valid, s->list_valid_at + at)
                                             : !kr_is_valid(s->valid, s->valid_at + at);
}

/* Whether a struct has tagged fields that its definition does not know. */
static int kr_source_has_unknown(const kr_message_encoder *e, int32_t field, int64_t at) {
    const kr_field_source *u = &e->sources[e->program.fields[field].unknown];
    return u->list_ends && kr_is_valid(u->list_valid, u->list_valid_at + at) && u->list_ends[at] < u->list_ends[at + 1];
}

/* Whether a field is what it is when it is absent; of a field that the version lacks, null is that as well. */
static int kr_source_is_default(kr_message_encoder *e, int32_t field, int64_t at) {
    const kr_field *f = &e->program.fields[field];
    const kr_field_source *s = &e->sources[field];
    if (kr_source_is_null(e, field, at)) return f->null_default || f->place == KR_PLACE_NONE;
    if (f->null_default) return 0;
    if (f->is_array) return s->list_ends[at] == s->list_ends[at + 1];
    switch (f->kind) {
    case KR_KIND_STRING:
    case KR_KIND_BYTES: {
        int64_t size = s->ends[at + 1] - s->ends[at];
        return size == f->default_size &&
               (!size || !memcmp(s->data + s->ends[at], e->program.text + f->default_at, (size_t)size));
    }
    case KR_KIND_UUID: {
        static const uint8_t zeros[KR_UUID_SIZE];
        uint8_t uuid[KR_UUID_SIZE];
        kr_source_uuid(e, field, at, uuid);
        return !memcmp(uuid, zeros, KR_UUID_SIZE);
    }
    case KR_KIND_STRUCT:
        for (int32_t k = f->first; k < f->first + f->count; k++)
            if (!kr_source_is_default(e, k, at)) return 0;
        return !kr_source_has_unknown(e, field, at);
    case KR_KIND_FLOAT64: { /* numbers, not bits: -0.0 is the default 0.0, as it is for Kafka */
        double value, usual;
        memcpy(&value, s->data + 8 * at, 8);
        memcpy(&usual, &f->default_bits, 8);
        return value == usual;
    }
    default:
        return kr_field_number(s, f->kind, at) == f->default_bits;
    }
}

static void kr_encode_field(kr_message_encoder *e, int32_t field, int64_t at) {
    const kr_field *f = &e->program.fields[field];
    const kr_field_source *s = &e->sources[field];
    int is_null = kr_source_is_null(e, field, at);
    if (is_null && !f->is_nullable) {
        kr_encode_fail(e, field, KR_UNEXPECTED_NULL, 0, 0);
        return;
    }
    if (f->is_array) {
        int64_t count = is_null ? -1 : s->list_ends[at + 1] - s->list_ends[at];
        kr_put_length(e, count, 4);
        for (int64_t k = 0; k < count && e->error.status == KR_OK && !e->no_memory; k++) {
            int64_t item = s->list_ends[at] + k;
            if (kr_is_valid(s->valid, s->valid_at + item))
                kr_encode_item(e, field, item);
            else
                kr_encode_fail(e, field, KR_UNEXPECTED_NULL, 0, 0);
        }
        return;
    }
    if (f->kind == KR_KIND_STRUCT) {
        if (f->is_nullable && f->place == KR_PLACE_TAGGED) {
            kr_put_uvarint(e, !is_null);
        } else if (f->is_nullable) {
            uint8_t there = is_null ? 0xff : 1;
            kr_put_bytes(e, &there, 1);
        }
        if (!is_null) kr_encode_struct(e, field, at);
        return;
    }
    if (is_null)
        kr_put_length(e, -1, f->kind == KR_KIND_STRING ? 2 : 4);
    else
        kr_encode_item(e, field, at);
}

/* Puts a tag, then its field behind the size of it, which is known only afterwards. */
static void kr_encode_tagged(kr_message_encoder *e, int32_t field, int64_t at) {
    kr_put_uvarint(e, (uint64_t)e->program.fields[field].tag);
    int64_t begin = e->out.size;
    kr_encode_field(e, field, at);
    int64_t size = e->out.size - begin;
    int prefix = kr_uvarint64_size((uint64_t)size);
    if (!kr_message_room(e, prefix)) return;
    memmove(e->out.bytes + begin + prefix, e->out.bytes + begin, (size_t)size);
    kr_put_uvarint64(e->out.bytes + begin, (uint64_t)size);
    e->out.size += prefix;
}

/* Known and unknown tagged fields, in the order of their tags. */
static void kr_encode_tagged_fields(kr_message_encoder *e, int32_t field, int64_t at) {
    const kr_field *f = &e->program.fields[field], *fields = e->program.fields;
    const kr_field_source *u = &e->sources[f->unknown];
    int32_t known[KR_MOST_TAGGED];
    int32_t count = 0;
    for (int32_t k = f->first; k < f->first + f->count; k++) {
        if (fields[k].place != KR_PLACE_TAGGED || kr_source_is_default(e, k, at)) continue;
        int32_t i = count++;
        for (; i > 0 && fields[known[i - 1]].tag > fields[k].tag; i--) known[i] = known[i - 1];
        known[i] = k;
    }
    int any = kr_source_has_unknown(e, field, at);
    int64_t other = any ? u->list_ends[at] : 0, others_end = any ? u->list_ends[at + 1] : 0;
    kr_put_uvarint(e, (uint64_t)(count + others_end - other));
    int64_t last = -1; /* of the unknown ones */
    for (int32_t i = 0; (i < count || other < others_end) && e->error.status == KR_OK && !e->no_memory;) {
        int64_t tag = other < others_end ? u->tags[other] : -1;
        if (i < count && (other == others_end || fields[known[i]].tag < tag)) {
            kr_encode_tagged(e, known[i++], at);
            continue;
        }
        if (tag < 0 || tag > INT32_MAX) {
            kr_encode_fail(e, field, KR_OUT_OF_RANGE, INT32_MAX, tag);
            return;
        }
        if (i < count && fields[known[i]].tag == tag) {
            kr_encode_fail(e, field, KR_REPEATED_TAG, 0, tag);
            return;
        }
        if (tag <= last) {
            kr_encode_fail(e, field, KR_TAGS_NOT_RISING, last, tag);
            return;
        }
        last = tag;
        int64_t size = u->ends[other + 1] - u->ends[other];
        kr_put_uvarint(e, (uint64_t)tag);
        kr_put_uvarint(e, (uint64_t)size);
        kr_put_bytes(e, u->data + u->ends[other], size);
        other++;
    }
}

static void kr_encode_struct(kr_message_encoder *e, int32_t field, int64_t at) {
    const kr_field *f = &e->program.fields[field];
    for (int32_t k = f->first; k < f->first + f->count && e->error.status == KR_OK && !e->no_memory; k++) {
        const kr_field *child = &e->program.fields[k];
        if (child->place == KR_PLACE_IN_ORDER)
            kr_encode_field(e, k, at);
        else if (child->place == KR_PLACE_NONE && !child->is_ignorable && !kr_source_is_default(e, k, at))
            kr_encode_fail(e, k, KR_UNWRITABLE_FIELD, 0, 0);
    }
    if (e->program.is_compact) {
        kr_encode_tagged_fields(e, field, at);
        return;
    }
    if (kr_source_has_unknown(e, field, at)) kr_encode_fail(e, field, KR_UNWRITABLE_FIELD, 0, 0);
}

/* Appends the message of one row; 0 after a failure. */
static int kr_encode_message(kr_message_encoder *e, int64_t row) {
    kr_encode_struct(e, 0, row);
    return e->error.status == KR_OK && !e->no_memory;
}

#endif
