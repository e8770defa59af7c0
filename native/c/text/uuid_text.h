/* Uuids as Kafka prints them: base64 of 16 bytes with - and _, without padding. */
#ifndef KRAFTLOG_TEXT_UUID_TEXT_H
#define KRAFTLOG_TEXT_UUID_TEXT_H

#include <string.h>

#include "base/endian.h"
#include "text/base64.h"

#define KR_ZERO_UUID_TEXT "AAAAAAAAAAAAAAAAAAAAAA"

static char kr_base64_url_pairs[4096][2]; /* both characters of each 12 bits */

static int8_t kr_base64_url_digits[256]; /* of each character, -1 for one that is none */

/* To be called once, before uuids become text or come from it. */
static inline void kr_uuid_text_init(void) {
    memset(kr_base64_url_digits, -1, sizeof kr_base64_url_digits);
    for (int i = 0; i < 64; i++) kr_base64_url_digits[(uint8_t)kr_base64_url[i]] = (int8_t)i;
    for (int i = 0; i < 4096; i++) {
        kr_base64_url_pairs[i][0] = kr_base64_url[i >> 6];
        kr_base64_url_pairs[i][1] = kr_base64_url[i & 63];
    }
}

static inline void kr_uuid_text(uint8_t *to, const uint8_t *from) {
    uint64_t high = (uint64_t)kr_load_int64(from), low = (uint64_t)kr_load_int64(from + 8);
    for (int i = 0; i < 5; i++) memcpy(to + 2 * i, kr_base64_url_pairs[(high >> (52 - 12 * i)) & 4095], 2);
    memcpy(to + 10, kr_base64_url_pairs[((high & 15) << 8) | (low >> 56)], 2);
    for (int i = 0; i < 4; i++) memcpy(to + 12 + 2 * i, kr_base64_url_pairs[(low >> (44 - 12 * i)) & 4095], 2);
    memcpy(to + 20, kr_base64_url_pairs[(low & 255) << 4], 2);
}

#endif
