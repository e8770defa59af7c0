/* How many plain bytes a compressed batch can hold at most, read from the headers of its blocks before anything is
 * decompressed: Kafka's zstd and lz4 frames do not say how large they are, but no block exceeds what its header allows.
 *
 *   zstd frame:  magic 4 | descriptor 1 | window 0-1 | dictionary id 0-4 | content size 0-8 | blocks | checksum 0-4
 *   zstd block:  last 1 bit | type 2 bits | size 21 bits, little endian | data
 *   lz4 frame:   magic 4 | flags 1 | block descriptor 1 | content size 0-8 | dictionary id 0-4 | checksum 1 | blocks
 *   lz4 block:   size 31 bits | is plain 1 bit, little endian | data | checksum 0-4
 *
 * Both formats are specified: RFC 8878, and lz4_Frame_format.md of the lz4 project.
 */
#ifndef KRAFTLOG_COMPRESSED_FRAMES_H
#define KRAFTLOG_COMPRESSED_FRAMES_H

#include <stdint.h>

enum {
    KR_ZSTD_MAGIC = (int32_t)0xFD2FB528,
    KR_ZSTD_SKIPPABLE_MAGIC = 0x184D2A50,
    KR_ZSTD_LARGEST_BLOCK = 128 << 10,
    KR_LZ4_MAGIC = 0x184D2204,
    KR_LZ4_MAGIC_SIZE = 4,
    KR_LZ4_HEADER = 7, /* bytes without content size and dictionary id */
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
        *most += type == COMPRESSED ? largest : size;
        if (type != RLE && size > end - p - 3) return 0;
        p += type == RLE ? 1 : size;
        if (p > end - 3) return 0;
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

/* Of zstd frames one behind the other; -1 when one is cut, or is none. */
static inline int64_t kr_zstd_most(const uint8_t *data, int64_t size) {
    int64_t most = 0;
    const uint8_t *p = data, *end = data + size;
    while (p < end)
        if (!(p = kr_zstd_frame(p, end, &most))) return -1;
    return size ? most : -1;
}

static inline int64_t kr_lz4_header_size(const uint8_t *data, int64_t size) {
    if (size < KR_LZ4_HEADER || kr_little(data, 4) != KR_LZ4_MAGIC) return -1;
    int64_t header = KR_LZ4_HEADER + (data[4] >> 3 & 1) * 8 + (data[4] & 1) * 4;
    return header <= size ? header : -1;
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
        if (!block) return most;
        if (block + checksum > end - p) return -1;
        p += block + checksum;
        most += largest;
    }
}

static inline int kr_is_gzip(const uint8_t *data, int64_t size) {
    return size >= 2 && data[0] == 0x1F && data[1] == 0x8B;
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

#endif
