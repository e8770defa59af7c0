/* How many plain bytes a compressed batch can hold at most, read from the headers of its blocks before anything is
 * decompressed: Kafka's zstd and lz4 frames do not say how large they are, but no block exceeds what its header allows.
 *
 *   zstd frame:  magic 4 | descriptor 1 | window 0-1 | dictionary id 0-4 | content size 0-8 | blocks | checksum 0-4
 *   zstd block:  last 1 bit | type 2 bits | size 21 bits, little endian | data
 *   lz4 frame:   magic 4 | flags 1 | block descriptor 1 | content size 0-8 | dictionary id 0-4 | checksum 1 | blocks
 *   lz4 block:   size 31 bits | is plain 1 bit, little endian | data | checksum 0-4
 *   gzip member: magic 2 | method 1 | flags 1 | 6 | extra field, name, comment, crc of the header | data | crc 4 | size
 * 4
 *
 * The formats are specified: RFC 8878, lz4_Frame_format.md of the lz4 project, RFC 1952. Where a payload is odd, as
 * much of it is read as Kafka's own reader takes: what follows an lz4 frame, a gzip member that cannot begin and a zstd
 * frame that is cut off before its first block ends are passed over.
 */
#ifndef KRAFTLOG_COMPRESSION_COMPRESSED_FRAMES_H
#define KRAFTLOG_COMPRESSION_COMPRESSED_FRAMES_H

#include <stdint.h>
#include <string.h>

#include "base/crc.h"

enum {
    KR_ZSTD_MAGIC = (int32_t)0xFD2FB528,
    KR_ZSTD_SKIPPABLE_MAGIC = 0x184D2A50,
    KR_ZSTD_LARGEST_BLOCK = 128 << 10,
    KR_LZ4_MAGIC = 0x184D2204,
    KR_LZ4_MAGIC_SIZE = 4,
    KR_LZ4_HEADER = 7, /* bytes without a content size */
    KR_LZ4_FLAGS_AT = 4,
    KR_LZ4_DICTIONARY = 1,
    KR_LZ4_CONTENT_CHECKSUM = 4,
    KR_LZ4_CONTENT_SIZE = 8,
};

static inline uint64_t kr_little_long(const uint8_t *p, int64_t bytes) {
    uint64_t n = 0;
    for (int64_t i = 0; i < bytes; i++) n |= (uint64_t)p[i] << 8 * i;
    return n;
}

static inline uint32_t kr_little(const uint8_t *p, int64_t bytes) { return (uint32_t)kr_little_long(p, bytes); }

/* Adds what the blocks of a zstd frame can hold; returns where they end, or NULL when they are cut. */
static inline const uint8_t *kr_zstd_blocks(const uint8_t *p, const uint8_t *end, int64_t largest, int64_t *most) {
    enum { RAW, RLE, COMPRESSED };
    for (int is_last = 0; !is_last; p += 3) {
        if (end - p < 3) return 0;
        uint32_t header = kr_little(p, 3), type = header >> 1 & 3;
        int64_t size = header >> 3;
        is_last = header & 1;
        if ((type == RLE ? 1 : size) > end - p - 3) return 0;
        *most += type == COMPRESSED ? largest : size;
        p += type == RLE ? 1 : size;
    }
    return p;
}

/* One frame at `p`; the same results. */
static inline const uint8_t *kr_zstd_frame(const uint8_t *p, const uint8_t *end, int64_t *most) {
    static const uint8_t of_content_size[] = {0, 2, 4, 8}, of_dictionary[] = {0, 1, 2, 4};
    if (end - p < 8) return 0;
    if ((kr_little(p, 4) & ~0xFu) == KR_ZSTD_SKIPPABLE_MAGIC) {
        int64_t size = kr_little(p + 4, 4);
        return size <= end - p - 8 ? p + 8 + size : 0;
    }
    if ((int32_t)kr_little(p, 4) != KR_ZSTD_MAGIC) return 0;
    uint32_t flags = p[4], is_single = flags >> 5 & 1;
    uint64_t largest = KR_ZSTD_LARGEST_BLOCK;
    if (!is_single) {
        uint64_t window = (uint64_t)1024 << (p[5] >> 3);
        window += window / 8 * (p[5] & 7);
        if (window < largest) largest = window;
    }
    int64_t size = flags >> 6 || !is_single ? of_content_size[flags >> 6] : 1;
    int64_t header = 5 + !is_single + of_dictionary[flags & 3] + size;
    if (header > end - p) return 0;
    uint64_t content = size ? kr_little_long(p + header - size, size) + (size == 2 ? 256 : 0) : UINT64_MAX;
    int64_t blocks = 0;
    p = kr_zstd_blocks(p + header, end, (int64_t)largest, &blocks);
    *most += content < (uint64_t)blocks ? (int64_t)content : blocks;
    int64_t checksum = flags >> 2 & 1 ? 4 : 0;
    return p && checksum <= end - p ? p + checksum : 0;
}

/* Whether the bytes are the start of a frame, as many as there are. */
static inline int kr_zstd_is_begun(const uint8_t *p, int64_t size) {
    static const uint8_t frame[] = {0x28, 0xB5, 0x2F, 0xFD}, skippable[] = {0x50, 0x2A, 0x4D, 0x18};
    int64_t n = size < 4 ? size : 4;
    uint8_t start[4] = {0};
    memcpy(start, p, (size_t)n);
    if (!memcmp(start, frame, (size_t)n)) return 1;
    start[0] &= 0xF0;
    return !memcmp(start, skippable, (size_t)n);
}

/* Of zstd frames one behind the other; returns where the last of them ends. -1 when one is cut, or is none, unless it
 * is begun behind another one and has not got to the end of a block. */
static inline int64_t kr_zstd_frames(const uint8_t *data, int64_t size, int64_t *most) {
    const uint8_t *p = data, *end = data + size;
    *most = 0;
    while (p < end) {
        int64_t before = *most;
        const uint8_t *next = kr_zstd_frame(p, end, most);
        if (!next) return p > data && *most == before && kr_zstd_is_begun(p, end - p) ? p - data : -1;
        p = next;
    }
    return size ? size : -1;
}

/* -1: there is none, or one that asks for a dictionary. */
static inline int64_t kr_lz4_header_size(const uint8_t *data, int64_t size) {
    if (size < KR_LZ4_HEADER || kr_little(data, 4) != KR_LZ4_MAGIC) return -1;
    int64_t header = KR_LZ4_HEADER + (data[KR_LZ4_FLAGS_AT] & KR_LZ4_CONTENT_SIZE ? 8 : 0);
    return header <= size && !(data[KR_LZ4_FLAGS_AT] & KR_LZ4_DICTIONARY) ? header : -1;
}

/* Of an lz4 frame, as much as its blocks are decompressed into without a copy; -1 when it is cut, or is none. */
static inline int64_t kr_lz4_most(const uint8_t *data, int64_t size) {
    int64_t header = kr_lz4_header_size(data, size), most = 0;
    if (header < 0 || (data[5] >> 4 & 7) < 4) return -1;
    const uint8_t *p = data + header, *end = data + size;
    int64_t largest = (int64_t)1 << (8 + 2 * (data[5] >> 4 & 7)), checksum = (data[4] >> 4 & 1) * 4;
    for (;;) {
        if (end - p < 4) return -1;
        int64_t block = kr_little(p, 4) & 0x7FFFFFFF;
        p += 4;
        if (!block) return (data[KR_LZ4_FLAGS_AT] & KR_LZ4_CONTENT_CHECKSUM ? 4 : 0) <= end - p ? most : -1;
        if (block + checksum > end - p) return -1;
        p += block + checksum;
        most += largest;
    }
}

/* How long the header of a gzip member is; -1 when there is none, it is cut, or its crc does not match. */
static inline int64_t kr_gzip_header_size(const uint8_t *p, int64_t size) {
    enum { DEFLATE = 8, HEADER_CRC = 2, EXTRA = 4, NAME = 8, COMMENT = 16, LEAST = 10 };
    int64_t at = LEAST;
    if (size < LEAST || p[0] != 0x1F || p[1] != 0x8B || p[2] != DEFLATE) return -1;
    if (p[3] & EXTRA) {
        if (size - at < 2) return -1;
        at += 2 + kr_little(p + at, 2);
    }
    for (int field = NAME; field <= COMMENT; field <<= 1) { /* each ends with a zero */
        if (!(p[3] & field)) continue;
        while (at < size && p[at]) at++;
        at++;
    }
    if (at > size) return -1;
    if (!(p[3] & HEADER_CRC)) return at;
    return size - at >= 2 && kr_little(p + at, 2) == (kr_crc32(0, p, (size_t)at) & 0xFFFF) ? at + 2 : -1;
}

/* Whether another member follows one that has ended. Java's reader looks for none in less than a header and what
 * stands behind the data. */
static inline int kr_gzip_follows(const uint8_t *p, int64_t size) {
    enum { TOO_SHORT = 18 };
    return size > TOO_SHORT && kr_gzip_header_size(p, size) >= 0;
}

/* How many bytes a gzip stream says that it holds: right when it has one member and nothing is behind it. */
static inline int64_t kr_gzip_guess(const uint8_t *data, int64_t size) {
    enum { LARGEST_EXPANSION = 1032 };
    int64_t says = size >= 4 ? (int64_t)kr_little(data + size - 4, 4) : 0;
    return says < LARGEST_EXPANSION * size ? says : LARGEST_EXPANSION * size;
}

/* xxHash32 with seed 0 of fewer than 16 bytes. */
static inline uint32_t kr_xxhash32_short(const uint8_t *p, int64_t size) {
    static const uint32_t prime[] = {0, 2654435761u, 2246822519u, 3266489917u, 668265263u, 374761393u};
    const uint8_t *end = p + size;
    uint32_t h = prime[5] + (uint32_t)size;
    for (; end - p >= 4; p += 4) {
        h += kr_little(p, 4) * prime[3];
        h = (h << 17 | h >> 15) * prime[4];
    }
    for (; p < end; p++) {
        h += *p * prime[5];
        h = (h << 11 | h >> 21) * prime[1];
    }
    h = (h ^ h >> 15) * prime[2];
    h = (h ^ h >> 13) * prime[3];
    return h ^ h >> 16;
}

/* The checksum that the header of an lz4 frame should end with: the second byte of the hash of what is behind the magic
 * number. Kafka 0.8 and 0.9 counted the magic number in, so that readers of message format 0 put the right one in. */
static inline uint8_t kr_lz4_header_checksum(const uint8_t *data, int64_t header) {
    return (uint8_t)(kr_xxhash32_short(data + KR_LZ4_MAGIC_SIZE, header - KR_LZ4_MAGIC_SIZE - 1) >> 8);
}

/* The header of a frame that does not say how many bytes it holds nor what their checksum is: Kafka's reader compares
 * neither. */
static inline void kr_lz4_plain_header(const uint8_t *data, uint8_t plain[KR_LZ4_HEADER]) {
    memcpy(plain, data, KR_LZ4_HEADER - 1);
    plain[KR_LZ4_FLAGS_AT] &= (uint8_t)~(KR_LZ4_CONTENT_SIZE | KR_LZ4_CONTENT_CHECKSUM);
    plain[KR_LZ4_HEADER - 1] = kr_lz4_header_checksum(plain, KR_LZ4_HEADER);
}

#endif
