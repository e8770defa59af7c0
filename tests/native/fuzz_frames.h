/* What compressed batches hold: the headers of frames, and snappy, both of which are read here and not by a library. */
#ifndef KRAFTLOG_TESTS_FUZZ_FRAMES_H
#define KRAFTLOG_TESTS_FUZZ_FRAMES_H

#include "compression/compressed_frames.h"
#include "compression/snappy.h"
#include "fuzz_mutate.h"

enum { MOST_PLAIN = 1 << 20 };

/* A round trip, and what damage makes of it. */
static inline void check_snappy(const uint8_t *p, int64_t size) {
    int64_t most = kr_snappy_most(p, size);
    CHECK_TRUE(most >= -1 && most <= KR_SNAPPY_LARGEST_EXPANSION * size);
    if (most < 0 || most > MOST_PLAIN) return;
    uint8_t *plain = malloc((size_t)most + KR_SNAPPY_WORD);
    int64_t made = kr_snappy_decompress(p, size, plain, most);
    CHECK_TRUE(made == -1 || made == most);
    if (made >= 0) {
        uint8_t *packed = malloc((size_t)kr_snappy_bound(made)), *again = malloc((size_t)made + KR_SNAPPY_WORD);
        int64_t packed_size = kr_snappy_compress(plain, made, packed);
        CHECK_INT(made, kr_snappy_most(packed, packed_size));
        CHECK_INT(made, kr_snappy_decompress(packed, packed_size, again, made));
        CHECK_BYTES(plain, made, again, made);
        free(again);
        free(packed);
    }
    free(plain);
}

static inline void check_frame_headers(const uint8_t *p, int64_t size) {
    uint8_t plain[KR_LZ4_HEADER];
    int64_t most, zstd = kr_zstd_frames(p, size, &most), lz4 = kr_lz4_most(p, size);
    int64_t header = kr_lz4_header_size(p, size);
    CHECK_TRUE(zstd >= -1 && zstd <= size && most >= 0 && lz4 >= -1 && header <= size);
    if (zstd > 0) CHECK_INT(zstd, kr_zstd_frames(p, zstd, &most)); /* without what was left out */
    CHECK_TRUE(lz4 <= ((int64_t)4 << 20) * (size / 4));
    CHECK_TRUE(lz4 < 0 || header > 0);
    if (header > 0) {
        kr_lz4_plain_header(p, plain);
        CHECK_INT(KR_LZ4_HEADER, kr_lz4_header_size(plain, KR_LZ4_HEADER));
    }
    CHECK_TRUE(kr_gzip_guess(p, size) <= 1032 * size);
    int64_t gzip = kr_gzip_header_size(p, size);
    CHECK_TRUE(gzip >= -1 && gzip <= size);
    CHECK_TRUE(!kr_gzip_follows(p, size) || gzip >= 10);
}

static void fuzz_frames(const corpus *c) {
    static fuzz_input input;
    piece batch = random_batch(c);
    input.size = 0;
    replace(&input, 0, 0, batch.at + KR_RECORD_BATCH_OVERHEAD, batch.size - KR_RECORD_BATCH_OVERHEAD);
    for (int64_t n = random_below(6); n > 0; n--) mutate_once(&input, c);
    uint8_t *p = exact_copy(input.at, input.size);
    check_frame_headers(p, input.size);
    check_snappy(p, input.size);
    exact_free(p, input.size);
}

#endif
