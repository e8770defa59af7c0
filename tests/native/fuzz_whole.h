/* Messages that message/whole.h takes without a decoder: what it calls whole every decoder reads without a fault, and
 * what it calls a whole key has one form alone. */
#ifndef KRAFTLOG_TESTS_FUZZ_WHOLE_H
#define KRAFTLOG_TESTS_FUZZ_WHOLE_H

#include "fuzz_messages.h"
#include "message/whole.h"

/* Whether the interpreter reads value i of an input without a fault. */
static inline int is_read_without_fault(const fuzz_messages_input *in, int64_t i) {
    static fuzz_messages_input one;
    static fuzz_columns found;
    one.table = in->table;
    one.data = in->data;
    one.size = in->size;
    one.values = i + 1;
    one.count = 1;
    one.rows[0] = i;
    one.starts[i] = in->starts[i];
    one.versions[i] = in->versions[i];
    memcpy(&one.ends[i], &in->ends[i], 2 * sizeof *in->ends);
    fuzz_columns_open(&found, in->table->columns, 0);
    kr_messages m = {{.ends = one.ends, .data = one.data}, one.rows, one.starts, 1};
    found.d.program = in->table->programs[in->versions[i] - in->table->first];
    found.d.limit = one.data + one.size;
    kr_interpret_block(&found.d, &m, 0, 1);
    int is_sound = !found.d.faults.size && !found.d.no_memory;
    fuzz_columns_close(&found);
    return is_sound;
}

/* A copy that ends where the message does: nothing behind it may be read. */
static inline void check_whole(const fuzz_messages_input *in, int64_t i) {
    const kr_program *program = &in->table->programs[in->versions[i] - in->table->first];
    int64_t size = in->ends[i + 1] - in->ends[i] - in->starts[i];
    uint8_t *p = exact_copy(in->data + in->ends[i] + in->starts[i], size);
    kr_flat flat = kr_flat_of(program);
    int is_whole = kr_message_is_whole(program, p, p + size), is_key = kr_key_is_whole(program, p, p + size);
    if (is_whole || is_key) CHECK_TRUE(is_read_without_fault(in, i));
    if (is_key) CHECK_TRUE(is_whole && !program->is_compact);
    if (flat.texts != KR_WHOLE_ODD) CHECK_INT(is_whole, kr_flat_is_whole(program, &flat, p, p + size));
    if (failures) printf("of %s, version %d\n", in->table->name, in->versions[i]);
    exact_free(p, size);
}

static void fuzz_whole(const corpus *c) {
    static fuzz_messages_input in;
    (void)c;
    most_messages = 3;
    make_messages(&in, &message_tables[random_below(MESSAGE_TABLES)]);
    most_messages = MOST_MESSAGES;
    for (int64_t i = 0; i < in.values && !failures; i++) check_whole(&in, i);
    exact_free((uint8_t *)in.data, in.size);
}

#endif
