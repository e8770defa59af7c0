/* metadata/topic_*.h: random records, compared with a model that searches through all it has. */
#include "check.h"
#include "metadata/topic_columns.h"
#include "metadata/topic_replay.h"

enum { TOPICS = 4, IDS = 12, MOST_ITEMS = 12, MOST_ROWS = 300, ROUNDS = 4000 };

static const int32_t partition_ids[IDS] = {0, 1, 2, 3, 4, 9, 70, 71, 1 << 20, INT32_MAX, -1, INT32_MIN};

typedef struct {
    int count;
    int32_t items[KR_ID_WORDS * MOST_ITEMS];
} list;

typedef struct {
    int is_there;
    int32_t leader, leader_epoch, partition_epoch, recovery;
    list lists[KR_LISTS];
} partition;

static struct {
    int is_there;
    int64_t name;
    partition partitions[IDS];
} model[TOPICS];

static void topic_id(int topic, uint8_t *out) {
    memset(out, 0, 16);
    out[0] = (uint8_t)topic;
    out[8] = (uint8_t)(topic & 1);
}

/* The records of a chunk: columns as Arrow has them. */
static struct {
    int64_t n, offsets[MOST_ROWS], topics[MOST_ROWS], partitions[MOST_ROWS];
    uint8_t ids[16 * MOST_ROWS], validity[KR_LISTS][MOST_ROWS / 8 + 1];
    int32_t partition_ids[MOST_ROWS], leaders[MOST_ROWS], epochs[MOST_ROWS], ends[KR_LISTS][MOST_ROWS + 1];
    int8_t recovery[MOST_ROWS];
    int32_t *items[KR_LISTS];
} rows;

static void add_list(int which, int64_t row, int is_given, int count, int is_known) {
    int width = which == KR_DIRECTORIES ? KR_ID_WORDS : 1;
    int32_t end = rows.ends[which][row];
    if (is_given) rows.validity[which][row / 8] |= (uint8_t)(1 << row % 8);
    if (!is_given) count = 0;
    /* memory ends where the items end, so that a sanitizer sees what is read behind them */
    rows.items[which] = realloc(rows.items[which], (size_t)(4 * width * (end + count) + 1));
    for (int i = 0; i < width * count; i++) rows.items[which][width * end + i] = is_known ? (int32_t)random_next() : 0;
    rows.ends[which][row + 1] = end + count;
}

static void make_rows(int64_t n, int is_change) {
    memset(rows.validity, 0, sizeof rows.validity);
    memset(rows.ends, 0, sizeof rows.ends);
    rows.n = n;
    for (int64_t row = 0; row < n; row++) {
        rows.offsets[row] = row;
        rows.topics[row] = random_below(TOPICS);
        rows.partitions[row] = random_below(IDS);
        topic_id((int)rows.topics[row], rows.ids + 16 * row);
        rows.partition_ids[row] = partition_ids[rows.partitions[row]];
        rows.leaders[row] = (int32_t)random_below(4) - 2;
        rows.epochs[row] = random_below(9) ? (int32_t)random_below(9) : INT32_MAX;
        rows.recovery[row] = (int8_t)(is_change ? random_below(9) ? -1 : random_below(4) - 1 : random_below(12) / 5);
        int is_rare = !is_change || !random_below(4), replicas = (int)random_below(MOST_ITEMS);
        for (int which = 0; which < KR_LISTS; which++) {
            int is_given = which == KR_ISR ? random_below(3) != 0 : is_rare && (!is_change || random_below(2));
            int count = which == KR_REPLICAS || which == KR_DIRECTORIES ? replicas : (int)random_below(MOST_ITEMS);
            if (which == KR_DIRECTORIES && !random_below(4)) count = (int)random_below(MOST_ITEMS);
            add_list(which, row, is_given, count, random_below(3) != 0);
        }
    }
}

static kr_partition_rows lent(int is_change) {
    kr_partition_rows lent = {.n = rows.n, .offsets = rows.offsets, .topic_ids = rows.ids};
    lent.partition_ids = rows.partition_ids;
    lent.leaders = rows.leaders;
    lent.recovery_states = rows.recovery;
    if (!is_change) lent.leader_epochs = lent.partition_epochs = rows.epochs;
    for (int which = 0; which < KR_LISTS; which++) {
        lent.lists[which] = (kr_list_column){.ends = rows.ends[which],
                                             .validity = rows.validity[which],
                                             .items = rows.items[which],
                                             .items_count = rows.ends[which][rows.n],
                                             .is_there = 1};
        if (which != KR_ISR) lent.others[lent.others_count++] = which;
    }
    return lent;
}

static int is_given(int which, int64_t row) { return rows.validity[which][row / 8] >> row % 8 & 1; }

static void take(list *to, int which, int64_t row) {
    int width = which == KR_DIRECTORIES ? KR_ID_WORDS : 1;
    to->count = rows.ends[which][row + 1] - rows.ends[which][row];
    for (int i = 0; i < width * to->count; i++) to->items[i] = rows.items[which][width * rows.ends[which][row] + i];
}

static int is_known(const list *directories) {
    for (int i = 0; i < KR_ID_WORDS * directories->count; i++)
        if (directories->items[i]) return 1;
    return 0;
}

/* The record of a row, by the plainest way; returns its fault. */
static int model_partition(int64_t row, int is_change) {
    partition *p = &model[rows.topics[row]].partitions[rows.partitions[row]], made = *p;
    if (is_change ? !p->is_there : !model[rows.topics[row]].is_there)
        return is_change ? KR_UNKNOWN_PARTITION : KR_UNKNOWN_TOPIC;
    int8_t recovery = rows.recovery[row];
    for (int which = 0; which < KR_LISTS; which++)
        if (!is_change || is_given(which, row)) take(&made.lists[which], which, row);
    list *directories = &made.lists[KR_DIRECTORIES];
    int replicas = made.lists[KR_REPLICAS].count, differ = directories->count && directories->count != replicas;
    int are_both = is_given(KR_REPLICAS, row) && is_given(KR_DIRECTORIES, row);
    if (is_change && recovery != -1 && recovery != 0 && recovery != 1) return KR_BAD_RECOVERY_STATE;
    if (differ && (!is_change || is_known(directories) || are_both)) return KR_BAD_DIRECTORIES;
    if (!is_change && recovery != 0 && recovery != 1) return KR_BAD_RECOVERY_STATE;
    if (!is_known(directories)) {
        directories->count = replicas;
        memset(directories->items, 0, sizeof directories->items);
    }
    made.is_there = 1;
    if (!is_change) made.leader_epoch = made.partition_epoch = rows.epochs[row];
    if (is_change) made.partition_epoch = (int32_t)((uint32_t)made.partition_epoch + 1);
    if (is_change && rows.leaders[row] != -2) made.leader_epoch = (int32_t)((uint32_t)made.leader_epoch + 1);
    if (!is_change || rows.leaders[row] != -2) made.leader = rows.leaders[row];
    if (recovery != -1) made.recovery = recovery;
    *p = made;
    return KR_APPLIED;
}

static int64_t faults[3 * MOST_ROWS], removed[1];

static void replay_partitions(kr_topics *s, int is_change) {
    kr_topic_chunk chunk = {.faults = faults, .removed = removed};
    *(is_change ? &chunk.changes : &chunk.partitions) = lent(is_change);
    CHECK_INT(0, kr_topics_replay(s, &chunk));
    int64_t found = 0;
    for (int64_t row = 0; row < rows.n; row++) {
        int fault = model_partition(row, is_change);
        if (!fault) continue;
        CHECK_INT(row, faults[3 * found + 1]);
        CHECK_INT(fault, faults[3 * found + 2]);
        found++;
    }
    CHECK_INT(found, chunk.faults_count);
}

static void replay_topic(kr_topics *s, int topic, int is_removal, int64_t name) {
    int64_t offset = 0, cleared = -1;
    uint8_t id[16];
    topic_id(topic, id);
    kr_topic_chunk chunk = {.first_name = name, .cleared = &cleared, .faults = faults, .removed = removed};
    *(is_removal ? &chunk.removals : &chunk.topics) = (kr_topic_rows){1, &offset, id};
    CHECK_INT(0, kr_topics_replay(s, &chunk));
    CHECK_INT(is_removal && !model[topic].is_there, chunk.faults_count);
    if (is_removal) CHECK_INT(model[topic].is_there ? model[topic].name : -1, removed[0]);
    memset(&model[topic], 0, sizeof model[topic]);
    model[topic].is_there = !is_removal;
    model[topic].name = name;
}

static void replay_clearing(kr_topics *s, int topic) {
    int64_t offset = 0, name = topic < 0 ? KR_EVERY_TOPIC : 0;
    uint8_t id[16];
    topic_id(topic < 0 ? 0 : topic, id);
    kr_candidate candidate = {0, topic < 0 ? 0 : model[topic].name, 0};
    uint64_t low, high;
    kr_topic_id_at(id, 0, &low, &high);
    candidate.topic = kr_topic_find(s, low, high);
    int is_there = topic < 0 || model[topic].is_there;
    kr_topic_chunk chunk = {.clearings = 1, .clearing_offsets = &offset, .clearing_names = &name, .faults = faults};
    chunk.candidates = &candidate;
    chunk.candidates_count = candidate.topic != KR_NOWHERE;
    CHECK_INT(0, kr_topics_replay(s, &chunk));
    CHECK_INT(!is_there, chunk.faults_count);
    for (int one = 0; one < TOPICS; one++)
        for (int id_at = 0; id_at < IDS; id_at++) {
            partition *p = &model[one].partitions[id_at];
            list *elr = p->lists + KR_ELR, *last_known = p->lists + KR_LAST_KNOWN_ELR;
            if ((topic >= 0 && one != topic) || !p->is_there || !(elr->count || last_known->count)) continue;
            elr->count = last_known->count = 0;
            p->partition_epoch = (int32_t)((uint32_t)p->partition_epoch + 1);
        }
}

static void check_partition(const kr_topics *s, int32_t slot, const partition *expected) {
    static int32_t ends[KR_LISTS][2], items[KR_LISTS][KR_ID_WORDS * MOST_ITEMS], numbers[5];
    int8_t recovery;
    kr_partition_columns out = {numbers, numbers + 1, numbers + 2, numbers + 3, numbers + 4, &recovery, {0}, {0}};
    for (int which = 0; which < KR_LISTS; which++) {
        out.ends[which] = ends[which];
        out.items[which] = items[which];
    }
    int64_t at = slot, counts[KR_LISTS];
    kr_items_count(s, kr_slots_at(s), &at, 1, counts);
    kr_partitions_gather(s, kr_slots_at(s), &at, 1, &out);
    CHECK_INT(expected->leader, numbers[2]);
    CHECK_INT(expected->leader_epoch, numbers[3]);
    CHECK_INT(expected->partition_epoch, numbers[4]);
    CHECK_INT(expected->recovery, recovery);
    for (int which = 0; which < KR_LISTS; which++) {
        int64_t size = (which == KR_DIRECTORIES ? 16 : 4) * expected->lists[which].count;
        CHECK_INT(expected->lists[which].count, counts[which]);
        CHECK_INT(expected->lists[which].count, ends[which][1]);
        CHECK_BYTES((const uint8_t *)expected->lists[which].items, size, (const uint8_t *)items[which], size);
    }
}

static void check_all(const kr_topics *s) {
    int64_t topics = 0, partitions = 0;
    for (int topic = 0; topic < TOPICS; topic++) {
        uint8_t id[16];
        uint64_t low, high;
        topic_id(topic, id);
        kr_topic_id_at(id, 0, &low, &high);
        int32_t found = kr_topic_find(s, low, high);
        CHECK_INT(model[topic].is_there, found != KR_NOWHERE);
        if (found == KR_NOWHERE) continue;
        topics++;
        int64_t number = found, slots[IDS], there = 0;
        for (int at = 0; at < IDS; at++) {
            int32_t slot = kr_partition_find(s, &kr_topics_at(s)[found], partition_ids[at]);
            CHECK_INT(model[topic].partitions[at].is_there, slot != KR_NOWHERE);
            if (slot == KR_NOWHERE) continue;
            check_partition(s, slot, &model[topic].partitions[at]);
            there++;
        }
        CHECK_INT(there, kr_slots_of(s, &number, 1, slots));
        for (int at = 1; at < there; at++)
            CHECK_TRUE(kr_slots_at(s)[slots[at - 1]].partition_id < kr_slots_at(s)[slots[at]].partition_id);
        partitions += there;
    }
    CHECK_INT(topics, s->topics_count);
    CHECK_INT(partitions, s->partitions_count);
}

static void test_random_records(void) {
    kr_topics s, copied;
    CHECK_TRUE(kr_topics_open(&s));
    for (int64_t round = 0; round < ROUNDS; round++) {
        int64_t kind = random_below(20);
        if (kind < 3) replay_topic(&s, (int)random_below(TOPICS), kind == 2, round);
        if (kind == 3) replay_clearing(&s, (int)random_below(TOPICS + 1) - 1);
        if (kind > 3) {
            make_rows(1 + random_below(random_below(9) ? 8 : MOST_ROWS), kind > 10);
            replay_partitions(&s, kind > 10);
        }
        check_all(&s);
        if (!random_below(9)) kr_notes_begin(&s, 1);
        if (!random_below(50)) {
            CHECK_TRUE(kr_topics_copy(&copied, &s));
            kr_topics_close(&s);
            s = copied;
        }
    }
    CHECK_TRUE(s.words.size < 4 << 20); /* blocks are used again */
    CHECK_TRUE(s.slots.size < 1 << 20);
    kr_topics_close(&s);
    for (int which = 0; which < KR_LISTS; which++) free(rows.items[which]);
}

/* Lists that are not within their items. */
static void test_bad_lists(void) {
    kr_topics s;
    CHECK_TRUE(kr_topics_open(&s));
    memset(model, 0, sizeof model);
    memset(rows.items, 0, sizeof rows.items);
    for (int topic = 0; topic < TOPICS; topic++) replay_topic(&s, topic, 0, 0);
    for (int is_change = 0; is_change < 2; is_change++) {
        do make_rows(1, is_change);
        while (!is_given(KR_ISR, 0) || rows.ends[KR_ISR][1] == 0);
        for (int32_t end = -1; end < 2 * MOST_ITEMS; end += 2 * MOST_ITEMS) {
            kr_topic_chunk chunk = {.faults = faults, .removed = removed};
            kr_partition_rows lists = lent(is_change);
            int32_t ends[2] = {end < 0 ? -1 : 0, end < 0 ? 1 : end};
            lists.lists[KR_ISR].ends = ends;
            *(is_change ? &chunk.changes : &chunk.partitions) = lists;
            if (is_change) { /* of a partition that is there */
                kr_topic *topic = &kr_topics_at(&s)[0];
                uint8_t *id = rows.ids;
                memcpy(id, &topic->low, 8);
                memcpy(id + 8, &topic->high, 8);
                if (kr_partition_find(&s, topic, rows.partition_ids[0]) == KR_NOWHERE)
                    CHECK_TRUE(kr_partition_add(&s, 0, rows.partition_ids[0], random_below(4)) >= 0);
            }
            CHECK_INT(KR_BAD_LIST, kr_topics_replay(&s, &chunk));
        }
    }
    kr_topics_close(&s);
    for (int which = 0; which < KR_LISTS; which++) free(rows.items[which]);
}

/* How many rows behind each are of the same topic and of the partitions that follow, one by one. */
static void test_partitions_following(void) {
    for (int round = 0; round < 2000; round++) {
        int64_t n = 1 + random_below(20), end = 1 + random_below(n);
        /* memory ends where the rows end, so that a sanitizer sees what is read behind them */
        int32_t *ids = malloc((size_t)(4 * end));
        uint8_t *topics = malloc((size_t)(16 * end));
        for (int64_t row = 0; row < end; row++) {
            int goes_on = row && random_below(8);
            ids[row] = goes_on ? ids[row - 1] + 1 : (int32_t)random_below(4);
            if (goes_on && random_below(8))
                memcpy(topics + 16 * row, topics + 16 * (row - 1), 16);
            else
                topic_id((int)random_below(TOPICS), topics + 16 * row);
        }
        kr_partition_rows given = {.n = end, .topic_ids = topics, .partition_ids = ids};
        for (int64_t row = 0; row < end; row++) {
            int64_t following = 0;
            for (int64_t at = row + 1; at < end; at++, following++) {
                if (ids[at] != ids[at - 1] + 1) break;
                if (memcmp(topics + 16 * at, topics + 16 * (at - 1), 16)) break;
            }
            CHECK_INT(following, kr_partitions_following(&given, row, end));
        }
        free(ids);
        free(topics);
    }
}

int main(void) {
    test_partitions_following();
    test_random_records();
    test_bad_lists();
    return check_report("topics");
}
