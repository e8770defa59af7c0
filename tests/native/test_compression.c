/* snappy.h and compressed_frames.h: what is written is read again, and no damage leads outside of a block. */
#include "bytes.h"
#include "check.h"
#include "compressed_frames.h"
#include "snappy.h"

enum { LARGEST = 100 << 10 };

static uint8_t plain[LARGEST];

/* Noise, few values, a short period, or repeats of what came shortly before. */
static void fill_plain(int64_t size) {
    int kind = (int)(random_next() % 4);
    for (int64_t i = 0; i < size; i++) {
        uint64_t r = random_next();
        if (kind == 0 || (kind == 3 && (i < 60 || r % 9 == 0)))
            plain[i] = (uint8_t)(r >> 8);
        else if (kind == 1)
            plain[i] = (uint8_t)(r % 3);
        else if (kind == 2)
            plain[i] = (uint8_t)(i % 7);
        else
            plain[i] = plain[i - 1 - (int64_t)(r % 50)];
    }
}

static void try_damaged(const uint8_t *data, int64_t size) {
    uint8_t *damaged = exact_copy(data, size);
    for (int i = 0; i < 3 && size; i++) damaged[random_next() % (uint64_t)size] ^= (uint8_t)(1 << random_next() % 8);
    int64_t most = kr_snappy_most(damaged, size);
    CHECK_INT(1, most <= KR_SNAPPY_LARGEST_EXPANSION * size);
    if (most >= 0) {
        uint8_t *out = malloc((size_t)most + KR_SNAPPY_WORD);
        int64_t made = kr_snappy_decompress(damaged, size, out, most);
        CHECK_INT(1, made == -1 || made == most);
        free(out);
    }
    exact_free(damaged, size);
}

static void test_snappy_both_ways(void) {
    for (int round = 0; round < 600; round++) {
        int64_t size = (int64_t)(random_next() % (round % 4 ? 3000 : LARGEST));
        fill_plain(size);
        uint8_t *packed = malloc((size_t)kr_snappy_bound(size));
        int64_t packed_size = kr_snappy_compress(plain, size, packed);
        uint8_t *exact = exact_copy(packed, packed_size), *out = malloc((size_t)size + KR_SNAPPY_WORD);
        CHECK_INT(size, kr_snappy_most(exact, packed_size));
        CHECK_INT(size, kr_snappy_decompress(exact, packed_size, out, size));
        CHECK_BYTES(plain, size, out, size);
        for (int i = 0; i < 4; i++) try_damaged(packed, packed_size);
        free(out);
        exact_free(exact, packed_size);
        free(packed);
    }
}

static int64_t most_of(int64_t (*most)(const uint8_t *, int64_t), const char *hex) {
    static bytes b;
    b.size = 0;
    put_hex(&b, hex);
    uint8_t *p = exact_copy(b.at, b.size);
    int64_t found = most(p, b.size);
    for (int64_t cut = 0; cut < b.size; cut++) { /* each read stays inside */
        uint8_t *part = exact_copy(b.at, cut);
        most(part, cut);
        exact_free(part, cut);
    }
    exact_free(p, b.size);
    return found;
}

#define ZSTD_MAGIC "28b52ffd"

static void test_zstd_frames(void) {
    CHECK_INT(-1, most_of(kr_zstd_most, ""));
    CHECK_INT(-1, most_of(kr_zstd_most, "0102030405060708"));
    CHECK_INT(3, most_of(kr_zstd_most, ZSTD_MAGIC "00 58 190000 616263"));          /* a raw block */
    CHECK_INT(5, most_of(kr_zstd_most, ZSTD_MAGIC "00 58 2b0000 61"));              /* a byte five times */
    CHECK_INT(128 << 10, most_of(kr_zstd_most, ZSTD_MAGIC "00 58 150000 0102"));    /* a compressed one */
    CHECK_INT(1024, most_of(kr_zstd_most, ZSTD_MAGIC "00 00 150000 0102"));         /* that a window bounds */
    CHECK_INT(9, most_of(kr_zstd_most, ZSTD_MAGIC "20 09 150000 0102"));            /* or the size that is said */
    CHECK_INT(256 + 2, most_of(kr_zstd_most, ZSTD_MAGIC "60 0200 150000 0102"));    /* in two bytes */
    CHECK_INT(3, most_of(kr_zstd_most, ZSTD_MAGIC "04 58 190000 616263 00000000")); /* a checksum */
    CHECK_INT(-1, most_of(kr_zstd_most, ZSTD_MAGIC "04 58 190000 616263 000000"));
    CHECK_INT(-1, most_of(kr_zstd_most, ZSTD_MAGIC "00 58 180000 616263")); /* no last block */
    CHECK_INT(-1, most_of(kr_zstd_most, ZSTD_MAGIC "00 58 210000 616263")); /* more than is there */
    CHECK_INT(6, most_of(kr_zstd_most, ZSTD_MAGIC "00 58 190000 616263" ZSTD_MAGIC "00 58 190000 616263"));
    CHECK_INT(3, most_of(kr_zstd_most, "502a4d18 02000000 ffff" ZSTD_MAGIC "00 58 190000 616263"));
    CHECK_INT(-1, most_of(kr_zstd_most, "502a4d18 03000000 ffff"));
}

#define LZ4_MAGIC "04224d18"

static void test_lz4_frames(void) {
    CHECK_INT(-1, most_of(kr_lz4_most, ""));
    CHECK_INT(0, most_of(kr_lz4_most, LZ4_MAGIC "60 40 82 00000000"));
    CHECK_INT(64 << 10, most_of(kr_lz4_most, LZ4_MAGIC "60 40 82 03000080 616263 00000000"));
    CHECK_INT(4 << 20, most_of(kr_lz4_most, LZ4_MAGIC "60 70 82 03000080 616263 00000000"));
    CHECK_INT(64 << 10, most_of(kr_lz4_most, LZ4_MAGIC "70 40 82 03000080 616263 ffffffff 00000000"));
    CHECK_INT(64 << 10, most_of(kr_lz4_most, LZ4_MAGIC "68 40 0300000000000000 82 03000080 616263 00000000"));
    CHECK_INT(-1, most_of(kr_lz4_most, LZ4_MAGIC "60 30 82 00000000"));
    CHECK_INT(-1, most_of(kr_lz4_most, LZ4_MAGIC "60 40 82 04000080 616263"));
    CHECK_INT(-1, most_of(kr_lz4_most, LZ4_MAGIC "60 40 82 03000080 616263"));
}

static void test_gzip_guess(void) {
    static const uint8_t says_five[] = {5, 0, 0, 0}, says_much[] = {0xff, 0xff, 0xff, 0xff};
    CHECK_INT(0, kr_gzip_guess(says_five, 3));
    CHECK_INT(5, kr_gzip_guess(says_five, 4));
    CHECK_INT(4 * 1032, kr_gzip_guess(says_much, 4));
}

/* The lz4 project's own answers: the header checksum of a frame as its program writes it. */
static void test_header_checksum(void) {
    static const uint8_t frame[] = {0x04, 0x22, 0x4d, 0x18, 0x64, 0x40, 0xa7};
    CHECK_INT(0xa7, kr_lz4_header_checksum(frame, sizeof frame));
}

int main(void) {
    test_snappy_both_ways();
    test_zstd_frames();
    test_lz4_frames();
    test_gzip_guess();
    test_header_checksum();
    return check_report("compression");
}
