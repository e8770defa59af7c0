/* Checks that say where they failed, what they expected and what they found; and random numbers that are the same in
 * every run. */
#ifndef KRAFTLOG_TESTS_CHECK_H
#define KRAFTLOG_TESTS_CHECK_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

enum { MOST_FAILURES_SHOWN = 20 };

static long checks, failures;

static inline void check_failed(void) {
    if (++failures == MOST_FAILURES_SHOWN) {
        printf("%d checks failed; no more are shown\n", MOST_FAILURES_SHOWN);
        exit(1);
    }
}

static inline void check_int(const char *file, int line, const char *what, int64_t expected, int64_t found) {
    checks++;
    if (expected == found) return;
    printf("%s:%d: %s: expected %lld, found %lld\n", file, line, what, (long long)expected, (long long)found);
    check_failed();
}

static inline void check_status(const char *file, int line, const char *what, int expected, int found) {
    checks++;
    if (expected == found) return;
    printf("%s:%d: %s: expected %s, found %s\n", file, line, what, kr_status_codes[expected],
           found >= 0 && found < KR_STATUS_COUNT ? kr_status_codes[found] : "no status at all");
    check_failed();
}

static inline void check_print_hex(const char *name, const uint8_t *p, int64_t n) {
    printf(", %s ", name);
    for (int64_t i = 0; i < n && i < 64; i++) printf("%02x", p[i]);
    printf(n > 64 ? "... (%lld bytes)" : " (%lld bytes)", (long long)n);
}

static inline void check_bytes(const char *file, int line, const char *what, const uint8_t *expected, int64_t n,
                               const uint8_t *found, int64_t m) {
    checks++;
    if (n == m && (n == 0 || !memcmp(expected, found, (size_t)n))) return;
    printf("%s:%d: %s", file, line, what);
    check_print_hex("expected", expected, n);
    check_print_hex("found", found, m);
    printf("\n");
    check_failed();
}

/* All of an error at once. */
static inline void check_error(const char *file, int line, kr_error expected, const kr_error *found) {
    check_status(file, line, "status", expected.status, found->status);
    check_int(file, line, "record_index", expected.record_index, found->record_index);
    check_int(file, line, "position", expected.position, found->position);
    check_int(file, line, "expected", expected.expected, found->expected);
    check_int(file, line, "actual", expected.actual, found->actual);
    check_int(file, line, "lost", expected.lost, found->lost);
}

#define CHECK_INT(expected, found)    check_int(__FILE__, __LINE__, #found, (int64_t)(expected), (int64_t)(found))
#define CHECK_TRUE(condition)         check_int(__FILE__, __LINE__, #condition, 1, (condition) ? 1 : 0)
#define CHECK_STATUS(expected, found) check_status(__FILE__, __LINE__, #found, (expected), (found))
#define CHECK_BYTES(expected, n, found, m)                                                                             \
    check_bytes(__FILE__, __LINE__, #found, (expected), (int64_t)(n), (found), (int64_t)(m))
#define CHECK_ERROR(expected, found) check_error(__FILE__, __LINE__, (expected), (found))

static inline int check_report(const char *name) {
    printf("%s: %ld checks\n", name, checks);
    return failures ? 1 : 0;
}

static uint64_t random_state = 1;

/* xorshift64* */
static inline uint64_t random_next(void) {
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return random_state * 0x2545F4914F6CDD1Dull;
}

static inline int64_t random_below(int64_t n) { return (int64_t)((random_next() >> 11) % (uint64_t)n); }

#endif
