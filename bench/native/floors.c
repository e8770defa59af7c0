/* What the hardware allows: the yardsticks of bench/run.py. Built and called by bench/floors.py. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { HEADER = 61 }; /* bytes of a batch before its records */

static int32_t big_endian_int32(const uint8_t *p) {
    return (int32_t)((uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | (uint32_t)p[3]);
}

void floor_memcpy(uint8_t *to, const uint8_t *from, int64_t size) { memcpy(to, from, (size_t)size); }

/* Steps from batch header to batch header by its length, as anyone would write it first, and returns the sum of
 * records_count. All 61 bytes of each header are read: `*touched` mixes them, so that the compiler keeps the loads. */
int64_t floor_scan(const uint8_t *log, int64_t size, uint64_t *touched) {
    enum { LENGTH_AT = 8, RECORDS_COUNT_AT = 57, OVERHEAD = 12 };
    int64_t records = 0;
    uint64_t mixed = 0, word;
    for (int64_t at = 0; at + HEADER <= size; at += OVERHEAD + big_endian_int32(log + at + LENGTH_AT)) {
        for (int i = 0; i + 8 < HEADER; i += 8) {
            memcpy(&word, log + at + i, 8);
            mixed += word;
        }
        memcpy(&word, log + at + HEADER - 8, 8);
        mixed ^= word;
        records += big_endian_int32(log + at + RECORDS_COUNT_AT);
    }
    *touched = mixed;
    return records;
}

/* Payload i lies in log[starts[i], starts[i + 1] - HEADER). -1: the function of the library refused one. */
int64_t floor_lz4(size_t (*decompress)(void *, void *, size_t *, const void *, size_t *, const void *), void *context,
                  const uint8_t *log, const int64_t *starts, int64_t batches, uint8_t *to, int64_t capacity) {
    int64_t plain = 0;
    for (int64_t i = 0; i < batches; i++) {
        size_t written = (size_t)capacity, read = (size_t)(starts[i + 1] - HEADER - starts[i]);
        if (decompress(context, to, &written, log + starts[i], &read, 0) != 0) return -1;
        plain += (int64_t)written;
    }
    return plain;
}

int64_t floor_zstd(size_t (*decompress)(void *, void *, size_t, const void *, size_t), void *context,
                   const uint8_t *log, const int64_t *starts, int64_t batches, uint8_t *to, int64_t capacity) {
    int64_t plain = 0;
    for (int64_t i = 0; i < batches; i++) {
        size_t size = (size_t)(starts[i + 1] - HEADER - starts[i]);
        size_t written = decompress(context, to, (size_t)capacity, log + starts[i], size);
        if (written > (size_t)capacity) return -1;
        plain += (int64_t)written;
    }
    return plain;
}
