/* A message of one version as a small program: a field for each field of its definition, in the definition's order.
 *
 * Every version of a message has the same fields at the same places, so that one set of columns takes all versions;
 * what differs is whether and how a field is on the wire. Fields of a struct stand next to each other, its own tagged
 * fields included. Formats: "Protocol Primitive Types" in Kafka's protocol documentation, KIP-482 for compact lengths
 * and tagged fields.
 *
 *     string, bytes, array   length (int16, int32, int32; compact: uvarint of length + 1), then that many bytes or
 * elements nullable struct        int8: below zero for null, else the struct; as a tagged field uvarint: 0 for null end
 * of a struct        in a flexible version: uvarint count, then for each tagged field uvarint tag | uvarint size | size
 * bytes
 */
#ifndef KRAFTLOG_MESSAGE_PROGRAM_H
#define KRAFTLOG_MESSAGE_PROGRAM_H

#include <stdint.h>

enum kr_kind {
    KR_KIND_BOOL,
    KR_KIND_INT8,
    KR_KIND_INT16,
    KR_KIND_UINT16,
    KR_KIND_INT32,
    KR_KIND_UINT32,
    KR_KIND_INT64,
    KR_KIND_FLOAT64,
    KR_KIND_UUID,
    KR_KIND_STRING,
    KR_KIND_BYTES,
    KR_KIND_STRUCT
};

enum kr_place { KR_PLACE_NONE, KR_PLACE_IN_ORDER, KR_PLACE_TAGGED };

enum { KR_LOW_TAGS = 16, KR_MOST_TAGGED = 16, KR_MOST_FIELDS = 64, KR_UUID_SIZE = 16, KR_UUID_TEXT_SIZE = 22 };

typedef struct {
    uint8_t kind;         /* kr_kind; of an array, that of its elements */
    uint8_t is_array;     /* 0 or 1, as all below up to `place` */
    uint8_t is_nullable;  /* in this version */
    uint8_t null_default; /* absent means null */
    uint8_t is_ignorable;
    uint8_t place;       /* kr_place */
    uint8_t tagged_slot; /* counts the tagged fields of its struct */
    uint8_t unused;
    int32_t tag;
    int32_t first, count;        /* of a struct: its fields */
    int32_t tagged;              /* of a struct: how many of them are tagged in this version */
    int32_t unknown;             /* of a struct: column of its unknown tagged fields */
    uint8_t by_tag[KR_LOW_TAGS]; /* of a struct: 1 + the number of its field that has a tag below KR_LOW_TAGS, or 0 */
    int64_t default_bits;        /* of a number: the value, or the bits of a double */
    uint8_t default_wire[KR_UUID_SIZE]; /* of a field of fixed width: as it would be on the wire */
    int32_t default_at;                 /* of a string: where in the text */
    int32_t default_size;               /* and its bytes */
    int32_t name_at, name_size;         /* the name in Kafka's JSON, in the text */
} kr_field;

/* The message itself is field 0, a struct. */
typedef struct {
    const kr_field *fields;
    const uint8_t *text;
    int32_t fields_count;
    int32_t is_compact; /* a flexible version */
} kr_program;

/* Bytes of one value of a kind that has a fixed size on the wire, else 0. */
static inline int kr_wire_width(int kind) {
    static const uint8_t widths[] = {1, 1, 2, 2, 4, 4, 8, 8, KR_UUID_SIZE, 0, 0, 0};
    return widths[kind];
}

/* Bytes of one value in a column: the next larger signed type where Arrow's users have no unsigned one. */
static inline int kr_column_width(int kind) {
    static const uint8_t widths[] = {1, 1, 2, 4, 4, 8, 8, 8, KR_UUID_SIZE, 0, 0, 0};
    return widths[kind];
}

/* The default of a field of fixed width, as its column has it. */
static inline const uint8_t *kr_default_bytes(const kr_field *f) {
    const uint8_t *bits = (const uint8_t *)&f->default_bits;
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    bits += 8 - kr_column_width(f->kind);
#endif
    return bits;
}

#endif
