/* A message with a field of each sort, as a program of a flexible version and of a plain one, and random bytes of it,
 * written in the plainest way.
 *
 *     flag bool | name string, nullable | id uuid | numbers []int32, nullable | list []struct | maybe struct, nullable
 * | words []string | tag 0 string, "usual" | tag 1 []uuid, nullable | tag 5 struct, nullable list:  port uint16 | host
 * string | tag 3 int64, -1 maybe: bytes | score float64 tag 5: count uint32
 *
 * The plain version has no tagged fields. */
#ifndef KRAFTLOG_TESTS_MESSAGE_PROGRAMS_H
#define KRAFTLOG_TESTS_MESSAGE_PROGRAMS_H

#include "bytes.h"
#include "check.h"
#include "message/program.h"

enum message_field {
    MESSAGE,
    FLAG,
    NAME,
    ID,
    NUMBERS,
    LIST,
    MAYBE,
    WORDS,
    TAG_TEXT,
    TAG_IDS,
    TAG_STRUCT,
    LIST_PORT,
    LIST_HOST,
    LIST_TAG,
    MAYBE_BYTES,
    MAYBE_SCORE,
    TAG_COUNT,
    MESSAGE_FIELDS,
    MESSAGE_STRUCTS = 4,
    MESSAGE_COLUMNS = MESSAGE_FIELDS + MESSAGE_STRUCTS
};

static const char message_text[] = "flag name id numbers list maybe words tagText tagIds tagStruct port host tag bytes "
                                   "score count usual";

typedef struct {
    kr_field fields[MESSAGE_FIELDS];
    kr_program program;
} message_program;

static void message_field_set(message_program *m, int field, int kind, int is_array, int is_nullable,
                              const char *name) {
    kr_field *f = &m->fields[field];
    f->kind = (uint8_t)kind;
    f->is_array = (uint8_t)is_array;
    f->is_nullable = (uint8_t)is_nullable;
    f->place = KR_PLACE_IN_ORDER;
    f->tag = -1;
    f->unknown = -1;
    f->name_size = (int32_t)strlen(name);
    f->name_at = name[0] ? (int32_t)(strstr(message_text, name) - message_text) : 0;
}

static void message_struct_set(message_program *m, int field, int first, int count, int tagged, int number) {
    kr_field *f = &m->fields[field];
    f->first = first;
    f->count = count;
    f->tagged = tagged;
    f->unknown = MESSAGE_FIELDS + number;
    for (int k = 0; k < count; k++)
        if (m->fields[first + k].place == KR_PLACE_TAGGED) f->by_tag[m->fields[first + k].tag] = (uint8_t)(k + 1);
}

static void message_tag_set(message_program *m, int field, int tag, int slot, int null_default) {
    kr_field *f = &m->fields[field];
    f->place = m->program.is_compact ? KR_PLACE_TAGGED : KR_PLACE_NONE;
    f->tag = tag;
    f->tagged_slot = (uint8_t)slot;
    f->null_default = (uint8_t)null_default;
}

static void message_program_make(message_program *m, int is_compact) {
    memset(m, 0, sizeof *m);
    m->program.fields = m->fields;
    m->program.fields_count = MESSAGE_FIELDS;
    m->program.text = (const uint8_t *)message_text;
    m->program.is_compact = is_compact;
    message_field_set(m, MESSAGE, KR_KIND_STRUCT, 0, 0, "");
    message_field_set(m, FLAG, KR_KIND_BOOL, 0, 0, "flag");
    message_field_set(m, NAME, KR_KIND_STRING, 0, 1, "name");
    message_field_set(m, ID, KR_KIND_UUID, 0, 0, "id");
    message_field_set(m, NUMBERS, KR_KIND_INT32, 1, 1, "numbers");
    message_field_set(m, LIST, KR_KIND_STRUCT, 1, 0, "list");
    message_field_set(m, MAYBE, KR_KIND_STRUCT, 0, 1, "maybe");
    message_field_set(m, WORDS, KR_KIND_STRING, 1, 0, "words");
    message_field_set(m, TAG_TEXT, KR_KIND_STRING, 0, 0, "tagText");
    message_field_set(m, TAG_IDS, KR_KIND_UUID, 1, 1, "tagIds");
    message_field_set(m, TAG_STRUCT, KR_KIND_STRUCT, 0, 1, "tagStruct");
    message_field_set(m, LIST_PORT, KR_KIND_UINT16, 0, 0, "port");
    message_field_set(m, LIST_HOST, KR_KIND_STRING, 0, 0, "host");
    message_field_set(m, LIST_TAG, KR_KIND_INT64, 0, 0, "tag ");
    message_field_set(m, MAYBE_BYTES, KR_KIND_BYTES, 0, 0, "bytes");
    message_field_set(m, MAYBE_SCORE, KR_KIND_FLOAT64, 0, 0, "score");
    message_field_set(m, TAG_COUNT, KR_KIND_UINT32, 0, 0, "count");
    m->fields[LIST_TAG].name_size = 3;
    m->fields[LIST_TAG].default_bits = -1;
    memset(m->fields[LIST_TAG].default_wire, 0xff, 8);
    m->fields[MAYBE].null_default = 1;
    message_tag_set(m, TAG_TEXT, 0, 0, 0);
    message_tag_set(m, TAG_IDS, 1, 1, 1);
    message_tag_set(m, TAG_STRUCT, 5, 2, 1);
    message_tag_set(m, LIST_TAG, 3, 0, 0);
    m->fields[TAG_TEXT].default_at = (int32_t)(strstr(message_text, "usual") - message_text);
    m->fields[TAG_TEXT].default_size = 5;
    message_struct_set(m, MESSAGE, FLAG, TAG_STRUCT - FLAG + 1, is_compact ? 3 : 0, 0);
    message_struct_set(m, LIST, LIST_PORT, 3, is_compact ? 1 : 0, 1);
    message_struct_set(m, MAYBE, MAYBE_BYTES, 2, 0, 2);
    message_struct_set(m, TAG_STRUCT, TAG_COUNT, 1, 0, 3);
}

/* ---- random bytes of it ---- */

static void put_unsigned(bytes *b, uint64_t x) {
    for (; x > 0x7f; x >>= 7) put_fill(b, (int)(x & 0x7f) | 0x80, 1);
    put_fill(b, (int)x, 1);
}

static void put_size(bytes *b, int is_compact, int64_t n, int width) {
    if (is_compact)
        put_unsigned(b, (uint64_t)(n + 1));
    else
        put_int(b, n, width);
}

static void put_random(bytes *b, int64_t n) {
    for (; n > 0; n--) put_fill(b, (int)random_below(256), 1);
}

/* ASCII, so that what is written is what is read; null when that is allowed. */
static void put_random_text(bytes *b, int is_compact, int width, int is_nullable) {
    int64_t n = is_nullable && !random_below(4) ? -1 : random_below(16) ? random_below(20) : random_below(300);
    put_size(b, is_compact, n, width);
    for (; n > 0; n--) put_fill(b, (int)random_below(128), 1);
}

/* A tagged field: its tag, its size and its bytes. */
static void put_tagged(bytes *b, int tag, const bytes *field) {
    put_unsigned(b, (uint64_t)tag);
    put_unsigned(b, (uint64_t)field->size);
    put_bytes(b, field->at, field->size);
}

/* The end of a struct with unknown tagged fields behind `count` known ones that `known` holds. */
static void put_tags(bytes *b, int is_compact, int count, const bytes *known) {
    static bytes one;
    if (!is_compact) return;
    int more = (int)random_below(3), tag = 6;
    put_unsigned(b, (uint64_t)(count + more));
    put_bytes(b, known->at, known->size);
    for (int i = 0; i < more; i++) {
        one.size = 0;
        put_random(&one, random_below(9));
        tag += 1 + (int)random_below(300);
        put_tagged(b, tag, &one);
    }
}

static void put_list_struct(bytes *b, int is_compact) {
    static bytes known, one;
    known.size = one.size = 0;
    put_random(b, 2);
    put_random_text(b, is_compact, 2, 0);
    int has = is_compact && random_below(2);
    put_int(&one, random_below(1000), 8);
    if (has) put_tagged(&known, 3, &one);
    put_tags(b, is_compact, has, &known);
}

/* A message as Kafka would write it: tags rise, and nothing that is default is tagged. */
static void put_random_message(bytes *b, int is_compact) {
    static bytes known, one, none;
    known.size = one.size = 0;
    put_fill(b, (int)random_below(2), 1);
    put_random_text(b, is_compact, 2, 1);
    put_random(b, 16);
    int64_t n = random_below(5) - 1;
    put_size(b, is_compact, n, 4);
    put_random(b, 4 * n);
    n = random_below(4);
    put_size(b, is_compact, n, 4);
    for (; n > 0; n--) put_list_struct(b, is_compact);
    int is_there = random_below(2) ? 1 : -1;
    put_int(b, is_there, 1);
    if (is_there > 0) {
        put_random_text(b, is_compact, 4, 0);
        put_random(b, 8);
        put_tags(b, is_compact, 0, &none);
    }
    n = random_below(4);
    put_size(b, is_compact, n, 4);
    for (; n > 0; n--) put_random_text(b, is_compact, 2, 0);
    int count = 0;
    if (is_compact && random_below(2)) {
        put_size(&one, 1, 4, 2);
        put_bytes(&one, "text", 4);
        put_tagged(&known, 0, &one);
        count++;
    }
    one.size = 0;
    if (is_compact && random_below(2)) {
        n = random_below(4);
        put_size(&one, 1, n, 4);
        put_random(&one, 16 * n);
        put_tagged(&known, 1, &one);
        count++;
    }
    one.size = 0;
    if (is_compact && random_below(2)) {
        put_unsigned(&one, 1);
        put_random(&one, 4);
        put_tags(&one, 1, 0, &none);
        put_tagged(&known, 5, &one);
        count++;
    }
    put_tags(b, is_compact, count, &known);
}

#endif
