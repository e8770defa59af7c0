/* Damages real log files at random and decodes them in every way: nothing may be read or written where it should not
 * be, every pass must end, and passes that differ only in how they are cut into chunks must agree.
 *
 *   fuzz_decoder [--seconds N] [--seed S] [--only ITERATION] FILE...
 *
 * An iteration depends on the seed and its own number only, so that --only repeats one that failed.
 */
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fuzz_pass.h"
#include "scanner.h"
#include "varint_column.h"

enum { SECONDS_OF_AN_ITERATION = 60 };

static corpus seeds;
static int64_t seed = 1;
static volatile int64_t *iteration; /* seen by the process that waits */

/* All rows, of one large chunk. */
static pass whole_pass(const uint8_t *p, int64_t size) {
    pass s;
    memset(&s, 0, sizeof s);
    s.d.input = kr_input_make(p, size);
    s.d.end = size;
    s.d.want = WANT_ALL;
    s.d.check_crc = 1;
    s.d.include_control = 1;
    s.d.start_offset = INT64_MIN;
    s.d.end_offset = INT64_MAX;
    s.d.start_timestamp = INT64_MIN;
    s.d.torn_at = -1;
    s.d.next_offset = -1;
    s.rows = size / KR_SMALLEST_RECORD + 2;
    s.bytes = size + 1;
    s.headers = size / 2 + 1;
    s.salt = (uint64_t)(seed * 1000003 + *iteration);
    return s;
}

static void choose_small_chunk(pass *s) {
    s->rows = random_below(3) ? random_below(20) : random_below(1000);
    s->bytes = random_below(3) ? random_below(300) : random_below(20000);
    s->headers = random_below(12);
}

/* The same rows and faults, whatever the chunks and the columns that are asked for. */
static void check_same(const outcome *a, const outcome *b, uint32_t want) {
    CHECK_INT(a->rows, b->rows);
    CHECK_INT(a->faults, b->faults);
    CHECK_INT(a->faults_hash, b->faults_hash);
    CHECK_INT(a->torn_at, b->torn_at);
    for (int k = 0; k < COLUMNS; k++)
        if (want >> k & 1) CHECK_INT(a->column[k], b->column[k]);
}

/* Batches before the first changed byte come out as they were. */
static void check_untouched(const outcome *before, const outcome *after, int64_t changed) {
    for (int64_t i = 0; i < before->stretches_count && before->stretches[i].end <= changed; i++) {
        CHECK_TRUE(i < after->stretches_count);
        if (i >= after->stretches_count) return;
        CHECK_INT(before->stretches[i].position, after->stretches[i].position);
        CHECK_INT(before->stretches[i].hash, after->stretches[i].hash);
    }
}

static void check_bounds(pass *s, int64_t size) {
    static outcome bounded;
    s->d.start_offset = random_below(2) ? interesting() : random_below(1000);
    s->d.end_offset = random_below(2) ? interesting() : random_below(1000);
    kr_aborted aborted[] = {{interesting(), random_below(1000), random_below(4000)}, {77, 0, random_below(4000)}};
    s->d.aborted = aborted;
    s->d.aborted_count = random_below(3);
    s->d.start_timestamp = random_below(2) ? interesting() : INT64_MIN;
    s->d.position = random_below(4) ? 0 : random_below(size + 1);
    s->d.end = random_below(4) ? size : random_below(size + 1);
    s->d.check_crc = (int8_t)random_below(2);
    s->d.include_control = (int8_t)random_below(2);
    run_pass(s, &seeds, &bounded);
    s->d.aborted_count = 0;
}

/* Headers a few at a time: positions rise, faults lie between them; the result as a hash. */
static uint64_t scan(const uint8_t *p, int64_t size, int64_t max, int check_crc, int64_t *faults) {
    kr_batch_header out[64];
    kr_scanner s;
    uint64_t hash = 0;
    int64_t count, position = -1;
    int status = KR_CHUNK_FULL;
    memset(&s, 0, sizeof s);
    s.input = kr_input_make(p, size);
    s.end = size;
    s.check = (int8_t)check_crc;
    s.torn_at = -1;
    *faults = 0;
    while (status != KR_END && !failures) {
        int64_t from = s.position;
        status = kr_scanner_run(&s, out, max, &count);
        CHECK_TRUE(count >= 0 && count <= max && s.position <= size && (status == KR_END || s.position > from));
        for (int64_t i = 0; i < count; i++) {
            CHECK_TRUE(out[i].position > position && out[i].position >= from);
            position = out[i].position;
            hash = hash_int(hash_int(hash, position), out[i].crc);
        }
        if (status == KR_END || status == KR_CHUNK_FULL) continue;
        CHECK_TRUE(s.fault_at >= from && s.fault_at < s.position);
        hash = hash_int(hash_int(hash, status), s.fault_at);
        *faults += status != KR_BAD_CRC || out[count - 1].base_offset != INT64_MAX; /* the decoder's end_offset */
    }
    return hash_int(hash, s.torn_at);
}

static void check_scans(const uint8_t *p, int64_t size, const outcome *decoded) {
    for (int check_crc = 0; check_crc < 2; check_crc++) {
        int64_t faults, faults_again;
        uint64_t one = scan(p, size, 1, check_crc, &faults), many = scan(p, size, 64, check_crc, &faults_again);
        CHECK_INT(one, many);
        CHECK_INT(faults, faults_again);
        if (check_crc && !decoded->strays) CHECK_TRUE(faults <= decoded->faults);
    }
}

static void check_varints(const uint8_t *p, int64_t size) {
    int64_t n = kr_varints_count(p, size);
    int64_t *wide = room_block(n * 8);
    int32_t *narrow = room_block(n * 4);
    kr_error e;
    kr_varints_decode(p, size, narrow, &e);
    kr_varlongs_decode(p, size, wide, &e);
    free(wide);
    free(narrow);
}

static void fuzz_once(void) {
    static fuzz_input original, input;
    static outcome before, whole, other;
    random_state = hash_int(hash_int(1, seed), *iteration) | 1;
    choose_input(&original, &seeds);
    input = original;
    for (int64_t n = random_below(6); n > 0; n--) mutate_once(&input, &seeds);
    if (random_below(2)) mend_crcs(&input);
    int64_t changed = 0;
    while (changed < original.size && changed < input.size && original.at[changed] == input.at[changed]) changed++;

    uint8_t *p = exact_copy(input.at, input.size);
    pass s = whole_pass(p, input.size);
    run_pass(&s, &seeds, &whole);
    check_scans(p, input.size, &whole);
    check_varints(p, input.size);

    pass first = whole_pass(original.at, original.size);
    run_pass(&first, &seeds, &before);
    check_untouched(&before, &whole, changed);

    pass small = s;
    small.d.want = (uint32_t)(*iteration & WANT_ALL);
    choose_small_chunk(&small);
    run_pass(&small, &seeds, &other);
    check_same(&whole, &other, small.d.want);
    check_bounds(&small, input.size);

    s.d.check_crc = small.d.check_crc = 0; /* without crcs the walk meets all that is bad */
    small.d = s.d;
    small.d.want = (uint32_t)(random_next() & WANT_ALL);
    run_pass(&s, &seeds, &whole);
    run_pass(&small, &seeds, &other);
    check_same(&whole, &other, small.d.want);
    exact_free(p, input.size);
}

/* Files as they are: whatever has been decoded in between, they give what they gave at first. */
static uint64_t hash_of_files(void) {
    static outcome o;
    uint64_t hash = 0;
    *iteration = 0;
    for (int64_t i = 0; i < seeds.files_count; i++) {
        pass s = whole_pass(seeds.files[i].at, seeds.files[i].size);
        run_pass(&s, &seeds, &o);
        for (int k = 0; k < COLUMNS; k++) hash = hash_int(hash, (int64_t)o.column[k]);
        hash = hash_int(hash, (int64_t)o.faults_hash);
    }
    return hash;
}

static void load(const char *name) {
    FILE *f = fopen(name, "rb");
    if (!f) {
        perror(name);
        exit(2);
    }
    static uint8_t bytes_read[1 << 24];
    int64_t size = (int64_t)fread(bytes_read, 1, sizeof bytes_read, f);
    fclose(f);
    if (size > 0) corpus_add(&seeds, exact_copy(bytes_read, size), size);
}

/* Few real records have fields that are longer than what is copied in whole words: some that have. */
static void add_long_records(void) {
    static const char *const headers[] = {"key", "value", "", 0, "key", "", 0};
    static char text[301];
    memset(text, 'x', 300);
    for (int length = 0; length <= 300; length += length < 70 ? 3 : 23) {
        static bytes b, records;
        b.size = records.size = 0;
        put_record(&records, 0, 0, text + 300 - length, 0, 0);
        put_record(&records, 0, 1, 0, text + 300 - length, length % 2 ? headers : 0);
        put_record(&records, 0, 2, text + 300 - length, text + 300 - length, 0);
        put_batch(&b, length, 0, 1000, 3, &records);
        corpus_add(&seeds, exact_copy(b.at, b.size), b.size);
    }
}

static int64_t number(const char *text) {
    if (text) return strtoll(text, 0, 10);
    fprintf(stderr, "usage: fuzz_decoder [--seconds N] [--seed S] [--only ITERATION] FILE...\n");
    exit(2);
}

/* Runs until the time is up, or the one iteration; returns what the process ends with. */
static int fuzz(int64_t seconds, int64_t only) {
    time_t stop = time(0) + (time_t)seconds;
    uint64_t at_first = hash_of_files();
    int64_t i = only < 0 ? 0 : only;
    for (; only < 0 ? time(0) < stop : i == only; i++) {
        alarm(SECONDS_OF_AN_ITERATION);
        *iteration = i;
        fuzz_once();
        if (failures) return 1;
    }
    CHECK_INT(at_first, hash_of_files());
    printf("fuzz_decoder: %lld iterations over %lld files, %lld batches\n", (long long)i, (long long)seeds.files_count,
           (long long)seeds.batches_count);
    return failures ? 1 : 0;
}

int main(int count, char **arguments) {
    int64_t seconds = 10, only = -1;
    int ended = 0;
    kr_crc_init();
    for (int i = 1; i < count; i++) {
        if (!strcmp(arguments[i], "--seconds"))
            seconds = number(arguments[++i]);
        else if (!strcmp(arguments[i], "--seed"))
            seed = number(arguments[++i]);
        else if (!strcmp(arguments[i], "--only"))
            only = number(arguments[++i]);
        else
            load(arguments[i]);
    }
    if (!seeds.batches_count) number(0);
    add_long_records();
    iteration = mmap(0, sizeof *iteration, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t child = fork(); /* a sanitizer ends the process in which it finds something */
    if (child == 0) exit(fuzz(seconds, only));
    if (child < 0 || waitpid(child, &ended, 0) < 0) return 2;
    if (ended == 0) return 0;
    if (WIFSIGNALED(ended) && WTERMSIG(ended) == SIGALRM) printf("fuzz_decoder: an iteration does not end\n");
    printf("fuzz_decoder: failed; again with --seed %lld --only %lld\n", (long long)seed, (long long)*iteration);
    return 1;
}
