/* compression/snappy.h and compression/compressed_frames.h: what is written is read again, and no damage leads outside
 * of a block. */
#include "bytes.h"
#include "check.h"
#include "compression/compressed_frames.h"
#include "compression/snappy.h"

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

static int64_t zstd_end(const uint8_t *p, int64_t size) {
    int64_t most;
    return kr_zstd_frames(p, size, &most);
}

static int64_t zstd_most(const uint8_t *p, int64_t size) {
    int64_t most;
    return kr_zstd_frames(p, size, &most) < 0 ? -1 : most;
}

static void test_zstd_frames(void) {
    CHECK_INT(-1, most_of(zstd_most, ""));
    CHECK_INT(-1, most_of(zstd_most, "0102030405060708"));
    CHECK_INT(3, most_of(zstd_most, ZSTD_MAGIC "00 58 190000 616263"));          /* a raw block */
    CHECK_INT(5, most_of(zstd_most, ZSTD_MAGIC "00 58 2b0000 61"));              /* a byte five times */
    CHECK_INT(128 << 10, most_of(zstd_most, ZSTD_MAGIC "00 58 150000 0102"));    /* a compressed one */
    CHECK_INT(1024, most_of(zstd_most, ZSTD_MAGIC "00 00 150000 0102"));         /* that a window bounds */
    CHECK_INT(9, most_of(zstd_most, ZSTD_MAGIC "20 09 150000 0102"));            /* or the size that is said */
    CHECK_INT(256 + 2, most_of(zstd_most, ZSTD_MAGIC "60 0200 150000 0102"));    /* in two bytes */
    CHECK_INT(3, most_of(zstd_most, ZSTD_MAGIC "04 58 190000 616263 00000000")); /* a checksum */
    CHECK_INT(-1, most_of(zstd_most, ZSTD_MAGIC "04 58 190000 616263 000000"));
    CHECK_INT(-1, most_of(zstd_most, ZSTD_MAGIC "00 58 180000 616263")); /* no last block */
    CHECK_INT(-1, most_of(zstd_most, ZSTD_MAGIC "00 58 210000 616263")); /* more than is there */
    CHECK_INT(6, most_of(zstd_most, ZSTD_MAGIC "00 58 190000 616263" ZSTD_MAGIC "00 58 190000 616263"));
    CHECK_INT(3, most_of(zstd_most, "502a4d18 02000000 ffff" ZSTD_MAGIC "00 58 190000 616263"));
    CHECK_INT(-1, most_of(zstd_most, "502a4d18 03000000 ffff"));
}

/* What is begun behind a whole frame is left out, as long as no block of it is whole. */
static void test_cut_zstd_frames(void) {
    static const char whole[] = ZSTD_MAGIC "00 58 190000 616263"; /* 12 bytes */
    static const struct {
        const char *behind;
        int64_t end;
    } tails[] = {{"", 12},
                 {"28", 12},
                 {"28b52f", 12},
                 {"28b52e", -1},
                 {"00", -1},
                 {ZSTD_MAGIC "00 58 1900", 12},
                 {ZSTD_MAGIC "00 58 190000 6162", 12},
                 {ZSTD_MAGIC "00 58 000000 190000 6162", 12},
                 {ZSTD_MAGIC "00 58 180000 616263 19", -1},
                 {"502a4d18 03000000 ffff", 12},
                 {"5f2a", 12}};
    for (size_t i = 0; i < sizeof tails / sizeof *tails; i++) {
        char hex[200];
        snprintf(hex, sizeof hex, "%s %s", whole, tails[i].behind);
        CHECK_INT(tails[i].end, most_of(zstd_end, hex));
        if (tails[i].end > 0) CHECK_INT(3, most_of(zstd_most, hex));
    }
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
    CHECK_INT(0, most_of(kr_lz4_most, LZ4_MAGIC "64 40 82 00000000 ffffffff")); /* a content checksum */
    CHECK_INT(-1, most_of(kr_lz4_most, LZ4_MAGIC "64 40 82 00000000 ffffff"));
    CHECK_INT(-1, most_of(kr_lz4_most, LZ4_MAGIC "61 40 ffffffff 82 00000000")); /* a dictionary */
}

#define GZIP(flags) "1f8b08 " flags " 00000000 0003 "

static void test_gzip_headers(void) {
    CHECK_INT(10, most_of(kr_gzip_header_size, GZIP("00") "ff"));
    CHECK_INT(-1, most_of(kr_gzip_header_size, "1f8b0800"));
    CHECK_INT(-1, most_of(kr_gzip_header_size, "1f8b0700 00000000 0003"));
    CHECK_INT(14, most_of(kr_gzip_header_size, GZIP("04") "0200 ffff"));
    CHECK_INT(-1, most_of(kr_gzip_header_size, GZIP("04") "0300 ffff"));
    CHECK_INT(13, most_of(kr_gzip_header_size, GZIP("08") "616200 ff"));
    CHECK_INT(-1, most_of(kr_gzip_header_size, GZIP("08") "6162"));
    CHECK_INT(18, most_of(kr_gzip_header_size, GZIP("1c") "0100 ff 616200 6300"));
    CHECK_INT(-1, most_of(kr_gzip_header_size, GZIP("02") "0000"));
    static bytes b;
    put_hex(&b, GZIP("02"));
    uint32_t crc = kr_crc32(0, b.at, (size_t)b.size) & 0xFFFF;
    put_fill(&b, (int)(crc & 0xFF), 1);
    put_fill(&b, (int)(crc >> 8), 1);
    CHECK_INT(12, kr_gzip_header_size(b.at, b.size));
    b.size = 0;
    put_hex(&b, GZIP("00"));
    put_fill(&b, 0, 9);
    CHECK_INT(1, kr_gzip_follows(b.at, 19));
    CHECK_INT(0, kr_gzip_follows(b.at, 18));
}

#define XERIAL "82534e41505059 00 00000001 00000001"

static void test_xerial(void) {
    CHECK_INT(3, most_of(kr_snappy_most, XERIAL "00000005 03 08 616263"));
    CHECK_INT(3, most_of(kr_snappy_most, XERIAL "00000005 03 08 616263 000000"));
    CHECK_INT(-1, most_of(kr_snappy_most, XERIAL "00000005 03 08 616263 00000000"));
    CHECK_INT(-1, most_of(kr_snappy_most, XERIAL "00000005 03 08 616263 00000001"));
    CHECK_INT(-1, most_of(kr_snappy_most, XERIAL "ffffffff 03 08 616263"));
    CHECK_INT(6, most_of(kr_snappy_most, XERIAL "00000005 03 08 616263" XERIAL "00000005 03 08 616263"));
    CHECK_INT(3, most_of(kr_snappy_most, XERIAL "00000005 03 08 616263" XERIAL));
    CHECK_INT(-1, most_of(kr_snappy_most, XERIAL "00000005 03 08 616263 82534e41"));
    CHECK_INT(3, most_of(kr_snappy_most, XERIAL "00000005 03 08 616263 82534e41 00000000 00000000 00000000 00000005"));
    CHECK_INT(-1, most_of(kr_snappy_most, "82534e41505059 00 00000001"));
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
    kr_crc_init();
    test_snappy_both_ways();
    test_zstd_frames();
    test_cut_zstd_frames();
    test_lz4_frames();
    test_gzip_headers();
    test_xerial();
    test_gzip_guess();
    test_header_checksum();
    return check_report("compression");
}
