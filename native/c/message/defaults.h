/* Appends what fields are where they are absent. */
#ifndef KRAFTLOG_MESSAGE_DEFAULTS_H
#define KRAFTLOG_MESSAGE_DEFAULTS_H

#include "message/rows.h"
#include "text/uuid_text.h"

static void kr_put_default_items(kr_message_decoder *d, int32_t field, int64_t n, int is_null);

static void kr_put_default(kr_message_decoder *d, int32_t field, int64_t n) {
    const kr_field *f = &d->program.fields[field];
    kr_column *c = &d->columns[field];
    if (!f->is_array) {
        kr_put_default_items(d, field, n, f->null_default);
        return;
    }
    int32_t end = (int32_t)c->item.count;
    if (!kr_push_repeated(&c->list.ends, &end, sizeof end, n) || !kr_counted(&c->list, n, !f->null_default))
        d->no_memory = 1;
}

static void kr_put_no_unknown(kr_message_decoder *d, int32_t field, int64_t n) {
    kr_column *u = &d->columns[d->program.fields[field].unknown];
    int32_t end = (int32_t)u->item.count;
    if (!kr_push_repeated(&u->list.ends, &end, sizeof end, n)) d->no_memory = 1;
    u->list.count += n;
}

static void kr_put_default_items(kr_message_decoder *d, int32_t field, int64_t n, int is_null) {
    const kr_field *f = &d->program.fields[field];
    kr_level *l = &d->columns[field].item;
    int ok = 1;
    if (f->kind == KR_KIND_STRUCT) {
        for (int32_t k = f->first; k < f->first + f->count; k++) kr_put_default(d, k, n);
        kr_put_no_unknown(d, field, n);
    } else if (f->kind == KR_KIND_STRING || f->kind == KR_KIND_BYTES) {
        int64_t size = is_null ? 0 : f->default_size;
        if (size) ok = kr_push_repeated(&l->data, d->program.text + f->default_at, size, n);
        ok = ok && kr_reserve(&l->ends, 4 * n);
        for (int64_t i = n; ok && i-- > 0;) kr_push_end(l, l->data.size - i * size);
    } else if (f->kind == KR_KIND_UUID) {
        static const uint8_t zeros[KR_UUID_SIZE];
        ok = d->uuid_text ? kr_push_repeated(&l->data, KR_ZERO_UUID_TEXT, KR_UUID_TEXT_SIZE, n)
                          : kr_push_repeated(&l->data, zeros, KR_UUID_SIZE, n);
        ok = ok && kr_reserve(&l->ends, 4 * n);
        for (int64_t i = n; ok && d->uuid_text && i-- > 0;) kr_push_end(l, l->data.size - i * KR_UUID_TEXT_SIZE);
    } else {
        ok = kr_push_repeated(&l->data, kr_default_bytes(f), kr_column_width(f->kind), n);
    }
    if (!ok || !kr_counted(l, n, !is_null)) d->no_memory = 1;
}

#endif
