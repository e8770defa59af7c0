/* Snappy, whose blocks are simple enough to be read and written here, in the framings that Kafka knows.
 *
 *   block:   uvarint plain size | elements
 *   element: two bits of kind in a tag of one byte: a literal, of up to 60 bytes or with its size in 1-4 bytes more, or
 *            a copy of 1-64 bytes from 1-4 bytes of offset back
 *   xerial:  magic 8 | version int32 | compatible int32 | (int32 size | block)*, once or more often
 *
 * Specified in format_description.txt of the snappy project, and by snappy-java for xerial.
 */
#ifndef KRAFTLOG_COMPRESSION_SNAPPY_H
#define KRAFTLOG_COMPRESSION_SNAPPY_H

#include <string.h>

#include "base/endian.h"
#include "base/status.h"
#include "base/varint.h"

enum {
    KR_XERIAL_MAGIC_SIZE = 8,
    KR_XERIAL_HEADER = 16,
    KR_XERIAL_BLOCK = 32 << 10,
    KR_SNAPPY_LARGEST_EXPANSION = 64, /* a copy of 64 bytes takes 3, and one of 11 takes 2 */
    KR_SNAPPY_WORD = 16,              /* bytes that are copied at once */
    KR_SNAPPY_HASH_BITS = 13,
    KR_SNAPPY_TAIL = 15, /* bytes at the end of a block where no copy starts */
};

static const uint8_t kr_xerial_header[KR_XERIAL_HEADER] = {0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0,
                                                           0,    0,   0,   1,   0,   0,   0,   1};

static inline int kr_is_xerial(const uint8_t *data, int64_t size) {
    return size >= KR_XERIAL_MAGIC_SIZE && !memcmp(data, kr_xerial_header, KR_XERIAL_MAGIC_SIZE);
}

/* Reads the plain size that a block starts with; returns what follows, or NULL when there is none. */
static inline const uint8_t *kr_snappy_size(const uint8_t *p, const uint8_t *end, int64_t *plain) {
    uint64_t n;
    p = kr_uvarint(p, end, KR_VARINT_MAX, &n);
    if (!p || n > UINT32_MAX) return 0;
    *plain = (int64_t)n;
    return p;
}

/* The next block of xerial framing, or all of the data without it. 0 at the end, -1 when the framing is broken. As in
 * snappy-java, the end is also where too few bytes for a size are left, or what begins as a header does and is none. */
static inline int kr_snappy_block(const uint8_t *data, int64_t size, int64_t *at, const uint8_t **block,
                                  int64_t *block_size) {
    if (*at == size) return 0;
    if (!kr_is_xerial(data, size)) {
        *block = data;
        *block_size = *at = size;
        return 1;
    }
    for (;;) {
        int is_header = size - *at >= 4 && !memcmp(data + *at, kr_xerial_header, 4);
        if (size - *at < (is_header ? KR_XERIAL_HEADER : 4)) return is_header ? -1 : 0;
        if (!is_header) break;
        if (!kr_is_xerial(data + *at, size - *at)) return 0;
        *at += KR_XERIAL_HEADER;
    }
    *block_size = kr_load_int32(data + *at);
    *block = data + *at + 4;
    if (*block_size <= 0 || *block_size > size - *at - 4) return -1;
    *at += 4 + *block_size;
    return 1;
}

/* How many bytes the blocks say they hold; -1 when the framing is broken or a block says more than it can hold. */
static inline int64_t kr_snappy_most(const uint8_t *data, int64_t size) {
    int64_t most = 0, at = 0, block_size, plain;
    const uint8_t *block;
    int status;
    while ((status = kr_snappy_block(data, size, &at, &block, &block_size)) > 0) {
        if (!kr_snappy_size(block, block + block_size, &plain)) return -1;
        if (plain > KR_SNAPPY_LARGEST_EXPANSION * block_size) return -1;
        most += plain;
    }
    return status < 0 ? -1 : most;
}

/* Copies n bytes from `offset` back, which may overlap; up to KR_SNAPPY_WORD - 1 bytes behind are written as well. */
static inline void kr_snappy_copy(uint8_t *out, int64_t offset, int64_t n) {
    const uint8_t *from = out - offset;
    if (offset >= KR_SNAPPY_WORD) {
        for (int64_t i = 0; i < n; i += KR_SNAPPY_WORD) memcpy(out + i, from + i, KR_SNAPPY_WORD);
    } else {
        for (int64_t i = 0; i < n; i++) out[i] = from[i];
    }
}

/* One block into [out, out + room), behind which KR_SNAPPY_WORD bytes can be written; returns the plain size or -1. */
static inline int64_t kr_snappy_uncompress(const uint8_t *p, const uint8_t *end, uint8_t *start, int64_t room) {
    int64_t plain;
    if (!(p = kr_snappy_size(p, end, &plain)) || plain > room) return -1;
    uint8_t *out = start, *stop = start + plain;
    while (p < end) {
        uint32_t tag = *p++, kind = tag & 3;
        int64_t n = (int64_t)(tag >> 2) + 1, offset = 0;
        int64_t more = kind ? (kind == 3 ? 4 : kind) : (n > 60 ? n - 60 : 0); /* bytes that belong to the tag */
        if (more > end - p) return -1;
        for (int64_t i = 0; i < more; i++) offset |= (int64_t)p[i] << 8 * i;
        p += more;
        if (!kind) {
            if (more) n = offset + 1;
            if (n > end - p || n > stop - out) return -1;
            if (n <= KR_SNAPPY_WORD && end - p >= KR_SNAPPY_WORD)
                memcpy(out, p, KR_SNAPPY_WORD);
            else
                memcpy(out, p, (size_t)n);
            p += n;
        } else {
            if (kind == 1) {
                n = 4 + (tag >> 2 & 7);
                offset |= (int64_t)(tag >> 5) << 8;
            }
            if (offset == 0 || offset > out - start || n > stop - out) return -1;
            kr_snappy_copy(out, offset, n);
        }
        out += n;
    }
    return out == stop ? plain : -1;
}

/* All blocks; out has room for kr_snappy_most and KR_SNAPPY_WORD bytes more. Returns the plain size or -1. */
static inline int64_t kr_snappy_decompress(const uint8_t *data, int64_t size, uint8_t *out, int64_t room) {
    int64_t made = 0, at = 0, block_size;
    const uint8_t *block;
    while (kr_snappy_block(data, size, &at, &block, &block_size) > 0) {
        int64_t n = kr_snappy_uncompress(block, block + block_size, out + made, room - made);
        if (n < 0) return -1;
        made += n;
    }
    return made;
}

static inline uint8_t *kr_snappy_put_literal(uint8_t *out, const uint8_t *from, int64_t n) {
    uint32_t count = (uint32_t)(n - 1);
    if (!n) return out;
    if (count < 60) {
        *out++ = (uint8_t)(count << 2);
    } else {
        int bytes = count < 1 << 8 ? 1 : 2; /* a block holds no more */
        *out++ = (uint8_t)((59 + bytes) << 2);
        for (int i = 0; i < bytes; i++) *out++ = (uint8_t)(count >> 8 * i);
    }
    memcpy(out, from, (size_t)n);
    return out + n;
}

static inline uint8_t *kr_snappy_put_copy(uint8_t *out, int64_t offset, int64_t n) {
    while (n) {
        int64_t part = n > 64 ? (n < 68 ? 60 : 64) : n; /* leaves 4 bytes at least */
        if (part >= 4 && part < 12 && offset < 2048) {
            *out++ = (uint8_t)(1 | (part - 4) << 2 | offset >> 8 << 5);
            *out++ = (uint8_t)offset;
        } else {
            *out++ = (uint8_t)(2 | (part - 1) << 2);
            *out++ = (uint8_t)offset;
            *out++ = (uint8_t)(offset >> 8);
        }
        n -= part;
    }
    return out;
}

static inline uint32_t kr_snappy_word(const uint8_t *p) {
    uint32_t x;
    memcpy(&x, p, sizeof x);
    return x;
}

static inline uint32_t kr_snappy_hash(const uint8_t *p) {
    return kr_snappy_word(p) * 0x1E35A7BD >> (32 - KR_SNAPPY_HASH_BITS);
}

/* One block of at most KR_XERIAL_BLOCK bytes; returns where it ends. */
static inline uint8_t *kr_snappy_compress_block(const uint8_t *start, int64_t size, uint8_t *out) {
    uint16_t table[1 << KR_SNAPPY_HASH_BITS];
    const uint8_t *end = start + size, *p = start, *written = start;
    int64_t misses = 32; /* the more, the further it steps */
    out = kr_put_uvarint64(out, (uint64_t)size);
    memset(table, 0, sizeof table);
    for (p++; end - p > KR_SNAPPY_TAIL;) {
        uint16_t *slot = &table[kr_snappy_hash(p)];
        const uint8_t *before = start + *slot;
        *slot = (uint16_t)(p - start);
        if (kr_snappy_word(before) != kr_snappy_word(p)) {
            p += misses++ >> 5;
            continue;
        }
        int64_t same = 4;
        while (p + same < end && before[same] == p[same]) same++;
        out = kr_snappy_put_literal(out, written, p - written);
        out = kr_snappy_put_copy(out, p - before, same);
        written = p += same;
        misses = 32;
    }
    return kr_snappy_put_literal(out, written, end - written);
}

/* At most this many bytes: each block may grow by its size, a literal's tag, and one byte in 6. */
static inline int64_t kr_snappy_bound(int64_t size) {
    return KR_XERIAL_HEADER + size + size / 6 + (size / KR_XERIAL_BLOCK + 1) * 36;
}

/* Xerial framing, in blocks as Kafka's client writes them; returns the size. */
static inline int64_t kr_snappy_compress(const uint8_t *data, int64_t size, uint8_t *out) {
    uint8_t *p = out + KR_XERIAL_HEADER;
    memcpy(out, kr_xerial_header, KR_XERIAL_HEADER);
    for (int64_t at = 0; at < size; at += KR_XERIAL_BLOCK) {
        int64_t n = size - at < KR_XERIAL_BLOCK ? size - at : KR_XERIAL_BLOCK;
        uint8_t *begin = p + 4;
        p = kr_snappy_compress_block(data + at, n, begin);
        kr_store_int32(begin - 4, (int32_t)(p - begin));
    }
    return p - out;
}

#endif
