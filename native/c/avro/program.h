/* What a value of Avro's binary form is made of, and where its parts go: a node for each part of the writer's schema,
 * resolved against the reader's. A node whose column is -1 passes over its part. */
#ifndef KRAFTLOG_AVRO_PROGRAM_H
#define KRAFTLOG_AVRO_PROGRAM_H

#include <stdint.h>

/* What can be wrong with a value, and the sentence of it. */
#define KR_AVRO_FAULTS(X)                                                                                              \
    X(KR_AVRO_TRUNCATED, "the value ends inside of a field")                                                           \
    X(KR_AVRO_VARINT, "expected an integer of at most ten bytes and 64 bits")                                          \
    X(KR_AVRO_INT, "expected an int, found a number of more than 32 bits")                                             \
    X(KR_AVRO_BOOLEAN, "expected 0 or 1 for a boolean")                                                                \
    X(KR_AVRO_LENGTH, "a length is negative or exceeds the bytes that are left")                                       \
    X(KR_AVRO_COUNT, "a count of items exceeds what the bytes that are left can hold")                                 \
    X(KR_AVRO_BRANCH, "the union has no such branch")                                                                  \
    X(KR_AVRO_SYMBOL, "the enum has no such symbol")                                                                   \
    X(KR_AVRO_READER_SYMBOL, "the symbol is none of the reader's, which has no default")                               \
    X(KR_AVRO_UTF8, "expected UTF-8 for a string")                                                                     \
    X(KR_AVRO_DECIMAL, "the decimal has more digits than its precision")                                               \
    X(KR_AVRO_RANGE, "the timestamp is beyond what microseconds can say")                                              \
    X(KR_AVRO_UNRESOLVED, "what was written does not fit the reader's schema")                                         \
    X(KR_AVRO_DEPTH, "values are nested too deeply")                                                                   \
    X(KR_AVRO_MEMORY, "the decoded values take more memory than they may")                                             \
    X(KR_AVRO_TRAILING, "bytes are left behind the value")

#define KR_AVRO_NAME(name, sentence) name,
typedef enum { KR_AVRO_OK, KR_AVRO_FAULTS(KR_AVRO_NAME) KR_AVRO_FAULTS_END } kr_avro_status;
#undef KR_AVRO_NAME

static inline const char *kr_avro_sentence(int status) {
#define KR_AVRO_SENTENCE(name, sentence) sentence,
    static const char *const sentences[] = {"", KR_AVRO_FAULTS(KR_AVRO_SENTENCE)};
#undef KR_AVRO_SENTENCE
    return sentences[status];
}

typedef enum {
    KR_AVRO_NULL,
    KR_AVRO_BOOL,
    KR_AVRO_TO_INT,    /* a varint of 32 bits */
    KR_AVRO_TO_LONG,   /* a: whether it must have 32 bits */
    KR_AVRO_TO_FLOAT,  /* a varint; a as above */
    KR_AVRO_TO_DOUBLE, /* a varint; a as above */
    KR_AVRO_TO_MICROS, /* a varlong of milliseconds */
    KR_AVRO_FLOAT,
    KR_AVRO_WIDENED, /* a float to a double */
    KR_AVRO_DOUBLE,
    KR_AVRO_TEXT,
    KR_AVRO_BINARY,
    KR_AVRO_FIXED,      /* a: bytes */
    KR_AVRO_TO_DECIMAL, /* a: bytes, or -1 when a length stands before them; b: where the first number too large is */
    KR_AVRO_ENUM,       /* count: symbols; b: where an int32 for each stands, the reader's or -1 */
    KR_AVRO_RECORD,     /* nodes [first, first + count) */
    KR_AVRO_ARRAY,      /* first: the items; a: the least bytes of one */
    KR_AVRO_MAP,        /* the same of values */
    KR_AVRO_UNION,      /* nodes [first, first + count) are its branches */
    KR_AVRO_MEMBER,     /* first: what goes into child a of a struct, whose other children become null */
    KR_AVRO_DEFAULT,    /* first: what reads the a bytes at b of the constants */
    KR_AVRO_NEVER,      /* a: the fault of a value that gets here */
    KR_AVRO_OPS
} kr_avro_op;

typedef struct {
    int64_t op, column, first, count, a, b;
} kr_avro_node;

#endif
