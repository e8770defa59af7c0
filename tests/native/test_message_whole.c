/* message/whole.h: what is whole, and which keys say with no other bytes what they say. */
#include "message/whole.h"
#include "message_programs.h"

/* What Kafka would write is whole; no part of it is, nor is it with a byte more. */
static void test_messages(void) {
    static bytes b;
    message_program m;
    for (int round = 0; round < 400; round++) {
        message_program_make(&m, round & 1);
        b.size = 0;
        put_random_message(&b, round & 1);
        CHECK_TRUE(kr_message_is_whole(&m.program, b.at, b.at + b.size));
        for (int64_t size = 0; size < b.size; size++) {
            uint8_t *p = exact_copy(b.at, size);
            CHECK_TRUE(!kr_message_is_whole(&m.program, p, p + size));
            exact_free(p, size);
        }
        put_fill(&b, 0, 1);
        CHECK_TRUE(!kr_message_is_whole(&m.program, b.at, b.at + b.size));
    }
}

/* A message of one field. */
static kr_program program_of(kr_field *fields, int kind, int is_array, int is_nullable, int place, int is_compact) {
    memset(fields, 0, 2 * sizeof *fields);
    fields[0].kind = KR_KIND_STRUCT;
    fields[0].first = fields[0].count = 1;
    fields[1].kind = (uint8_t)kind;
    fields[1].is_array = (uint8_t)is_array;
    fields[1].is_nullable = (uint8_t)is_nullable;
    fields[1].place = (uint8_t)place;
    return (kr_program){.fields = fields, .fields_count = 2, .is_compact = is_compact};
}

/* Bytes of a key of one field of each kind; a bool and a float have several that are read as the same. */
static void test_keys_of_each_kind(void) {
    static const struct {
        int kind, size, is_key;
    } kinds[] = {
        {KR_KIND_BOOL, 1, 0},  {KR_KIND_INT8, 1, 1},   {KR_KIND_INT16, 2, 1}, {KR_KIND_UINT16, 2, 1},
        {KR_KIND_INT32, 4, 1}, {KR_KIND_UINT32, 4, 1}, {KR_KIND_INT64, 8, 1}, {KR_KIND_FLOAT64, 8, 0},
        {KR_KIND_UUID, 16, 1}, {KR_KIND_STRING, 2, 1}, {KR_KIND_BYTES, 4, 1}, {KR_KIND_STRUCT, 0, 0},
    };
    static const uint8_t zeros[17];
    kr_field fields[2];
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        int kind = kinds[k].kind, size = kinds[k].size, is_key = kinds[k].is_key;
        for (int variant = 0; variant < 5; variant++) {
            int place = variant == 3 ? KR_PLACE_TAGGED : KR_PLACE_IN_ORDER;
            kr_program p = program_of(fields, kind, variant == 1, variant == 2, place, variant == 4);
            CHECK_INT(is_key && variant == 0, kr_key_is_whole(&p, zeros, zeros + size));
            CHECK_TRUE(!kr_key_is_whole(&p, zeros, zeros + size + 1));
        }
    }
}

/* Text that is not UTF-8 is replaced when it is read: other bytes say the same. */
static void test_text_of_keys(void) {
    static const struct {
        const char *hex;
        int is_key;
    } keys[] = {
        {"0000", 1},
        {"0001 61", 1},
        {"0002 c3a9", 1},
        {"0001 ff", 0},
        {"0002 c328", 0},
        {"0003 eda080", 0},
        {"0002 61", 0},
        {"0001 6161", 0},
        {"ffff", 0},
        {"00", 0},
        {"0009 6161616161616161ff", 0},
        {"0009 6161616161616161 61", 1},
    };
    kr_field fields[2];
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
        static bytes b;
        kr_program p = program_of(fields, KR_KIND_STRING, 0, 0, KR_PLACE_IN_ORDER, 0);
        b.size = 0;
        put_hex(&b, keys[k].hex);
        uint8_t *exact = exact_copy(b.at, b.size);
        CHECK_INT(keys[k].is_key, kr_key_is_whole(&p, exact, exact + b.size));
        exact_free(exact, b.size);
    }
}

int main(void) {
    test_messages();
    test_keys_of_each_kind();
    test_text_of_keys();
    return check_report("message_whole");
}
