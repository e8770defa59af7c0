/* base/varint.h, and the varints of base/reader.h and arrow/varint_column.h. */
#include "arrow/varint_column.h"
#include "bytes.h"
#include "check.h"

/* The same hex for varint and varlong, as far as the value has 32 bits. */
static const struct {
    int64_t value;
    const char *hex;
} forms[] = {
    {0, "00"},
    {-1, "01"},
    {1, "02"},
    {63, "7e"},
    {-64, "7f"},
    {64, "8001"},
    {-65, "8101"},
    {8191, "fe7f"},
    {-8192, "ff7f"},
    {8192, "808001"},
    {-8193, "818001"},
    {1048575, "feff7f"},
    {-1048576, "ffff7f"},
    {1048576, "80808001"},
    {-1048577, "81808001"},
    {134217727, "feffff7f"},
    {-134217728, "ffffff7f"},
    {134217728, "8080808001"},
    {-134217729, "8180808001"},
    {INT32_MAX, "feffffff0f"},
    {INT32_MIN, "ffffffff0f"},
    {17179869183, "feffffff7f"},
    {-17179869184, "ffffffff7f"},
    {17179869184, "808080808001"},
    {2199023255551, "feffffffff7f"},
    {2199023255552, "80808080808001"},
    {281474976710655, "feffffffffff7f"},
    {281474976710656, "8080808080808001"},
    {36028797018963967, "feffffffffffff7f"},
    {36028797018963968, "808080808080808001"},
    {4611686018427387903, "feffffffffffffff7f"},
    {4611686018427387904, "80808080808080808001"},
    {INT64_MAX, "feffffffffffffffff01"},
    {INT64_MIN, "ffffffffffffffffff01"},
    {1787086231121, "a2d99eea8268"},
};

static void check_form(int64_t value, const char *hex) {
    static bytes b;
    uint8_t out[16];
    int64_t wide = 0;
    int32_t narrow = 0;
    b.size = 0;
    put_hex(&b, hex);
    uint8_t padded[16] = {0};
    memcpy(padded, b.at, (size_t)b.size);
    CHECK_BYTES(b.at, b.size, out, kr_put_varlong(out, value) - out);
    CHECK_INT(b.size, kr_varlong_size(value));
    CHECK_INT(b.size, kr_varlong_unchecked(padded, &wide) - padded);
    CHECK_INT(value, wide);
    if (value == (int32_t)value) {
        CHECK_BYTES(b.at, b.size, out, kr_put_varint(out, (int32_t)value) - out);
        CHECK_INT(b.size, kr_varint_size((int32_t)value));
        CHECK_INT(b.size, kr_varint_unchecked(padded, &narrow) - padded);
        CHECK_INT(value, narrow);
    }
    for (int64_t cut = 0; cut <= b.size; cut++) { /* the reader sees nothing behind the cut, and nor may it look */
        uint8_t *p = exact_copy(b.at, cut);
        kr_reader in = kr_reader_make(p, p, p + cut);
        int64_t found = kr_read_varlong(&in);
        if (cut == b.size) {
            CHECK_INT(value, found);
            CHECK_STATUS(KR_OK, in.error.status);
            CHECK_INT(0, kr_left(&in));
        } else {
            CHECK_INT(0, found);
            CHECK_ERROR(((kr_error){KR_TRUNCATED_FIELD, -1, cut, 1, 0, 0}), &in.error);
        }
        exact_free(p, cut);
    }
}

static void test_forms(void) {
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) check_form(forms[i].value, forms[i].hex);
}

/* Longer forms than needed are read, and bits for which there is no room are dropped. */
static void test_surplus(void) {
    static const struct {
        const char *hex;
        int64_t narrow, wide;
    } surplus[] = {
        {"8000", 0, 0},
        {"8180808000", -1, -1},
        {"ffffffff7f", INT32_MIN, -17179869184},
        {"feffffff1f", INT32_MAX, 4294967295},
        {"8080808070", 0, 15032385536},
    };
    static bytes b;
    for (size_t i = 0; i < sizeof surplus / sizeof *surplus; i++) {
        int32_t narrow = 1;
        int64_t wide = 1;
        b.size = 0;
        put_hex(&b, surplus[i].hex);
        put_fill(&b, 0xff, 16);
        CHECK_TRUE(kr_varint_unchecked(b.at, &narrow) != 0);
        CHECK_INT(surplus[i].narrow, narrow);
        CHECK_TRUE(kr_varlong_unchecked(b.at, &wide) != 0);
        CHECK_INT(surplus[i].wide, wide);
        kr_reader in = kr_reader_make(b.at, b.at, b.at + b.size);
        CHECK_INT(surplus[i].narrow, kr_read_varint(&in));
    }
    b.size = 0;
    put_hex(&b, "ffffffffffffffffff7f");
    int64_t wide = 0;
    CHECK_INT(10, kr_varlong_unchecked(b.at, &wide) - b.at);
    CHECK_INT(INT64_MIN, wide);
}

static void test_too_long(void) {
    uint8_t p[KR_VARLONG_MAX + 1];
    int32_t narrow;
    int64_t wide;
    memset(p, 0x80, sizeof p);
    CHECK_TRUE(kr_varint_unchecked(p, &narrow) == 0);
    CHECK_TRUE(kr_varlong_unchecked(p, &wide) == 0);
    kr_reader in = kr_reader_make(p, p, p + sizeof p);
    CHECK_INT(0, kr_read_varint(&in));
    CHECK_ERROR(((kr_error){KR_VARINT_TOO_LONG, -1, 5, 5, 5, 0}), &in.error);
    in = kr_reader_make(p, p, p + sizeof p);
    CHECK_INT(0, kr_read_varlong(&in));
    CHECK_ERROR(((kr_error){KR_VARINT_TOO_LONG, -1, 10, 10, 10, 0}), &in.error);
}

/* Values of every width, behind each other, in memory that ends where they end. */
static void test_columns(void) {
    enum { N = 2000 };
    static int64_t wide[N], wide_again[N];
    static int32_t narrow[N], narrow_again[N];
    for (int i = 0; i < N; i++) {
        wide[i] = (int64_t)(random_next() >> random_below(64));
        if (i & 1) wide[i] = -wide[i];
        narrow[i] = (int32_t)(wide[i] % ((int64_t)INT32_MAX + 1));
    }
    kr_error e;
    int64_t size = kr_varlongs_size(wide, N);
    uint8_t *p = exact_copy(0, 0), *q = malloc((size_t)size);
    CHECK_INT(0, kr_varints_count(p, 0));
    CHECK_STATUS(KR_OK, kr_varints_decode(p, 0, narrow_again, &e));
    exact_free(p, 0);
    kr_varlongs_encode(wide, N, q);
    CHECK_INT(N, kr_varints_count(q, size));
    CHECK_STATUS(KR_OK, kr_varlongs_decode(q, size, wide_again, &e));
    CHECK_TRUE(!memcmp(wide, wide_again, sizeof wide));
    q[size - 1] |= 0x80;
    CHECK_INT(N - 1, kr_varints_count(q, size));
    CHECK_STATUS(KR_TRUNCATED_FIELD, kr_varlongs_decode(q, size, wide_again, &e));
    CHECK_INT(size, e.position);
    free(q);
    size = kr_varints_size(narrow, N);
    q = malloc((size_t)size);
    kr_varints_encode(narrow, N, q);
    CHECK_STATUS(KR_OK, kr_varints_decode(q, size, narrow_again, &e));
    CHECK_TRUE(!memcmp(narrow, narrow_again, sizeof narrow));
    free(q);
    for (int64_t n = 0; n <= 9; n++) { /* cut off at each of the last bytes */
        uint8_t cut[9];
        memset(cut, 0x80, sizeof cut);
        cut[0] = cut[3] = 2;
        q = exact_copy(cut, n);
        int too_long = n == 9; /* more than five bytes behind the second value */
        CHECK_STATUS(n == 0 || n == 1 || n == 4 ? KR_OK
                     : too_long                 ? KR_VARINT_TOO_LONG
                                                : KR_TRUNCATED_FIELD,
                     kr_varints_decode(q, n, narrow_again, &e));
        exact_free(q, n);
    }
}

/* Numbers of every length, with the bytes of each cut off at every place and read for every limit. */
static void test_unsigned(void) {
    for (int length = 1; length <= KR_VARLONG_MAX; length++) {
        uint8_t out[16];
        uint64_t value = length == 1 ? 5 : 5ull << (7 * (length - 1)) | 3, found;
        if (length == KR_VARLONG_MAX) value = UINT64_MAX;
        CHECK_INT(length, kr_put_uvarint64(out, value) - out);
        CHECK_INT(length, kr_uvarint64_size(value));
        for (int size = 0; size <= length; size++)
            for (int most = 1; most <= KR_VARLONG_MAX; most++) {
                uint8_t *p = exact_copy(out, size);
                const uint8_t *behind = kr_uvarint(p, p + size, most, &found);
                CHECK_INT(size == length && length <= most ? length : 0, behind ? behind - p : 0);
                if (behind) CHECK_INT(value, found);
                exact_free(p, size);
            }
    }
    uint64_t found; /* bits that a number of 64 has no place for */
    static const uint8_t surplus[] = {0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7f};
    CHECK_INT(10, kr_uvarint(surplus, surplus + 10, 10, &found) - surplus);
    CHECK_INT(INT64_MIN, found);
}

int main(void) {
    test_unsigned();
    test_forms();
    test_surplus();
    test_too_long();
    test_columns();
    return check_report("varint");
}
