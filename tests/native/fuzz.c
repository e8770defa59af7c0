/* Damages real batches at random and gives them to all that reads or writes batches; and messages to their decoders.
 *
 *   fuzz [--target NAME] [--seconds N] [--executions N] [--seed S] [--only EXECUTION] FILE...
 *
 * Each target gets its share of the seconds, or as many executions. An execution is one input; it depends on the
 * target, the seed and its own number only, so that --only repeats one that failed.
 */
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fuzz_cleaning.h"
#include "fuzz_fold.h"
#include "fuzz_follow.h"
#include "fuzz_frames.h"
#include "fuzz_keyed.h"
#include "fuzz_messages.h"
#include "fuzz_records.h"
#include "fuzz_text.h"
#include "fuzz_whole.h"
#include "fuzz_write.h"

enum { SECONDS_OF_A_ROUND = 60, EXECUTIONS_OF_A_ROUND = 256 };

static corpus all, headers, legacy, compressed;

static const struct {
    const char *name;
    void (*once)(const corpus *c);
    const corpus *seeds;
} targets[] = {{"decode", fuzz_decode, &all},     {"headers", fuzz_decode, &headers},
               {"legacy", fuzz_legacy, &legacy},  {"sound", fuzz_sound, &all},
               {"ones", fuzz_ones, &all},         {"encode", fuzz_encode, &all},
               {"rewrite", fuzz_rewrite, &all},   {"frames", fuzz_frames, &compressed},
               {"messages", fuzz_messages, &all}, {"pass", fuzz_pass_of_types, &all},
               {"keyed", fuzz_keyed, &all},       {"whole", fuzz_whole, &all},
               {"fold", fuzz_fold, &all},         {"follow", fuzz_follow, &all},
               {"map", fuzz_offset_map, &all},    {"kept", fuzz_kept, &all},
               {"text", fuzz_text, &all}};

enum { TARGETS = sizeof targets / sizeof *targets };

typedef struct {
    int64_t target, execution;
} place;

static volatile place *at; /* seen by the process that waits */
static int64_t seed = 1;

#if defined(__SANITIZE_ADDRESS__)
/* Most of the time would go into stacks and fillings of blocks that live for a moment. */
const char *__asan_default_options(void) { return "malloc_context_size=0:max_malloc_fill_size=0:quarantine_size_mb=1"; }
#endif

static void load(const char *name) {
    FILE *f = fopen(name, "rb");
    if (!f) {
        perror(name);
        exit(2);
    }
    static uint8_t bytes_read[1 << 24];
    int64_t size = (int64_t)fread(bytes_read, 1, sizeof bytes_read, f);
    fclose(f);
    if (size > 0) corpus_add(&all, exact_copy(bytes_read, size), size);
}

static void add_made(corpus *c, const bytes *b) { corpus_add(c, exact_copy(b->at, b->size), b->size); }

/* Few real records have fields that are longer than what is copied in whole words: some that have. */
static void add_long_records(void) {
    static const char *const pairs[] = {"key", "value", "", 0, "key", "", 0};
    static char text[301];
    memset(text, 'x', 300);
    for (int length = 0; length <= 300; length += length < 70 ? 3 : 23) {
        static bytes b, records;
        b.size = records.size = 0;
        put_record(&records, 0, 0, text + 300 - length, 0, 0);
        put_record(&records, 0, 1, 0, text + 300 - length, length % 2 ? pairs : 0);
        put_record(&records, 0, 2, text + 300 - length, text + 300 - length, 0);
        put_batch(&b, length, 0, 1000, 3, &records);
        add_made(&all, &b);
    }
}

/* Records that are mostly headers, with keys of no bytes, long ones, and such as are not UTF-8. */
static void add_headers(void) {
    static const char *const texts[] = {
        "",         "k",        "key",          "trace-id",          "\xc3\xa9", "\xed\xa0\x80",
        "\xff\xfe", "\xf0\x9f", "\xe2\x82\xac", "content-type-0123", "a\x80z"};
    enum { TEXTS = sizeof texts / sizeof *texts, MOST_PAIRS = 40 };
    random_state = 1;
    for (int number = 0; number < 200; number++) {
        static bytes b, records;
        int32_t count = (int32_t)random_below(12);
        b.size = records.size = 0;
        for (int32_t i = 0; i < count; i++) {
            const char *pairs[2 * MOST_PAIRS + 1] = {0};
            int64_t most = random_below(8) ? 5 : MOST_PAIRS;
            for (int64_t k = 0, n = random_below(most); k < n; k++) {
                pairs[2 * k] = texts[random_below(TEXTS)];
                pairs[2 * k + 1] = random_below(4) ? texts[random_below(TEXTS)] : 0;
            }
            put_record(&records, i, i, random_below(2) ? "key" : 0, random_below(2) ? "value" : 0, pairs);
        }
        put_batch(&b, number, 0, 1000, count, &records);
        add_made(&headers, &b);
    }
}

static void choose_seeds(void) {
    for (int64_t i = 0; i < all.batches_count; i++) {
        const piece *b = &all.batches[i];
        if (b->at[KR_MAGIC_AT] < 2)
            corpus_add(&legacy, b->at, b->size);
        else if (b->at[KR_ATTRIBUTES_AT + 1] & KR_COMPRESSION_MASK)
            corpus_add(&compressed, b->at, b->size);
    }
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void execute(int64_t target, int64_t execution) {
    at->target = target;
    at->execution = execution;
    random_state = hash_int(hash_int(1, seed), execution) | 1;
    targets[target].once(targets[target].seeds);
}

/* Of the processor, so that a process that is stopped for a while, or has to wait, does not fail. */
static void limit_round(void) {
    struct itimerval round = {.it_value = {.tv_sec = SECONDS_OF_A_ROUND}};
    CHECK_INT(0, setitimer(ITIMER_PROF, &round, 0));
}

/* Until the seconds or the executions are over, whichever is given. */
static int fuzz(int64_t target, double seconds, int64_t executions) {
    const corpus *c = targets[target].seeds;
    double start = now(), spent = 0;
    int64_t i = 0;
    while (executions ? i < executions : spent < seconds) {
        limit_round();
        for (int64_t end = i + EXECUTIONS_OF_A_ROUND; i < end; i++) {
            execute(target, i);
            if (failures) return 1;
        }
        spent = now() - start;
    }
    printf("fuzz %s: %lld executions in %.1f s, %.0f executions/s, seed %lld, %lld files, %lld batches",
           targets[target].name, (long long)i, spent, (double)i / spent, (long long)seed, (long long)c->files_count,
           (long long)c->batches_count);
    if (messages_decoded) printf(", %lld messages", (long long)messages_decoded);
    messages_decoded = 0;
    printf("\n");
    fflush(stdout);
    return 0;
}

static int fuzz_targets(int64_t chosen, double seconds, int64_t executions) {
    uint64_t at_first = hash_of_files(&all);
    for (int64_t i = 0; i < TARGETS; i++)
        if ((chosen < 0 || chosen == i) && fuzz(i, chosen < 0 ? seconds / TARGETS : seconds, executions)) return 1;
    CHECK_INT(at_first, hash_of_files(&all));
    return failures ? 1 : 0;
}

static int64_t number(const char *text) {
    if (text) return strtoll(text, 0, 10);
    fprintf(stderr,
            "usage: fuzz [--target NAME] [--seconds N] [--executions N] [--seed S] [--only EXECUTION] FILE...\n");
    exit(2);
}

static int64_t target_of(const char *name) {
    for (int64_t i = 0; i < TARGETS && name; i++)
        if (!strcmp(targets[i].name, name)) return i;
    return number(0);
}

int main(int count, char **arguments) {
    int64_t seconds = 10, executions = 0, only = -1, chosen = -1;
    int ended = 0;
    kr_crc_init();
    kr_uuid_text_init();
    for (int i = 1; i < count; i++) {
        if (!strcmp(arguments[i], "--target"))
            chosen = target_of(arguments[++i]);
        else if (!strcmp(arguments[i], "--seconds"))
            seconds = number(arguments[++i]);
        else if (!strcmp(arguments[i], "--executions"))
            executions = number(arguments[++i]);
        else if (!strcmp(arguments[i], "--seed"))
            seed = number(arguments[++i]);
        else if (!strcmp(arguments[i], "--only"))
            only = number(arguments[++i]);
        else
            load(arguments[i]);
    }
    add_long_records();
    add_headers();
    choose_seeds();
    if (!legacy.batches_count || !compressed.batches_count || (only >= 0 && chosen < 0)) number(0);
    at = mmap(0, sizeof *at, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (only >= 0) {
        execute(chosen, only);
        return failures ? 1 : 0;
    }
    pid_t child = fork(); /* one for all: a sanitizer ends the process in which it finds something */
    if (child == 0) exit(fuzz_targets(chosen, (double)seconds, executions));
    if (child < 0 || waitpid(child, &ended, 0) < 0) return 2;
    if (ended == 0) return 0;
    if (WIFSIGNALED(ended) && WTERMSIG(ended) == SIGPROF) printf("fuzz: an execution does not end\n");
    printf("fuzz: failed; again with --target %s --seed %lld --only %lld\n", targets[at->target].name, (long long)seed,
           (long long)at->execution);
    return 1;
}
