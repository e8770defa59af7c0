/* Texts of JSON: quotes, and escapes where JSON does not allow a byte as it is. */
#ifndef KRAFTLOG_TEXT_JSON_H
#define KRAFTLOG_TEXT_JSON_H

#include <stdint.h>
#include <string.h>

static const char kr_hex_digits[] = "0123456789abcdef", kr_upper_hex_digits[] = "0123456789ABCDEF";

/* The highest bit of each byte of a word that is below 0x20, a quotation mark or a backslash, or that lies above such a
 * byte: the lowest bit that is set is right. */
static inline uint64_t kr_json_specials(uint64_t word) {
    const uint64_t ones = 0x0101010101010101u, highs = 0x8080808080808080u;
    uint64_t quote = word ^ (ones * '"'), backslash = word ^ (ones * '\\');
    uint64_t below = (word - ones * 0x20) & ~word;
    return (below | ((quote - ones) & ~quote) | ((backslash - ones) & ~backslash)) & highs;
}

static inline int kr_is_json_special(uint8_t byte) { return byte < 0x20 || byte == '"' || byte == '\\'; }

/* How many bytes from here on need no escape. */
static inline int64_t kr_json_plain(const uint8_t *from, int64_t n) {
    int64_t i = 0;
    for (uint64_t word; i + 8 <= n; i += 8) {
        memcpy(&word, from + i, sizeof word);
        if (kr_json_specials(word)) break;
    }
    while (i < n && !kr_is_json_special(from[i])) i++;
    return i;
}

/* The letter of the short escape of a byte, 0 when it has none. */
static inline char kr_json_letter(uint8_t byte) {
    static const char letters[] = "\0\0\0\0\0\0\0\0btn\0fr";
    if (byte == '"' || byte == '\\') return (char)byte;
    return byte < 14 ? letters[byte] : 0;
}

/* Bytes of a text of JSON, quotes included. */
static inline int64_t kr_json_size(const uint8_t *from, int64_t n) {
    int64_t size = n + 2;
    for (int64_t i = kr_json_plain(from, n); i < n; i += 1 + kr_json_plain(from + i + 1, n - i - 1))
        size += kr_json_letter(from[i]) ? 1 : 5;
    return size;
}

/* Writes kr_json_size bytes. Which digits escapes have is for the caller to say: Kafka's tools print upper case, as
 * Jackson does, Python and SQL engines lower case. */
static inline uint8_t *kr_json_write(uint8_t *to, const uint8_t *from, int64_t n, const char *hex_digits) {
    *to++ = '"';
    for (int64_t i = 0; i < n;) {
        int64_t plain = kr_json_plain(from + i, n - i);
        memcpy(to, from + i, (size_t)plain);
        to += plain;
        i += plain;
        if (i == n) break;
        uint8_t byte = from[i++];
        *to++ = '\\';
        if (kr_json_letter(byte)) {
            *to++ = (uint8_t)kr_json_letter(byte);
        } else {
            memcpy(to, "u00", 3);
            to[3] = (uint8_t)hex_digits[byte >> 4];
            to[4] = (uint8_t)hex_digits[byte & 15];
            to += 5;
        }
    }
    *to++ = '"';
    return to;
}

#endif
