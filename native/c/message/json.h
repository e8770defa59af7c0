/* Messages as Kafka's JSON: the fields that the version has, in the definition's order, tagged ones where they are
 * present. Tagged fields that the program does not know follow as "unknownTaggedFields". */
#ifndef KRAFTLOG_MESSAGE_JSON_H
#define KRAFTLOG_MESSAGE_JSON_H

#include <math.h>
#include <stdio.h>

#include "message/decode.h"
#include "text/base64.h"
#include "text/json.h"

typedef struct {
    kr_message_decoder *d; /* its columns serve for unknown tagged fields alone */
    kr_growing *out;
} kr_json_printer;

static void kr_print_struct(kr_json_printer *j, int32_t field, kr_rows *one);

/* Where n bytes more can be written; NULL when memory is short. */
static uint8_t *kr_print_room(kr_json_printer *j, int64_t n) {
    if (!kr_reserve(j->out, n)) {
        j->d->no_memory = 1;
        return 0;
    }
    return j->out->bytes + j->out->size;
}

static void kr_print_put(kr_json_printer *j, const void *text, int64_t n) {
    uint8_t *to = kr_print_room(j, n);
    if (!to) return;
    if (n) memcpy(to, text, (size_t)n);
    j->out->size += n;
}

static void kr_print_literal(kr_json_printer *j, const char *text) { kr_print_put(j, text, (int64_t)strlen(text)); }

static void kr_print_integer(kr_json_printer *j, int64_t value) {
    char text[20], *at = text + sizeof text;
    uint64_t left = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    do *--at = (char)('0' + left % 10);
    while (left /= 10);
    if (value < 0) *--at = '-';
    kr_print_put(j, at, text + sizeof text - at);
}

/* The shortest decimal that is this number again. */
static void kr_print_double(kr_json_printer *j, double value) {
    char text[40];
    if (!isfinite(value)) {
        kr_print_literal(j, isnan(value) ? "\"NaN\"" : value > 0 ? "\"Infinity\"" : "\"-Infinity\"");
        return;
    }
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, 0) == value) break;
    }
    kr_print_literal(j, text);
    if (!strpbrk(text, ".e")) kr_print_literal(j, ".0");
}

/* Text between quotes, with what is no UTF-8 replaced as Java does; escapes as Jackson writes them. */
static void kr_print_text(kr_json_printer *j, const uint8_t *from, int64_t n) {
    kr_level repaired;
    memset(&repaired, 0, sizeof repaired);
    const uint8_t *text = from;
    if (!kr_is_utf8(from, n)) {
        if (!kr_put_text(&repaired, from, n, 1)) j->d->no_memory = 1;
        text = repaired.data.bytes;
        n = repaired.data.size;
    }
    uint8_t *to = kr_print_room(j, kr_json_size(text, n));
    if (to) j->out->size += kr_json_write(to, text, n, kr_upper_hex_digits) - to;
    kr_growing_free(&repaired.data);
}

static void kr_print_base64(kr_json_printer *j, const uint8_t *from, int64_t n) {
    uint8_t *to = kr_print_room(j, kr_base64_size(n) + 2);
    if (!to) return;
    *to = '"';
    uint8_t *end = kr_base64_write(to + 1, from, n);
    *end = '"';
    j->out->size += end + 1 - to;
}

static void kr_print_number(kr_json_printer *j, int kind, const uint8_t *p) {
    int64_t bits;
    double value;
    uint8_t text[KR_UUID_TEXT_SIZE + 2];
    switch (kind) {
    case KR_KIND_BOOL:
        kr_print_literal(j, *p ? "true" : "false");
        return;
    case KR_KIND_INT8:
        kr_print_integer(j, (int8_t)*p);
        return;
    case KR_KIND_INT16:
        kr_print_integer(j, kr_load_int16(p));
        return;
    case KR_KIND_UINT16:
        kr_print_integer(j, (uint16_t)kr_load_int16(p));
        return;
    case KR_KIND_INT32:
        kr_print_integer(j, kr_load_int32(p));
        return;
    case KR_KIND_UINT32:
        kr_print_integer(j, kr_load_uint32(p));
        return;
    case KR_KIND_INT64:
        kr_print_integer(j, kr_load_int64(p));
        return;
    case KR_KIND_UUID:
        text[0] = text[KR_UUID_TEXT_SIZE + 1] = '"';
        kr_uuid_text(text + 1, p);
        kr_print_put(j, text, KR_UUID_TEXT_SIZE + 2);
        return;
    default:
        bits = kr_load_int64(p);
        memcpy(&value, &bits, sizeof value);
        kr_print_double(j, value);
    }
}

/* One value, or one element of an array. Without `put` it is only checked and passed over. */
static void kr_print_item(kr_json_printer *j, int32_t field, kr_rows *one, int put) {
    int kind = j->d->program.fields[field].kind;
    int wire = kr_wire_width(kind);
    if (wire) {
        const uint8_t *p = one->pos[0];
        if (one->end[0] - p < wire) {
            kr_row_fail(j->d, field, one, 0, KR_TRUNCATED_FIELD, wire, one->end[0] - p);
            return;
        }
        if (put) kr_print_number(j, kind, p);
        one->pos[0] = p + wire;
        return;
    }
    const uint8_t *text = 0;
    int64_t length = kr_row_text(j->d, field, one, 0, &text);
    if (length == KR_LENGTH_NULL && j->d->program.fields[field].is_array) { /* an array may be null, its elements not */
        kr_row_fail(j->d, field, one, 0, KR_UNEXPECTED_NULL, 0, 0);
        return;
    }
    if (!put || length == KR_LENGTH_FAILED) return;
    if (length == KR_LENGTH_NULL)
        kr_print_literal(j, "null");
    else if (kind == KR_KIND_STRING)
        kr_print_text(j, text, length);
    else
        kr_print_base64(j, text, length);
}

static void kr_print_struct_or_pass(kr_json_printer *j, int32_t field, kr_rows *one, int put) {
    int64_t size = j->out->size;
    kr_print_struct(j, field, one);
    if (!put) j->out->size = size;
}

static void kr_print_field(kr_json_printer *j, int32_t field, kr_rows *one, int put) {
    const kr_field *f = &j->d->program.fields[field];
    if (f->is_array) {
        int64_t count = kr_row_length(j->d, field, one, 0, 4);
        if (count == KR_LENGTH_FAILED) return;
        int wire = kr_wire_width(f->kind); /* what takes no fixed number of bytes takes one at least */
        if (count > (one->end[0] - one->pos[0]) / (wire ? wire : 1)) {
            kr_row_fail(j->d, field, one, 0, KR_BAD_ELEMENTS_COUNT, one->end[0] - one->pos[0], count);
            return;
        }
        if (put) kr_print_literal(j, count < 0 ? "null" : "[");
        for (int64_t k = 0; k < count && one->pos[0] && !j->d->no_memory; k++) {
            if (put && k) kr_print_put(j, ",", 1);
            if (f->kind == KR_KIND_STRUCT)
                kr_print_struct_or_pass(j, field, one, put);
            else
                kr_print_item(j, field, one, put);
        }
        if (put && count >= 0) kr_print_put(j, "]", 1);
        return;
    }
    if (f->kind != KR_KIND_STRUCT) {
        kr_print_item(j, field, one, put);
        return;
    }
    if (f->is_nullable) {
        int64_t is_null = kr_row_is_null(j->d, field, one, 0);
        if (is_null > 0 && put) kr_print_literal(j, "null");
        if (is_null) return;
    }
    kr_print_struct_or_pass(j, field, one, put);
}

static void kr_print_unknown(kr_json_printer *j, kr_column *u, int64_t from, int is_first) {
    kr_print_literal(j, is_first ? "\"unknownTaggedFields\":[" : ",\"unknownTaggedFields\":[");
    for (int64_t k = from; k < u->item.count; k++) {
        int32_t begin, end;
        int64_t tag;
        memcpy(&begin, u->item.ends.bytes + 4 * k, 4);
        memcpy(&end, u->item.ends.bytes + 4 * k + 4, 4);
        memcpy(&tag, u->tags.bytes + 8 * k, 8);
        kr_print_literal(j, k > from ? ",{\"tag\":" : "{\"tag\":");
        kr_print_integer(j, tag);
        kr_print_literal(j, ",\"data\":");
        kr_print_base64(j, u->item.data.bytes + begin, end - begin);
        kr_print_put(j, "}", 1);
    }
    kr_print_put(j, "]", 1);
}

static void kr_print_find_tagged(kr_json_printer *j, int32_t field, kr_rows *one, kr_tagged *found) {
    if (!j->d->program.is_compact || !one->pos[0]) return;
    int64_t count = kr_row_uvarint(j->d, field, one, 0);
    if (count > 0) kr_find_tagged(j->d, field, one, 0, count, found);
}

/* Tagged fields come last on the wire: of a struct that has some, all fields are passed over to learn where each is
 * before they are put in order. */
static void kr_print_struct(kr_json_printer *j, int32_t field, kr_rows *one) {
    kr_message_decoder *d = j->d;
    const kr_field *f = &d->program.fields[field];
    const uint8_t *where[KR_MOST_FIELDS], *tagged_pos[KR_MOST_TAGGED], *tagged_end[KR_MOST_TAGGED];
    kr_tagged found[KR_MOST_TAGGED];
    kr_column *u = &d->columns[f->unknown];
    int64_t unknown = u->item.count;
    for (int32_t k = 0; k < f->tagged; k++) {
        tagged_pos[k] = tagged_end[k] = 0;
        found[k].pos = &tagged_pos[k];
        found[k].end = &tagged_end[k];
        found[k].any = 1;
    }
    if (f->tagged) {
        for (int32_t k = 0; k < f->count && one->pos[0]; k++) {
            where[k] = one->pos[0];
            if (d->program.fields[f->first + k].place == KR_PLACE_IN_ORDER) kr_print_field(j, f->first + k, one, 0);
        }
        kr_print_find_tagged(j, field, one, found);
        if (!one->pos[0]) return;
    }
    int is_first = 1;
    kr_print_put(j, "{", 1);
    for (int32_t k = 0; k < f->count && one->pos[0]; k++) {
        const kr_field *child = &d->program.fields[f->first + k];
        const uint8_t *p = f->tagged ? where[k] : one->pos[0], *end = one->end[0];
        if (child->place == KR_PLACE_TAGGED) {
            p = tagged_pos[child->tagged_slot];
            end = tagged_end[child->tagged_slot];
        }
        if (child->place == KR_PLACE_NONE || !p) continue;
        kr_print_literal(j, is_first ? "\"" : ",\"");
        kr_print_put(j, d->program.text + child->name_at, child->name_size);
        kr_print_literal(j, "\":");
        is_first = 0;
        kr_rows value = {one->start, &p, &end, 1, one->row};
        kr_print_field(j, f->first + k, &value, 1);
        if (p && child->place == KR_PLACE_TAGGED && p != end)
            kr_row_fail(d, f->first + k, &value, 0, KR_BAD_TAGGED_FIELD_SIZE, end - p, 0);
        if (!p || !f->tagged) one->pos[0] = p;
    }
    if (!f->tagged) kr_print_find_tagged(j, field, one, found);
    if (!one->pos[0]) return;
    if (u->item.count > unknown) {
        kr_print_unknown(j, u, unknown, is_first);
        u->item.count = unknown;
        u->item.ends.size = 4 * (unknown + 1);
        u->tags.size = 8 * unknown;
        int32_t end;
        memcpy(&end, u->item.ends.bytes + 4 * unknown, 4);
        u->item.data.size = end;
    }
    kr_print_put(j, "}", 1);
}

/* Appends the message in one value. Its text is taken back when the message turns out to be bad; bytes behind it leave
 * the text and are a fault as well. */
static void kr_print_message(kr_json_printer *j, const uint8_t *start, const uint8_t *pos, const uint8_t *end,
                             int64_t row) {
    int64_t size = j->out->size;
    kr_rows one = {&start, &pos, &end, 1, row};
    kr_print_struct(j, 0, &one);
    if (!pos)
        j->out->size = size;
    else if (pos != end)
        kr_row_fail(j->d, 0, &one, 0, KR_MESSAGE_TRAILING_BYTES, 0, end - pos);
}

#endif
