/* avro/decode.h: a program over whole, cut and damaged values. What does not fit leaves a null row in every column. */
#include "avro/decode.h"
#include "bytes.h"
#include "check.h"

/* A record of a long, a string, an array of longs, a map of booleans, and a union of null and a decimal of 4 digits. */
enum { ROOT, FIELDS, ITEM = FIELDS + 5, PAIR, BRANCHES, NODES = BRANCHES + 2 };
enum { STRUCT_, LONG_, TEXT_, LIST_, MAP_, DECIMAL_, ITEM_, ENTRY_, KEY_, BOOL_, COLUMNS };

static const kr_avro_node nodes[NODES] = {
    [ROOT] = {KR_AVRO_RECORD, STRUCT_, FIELDS, 5, 0, 0}, [FIELDS] = {KR_AVRO_TO_LONG, LONG_, 0, 0, 0, 0},
    [FIELDS + 1] = {KR_AVRO_TEXT, TEXT_, 0, 0, 0, 0},    [FIELDS + 2] = {KR_AVRO_ARRAY, LIST_, ITEM, 0, 1, 0},
    [FIELDS + 3] = {KR_AVRO_MAP, MAP_, PAIR, 0, 1, 0},   [FIELDS + 4] = {KR_AVRO_UNION, -1, BRANCHES, 2, 0, 0},
    [ITEM] = {KR_AVRO_TO_LONG, ITEM_, 0, 0, 0, 0},       [PAIR] = {KR_AVRO_BOOL, BOOL_, 0, 0, 0, 0},
    [BRANCHES] = {KR_AVRO_NULL, DECIMAL_, 0, 0, 0, 0},   [BRANCHES + 1] = {KR_AVRO_TO_DECIMAL, DECIMAL_, 0, 0, -1, 0},
};
static const uint8_t limit[16] = {0x10, 0x27}; /* 10,000 */
static const uint8_t whole[] = {
    0x04, 0x06, 'a', 'b', 'c', 0x04, 0x02, 0x04, 0x00, 0x02, 0x02, 'k', 0x01, 0x00, 0x02, 0x04, 0xff, 0x38,
};

static void open_columns(kr_avro_decoder *d, kr_avro_column *columns) {
    static const kr_avro_column made[COLUMNS] = {
        [STRUCT_] = {.kind = KR_AVRO_STRUCT, .first = LONG_, .count = 5},
        [LONG_] = {.kind = KR_AVRO_NUMBERS, .width = 8},
        [TEXT_] = {.kind = KR_AVRO_BYTES},
        [LIST_] = {.kind = KR_AVRO_LIST, .first = ITEM_, .count = 1},
        [MAP_] = {.kind = KR_AVRO_LIST, .first = ENTRY_, .count = 1},
        [DECIMAL_] = {.kind = KR_AVRO_NUMBERS, .width = 16},
        [ITEM_] = {.kind = KR_AVRO_NUMBERS, .width = 8},
        [ENTRY_] = {.kind = KR_AVRO_STRUCT, .first = KEY_, .count = 2},
        [KEY_] = {.kind = KR_AVRO_BYTES},
        [BOOL_] = {.kind = KR_AVRO_NUMBERS, .width = 1},
    };
    memcpy(columns, made, sizeof made);
    memset(d, 0, sizeof *d);
    d->table = (kr_avro_table){columns, COLUMNS, 0, 1 << 20};
    d->nodes = nodes;
    d->constants = limit;
    CHECK_INT(1, kr_avro_open(&d->table));
}

static int decode(kr_avro_decoder *d, const uint8_t *bytes, int64_t n) {
    uint8_t *p = exact_copy(bytes, n);
    int status = kr_avro_row(d, p, p + n, ROOT);
    exact_free(p, n);
    return status;
}

/* Columns beside each other have the same number of rows, and children those that their parents say. */
static void check_columns(const kr_avro_column *c, int64_t rows) {
    for (int i = STRUCT_; i <= DECIMAL_; i++) CHECK_INT(rows, c[i].length);
    CHECK_INT(kr_avro_end(&c[LIST_], rows), c[ITEM_].length);
    for (int i = ENTRY_; i <= BOOL_; i++) CHECK_INT(kr_avro_end(&c[MAP_], rows), c[i].length);
    CHECK_INT(kr_avro_end(&c[TEXT_], rows), c[TEXT_].data.size);
}

static void test_whole_and_cut(void) {
    kr_avro_decoder d;
    kr_avro_column columns[COLUMNS];
    open_columns(&d, columns);
    CHECK_INT(KR_AVRO_OK, decode(&d, whole, sizeof whole));
    for (int64_t n = 0; n < (int64_t)sizeof whole; n++) CHECK_INT(1, decode(&d, whole, n) > KR_AVRO_OK);
    CHECK_INT(KR_AVRO_OK, decode(&d, whole, sizeof whole));
    check_columns(columns, sizeof whole + 2);
    CHECK_INT(6, columns[TEXT_].data.size);
    int64_t number;
    memcpy(&number, columns[DECIMAL_].values.bytes, sizeof number);
    CHECK_INT(-200, number);
    CHECK_INT(1, columns[STRUCT_].validity.bytes[0]);
    kr_avro_close(&d.table);
}

static void test_damaged(void) {
    kr_avro_decoder d;
    kr_avro_column columns[COLUMNS];
    open_columns(&d, columns);
    int64_t rows = 0;
    for (size_t at = 0; at < sizeof whole; at++)
        for (int byte = 0; byte < 256; byte++) {
            uint8_t damaged[sizeof whole];
            memcpy(damaged, whole, sizeof whole);
            damaged[at] = (uint8_t)byte;
            CHECK_INT(1, decode(&d, damaged, sizeof whole) >= KR_AVRO_OK);
            check_columns(columns, ++rows);
        }
    kr_avro_close(&d.table);
}

static void test_memory_is_bounded(void) {
    kr_avro_decoder d;
    kr_avro_column columns[COLUMNS];
    open_columns(&d, columns);
    d.table.limit = d.table.made;
    int status = KR_AVRO_OK;
    for (int i = 0; i < 10000 && status == KR_AVRO_OK; i++) status = decode(&d, whole, sizeof whole);
    CHECK_INT(KR_AVRO_MEMORY, status);
    check_columns(columns, columns[STRUCT_].length);
    kr_avro_close(&d.table);
}

int main(void) {
    test_whole_and_cut();
    test_damaged();
    test_memory_is_bounded();
    return check_report("avro");
}
