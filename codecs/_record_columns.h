/* The records of many batches as columns: records/columns.py says what it means.
 *
 * A part of _hot.c, which includes it once, behind _record_walk.h. Each column is a bytearray that grows
 * and is given away without a copy; a record of 100 bytes costs less than 0.1 us.
 *
 * What was given away comes back once nobody else has it. For the kernel takes longer to find pages of
 * new memory than copying into them does: 0.5 us a KiB on a machine where the copy is 0.1. */

enum { SEQUENCE_MASK = 0x7FFFFFFF, MOST_GIVEN = 2 }; /* one that is looked at, and the one before */

struct given {
    PyObject *bytes; /* NULL: none */
    Py_ssize_t capacity;
};

struct growing {
    PyObject *bytes; /* NULL: nothing yet */
    Py_ssize_t used, capacity;
    struct given given[MOST_GIVEN];
};

/* Takes back what nobody else has any more, if there is such; returns 0 with an exception set. */
static int take_back(struct growing *g)
{
    for (int i = 0; i < MOST_GIVEN; i++) {
        struct given *each = &g->given[i];
        if (each->bytes == NULL || Py_REFCNT(each->bytes) > 1)
            continue;
        if (PyByteArray_Resize(each->bytes, each->capacity) < 0)
            return 0;
        g->bytes = each->bytes;
        g->capacity = each->capacity;
        each->bytes = NULL;
        return 1;
    }
    return 1;
}

static int grow(struct growing *g, Py_ssize_t more)
{
    if (g->bytes == NULL && !take_back(g))
        return 0;
    if (more <= g->capacity - g->used)
        return 1;
    Py_ssize_t capacity = g->capacity * 2 > g->used + more ? g->capacity * 2 : g->used + more;
    if (capacity < 4096)
        capacity = 4096;
    if (g->bytes == NULL) {
        g->bytes = PyByteArray_FromStringAndSize(NULL, capacity);
        if (g->bytes == NULL)
            return 0;
    } else if (PyByteArray_Resize(g->bytes, capacity) < 0) {
        return 0;
    }
    g->capacity = capacity;
    return 1;
}

static inline char *room(struct growing *g, Py_ssize_t more)
{
    if (more > g->capacity - g->used && !grow(g, more))
        return NULL;
    return PyByteArray_AS_STRING(g->bytes) + g->used;
}

static inline int put(struct growing *g, const void *data, Py_ssize_t size)
{
    char *at = room(g, size);
    if (at == NULL)
        return 0;
    memcpy(at, data, (size_t)size);
    g->used += size;
    return 1;
}

/* Gives the bytes away, a new reference, and remembers them. */
static PyObject *give(struct growing *g)
{
    if (g->bytes == NULL)
        return PyByteArray_FromStringAndSize(NULL, 0);
    struct given now = {g->bytes, g->capacity};
    if (PyByteArray_Resize(now.bytes, g->used) < 0)
        return NULL;
    g->bytes = NULL;
    g->used = g->capacity = 0;
    Py_XDECREF(g->given[0].bytes);
    memmove(g->given, g->given + 1, sizeof g->given - sizeof *g->given);
    g->given[MOST_GIVEN - 1] = now;
    return Py_NewRef(now.bytes);
}

/* One bit for each row, the lowest first; bits behind the last row are 0. */
static inline int put_bit(struct growing *g, int64_t row, int is_set)
{
    Py_ssize_t byte = (Py_ssize_t)(row >> 3);
    g->used = byte;
    uint8_t *at = (uint8_t *)room(g, 1);
    if (at == NULL)
        return 0;
    uint8_t bit = (uint8_t)(1 << (row & 7));
    *at = (uint8_t)(((row & 7) ? *at : 0) | (is_set ? bit : 0));
    g->used = byte + 1;
    return 1;
}

/* Keeps so many rows' bits. */
static void keep_bits(struct growing *g, int64_t rows)
{
    g->used = (Py_ssize_t)((rows + 7) / 8);
    if (rows & 7)
        PyByteArray_AS_STRING(g->bytes)[g->used - 1] &= (char)((1 << (rows & 7)) - 1);
}

/* Fields of bytes: where each ends in `data`, and which are there. */
struct fields {
    struct growing ends, data, validity;
    int64_t rows, nulls;
};

static int put_field(struct fields *f, const uint8_t *data, int64_t length)
{
    if (f->rows == 0 && f->ends.used == 0) {
        int32_t begin = 0;
        if (!put(&f->ends, &begin, sizeof begin))
            return 0;
    }
    if (length > INT32_MAX - f->data.used) {
        PyErr_SetString(PyExc_OverflowError, "a column is full: take it first");
        return 0;
    }
    if (length > 0 && !put(&f->data, data, (Py_ssize_t)length))
        return 0;
    int32_t end = (int32_t)f->data.used;
    if (!put(&f->ends, &end, sizeof end) || !put_bit(&f->validity, f->rows, length >= 0))
        return 0;
    f->rows++;
    f->nulls += length < 0;
    return 1;
}

static PyObject *give_fields(struct fields *f)
{
    int32_t begin = 0;
    if (f->ends.used == 0 && !put(&f->ends, &begin, sizeof begin))
        return NULL;
    long long nulls = f->nulls;
    f->rows = f->nulls = 0;
    PyObject *ends = give(&f->ends);
    PyObject *data = ends ? give(&f->data) : NULL;
    PyObject *validity = data ? give(&f->validity) : NULL;
    if (validity == NULL) {
        Py_XDECREF(ends);
        Py_XDECREF(data);
        return NULL;
    }
    return Py_BuildValue("(NNNL)", ends, data, validity, nulls);
}

static void forget(struct growing *g)
{
    Py_XDECREF(g->bytes);
    for (int i = 0; i < MOST_GIVEN; i++)
        Py_XDECREF(g->given[i].bytes);
    memset(g, 0, sizeof *g);
}

static void forget_fields(struct fields *f)
{
    forget(&f->ends);
    forget(&f->data);
    forget(&f->validity);
    f->rows = f->nulls = 0;
}

typedef struct {
    PyObject_HEAD
    int has_keys, has_values, has_headers;
    int64_t rows, rows_with_headers;
    struct growing offsets, timestamps, sequences, header_ends, header_validity;
    struct fields key, value, header_key, header_value;
} Columns;

static void forget_all(Columns *c)
{
    forget(&c->offsets);
    forget(&c->timestamps);
    forget(&c->sequences);
    forget(&c->header_ends);
    forget(&c->header_validity);
    forget_fields(&c->key);
    forget_fields(&c->value);
    forget_fields(&c->header_key);
    forget_fields(&c->header_value);
    c->rows = c->rows_with_headers = 0;
}

/* What a batch's header says to its records. */
struct of_batch {
    int64_t base_offset, base_timestamp, append_time, first_offset, end_offset;
    int32_t base_sequence;
    int has_append_time;
};

/* What there was before a batch, should it be none. */
struct taken_back {
    int64_t rows, rows_with_headers;
    struct fields key, value, header_key, header_value;
};

static void note_fields(struct fields *to, const struct fields *from)
{
    to->rows = from->rows;
    to->nulls = from->nulls;
    to->data.used = from->data.used;
}

static void restore_fields(struct fields *f, const struct fields *before)
{
    f->rows = before->rows;
    f->nulls = before->nulls;
    f->data.used = before->data.used;
    if (f->ends.used)
        f->ends.used = (Py_ssize_t)(before->rows + 1) * 4;
    if (f->validity.bytes != NULL)
        keep_bits(&f->validity, before->rows);
}

static void restore(Columns *c, const struct taken_back *before)
{
    c->rows = before->rows;
    c->rows_with_headers = before->rows_with_headers;
    c->offsets.used = c->timestamps.used = (Py_ssize_t)before->rows * 8;
    c->sequences.used = (Py_ssize_t)before->rows * 4;
    if (c->header_ends.used)
        c->header_ends.used = (Py_ssize_t)(before->rows + 1) * 4;
    if (c->header_validity.bytes != NULL)
        keep_bits(&c->header_validity, before->rows);
    restore_fields(&c->key, &before->key);
    restore_fields(&c->value, &before->value);
    restore_fields(&c->header_key, &before->header_key);
    restore_fields(&c->header_value, &before->header_value);
}

/* Walks a record's headers and, if they are wanted, takes them; returns the end, NULL at a fault. */
static const uint8_t *take_headers(Columns *c, const uint8_t *p, const uint8_t *end, int is_taken)
{
    int64_t count, key_length, value_length;
    if ((p = read_number(p, end, 32, &count)) == NULL || count < 0)
        return NULL;
    for (int64_t left = count; left > 0; left--) {
        const uint8_t *key_end = pass_field(p, end, &key_length);
        if (key_end == NULL || key_length < 0)
            return NULL;
        p = pass_field(key_end, end, &value_length);
        if (p == NULL)
            return NULL;
        if (is_taken &&
            (!put_field(&c->header_key, key_end - key_length, key_length) ||
             !put_field(&c->header_value, value_length > 0 ? p - value_length : p, value_length)))
            return NULL;
    }
    if (is_taken) {
        int32_t header_end = (int32_t)c->header_key.rows;
        if (!put(&c->header_ends, &header_end, sizeof header_end) ||
            !put_bit(&c->header_validity, c->rows, count > 0))
            return NULL;
        c->rows_with_headers += count > 0;
    }
    return p;
}

/* Takes the record between `p` and `end`; returns 0 at a fault, or with an exception set. */
static int take_record(Columns *c, const struct of_batch *b, const uint8_t *p, const uint8_t *end)
{
    int64_t timestamp, delta, key_length, value_length;
    if (p >= end || (p = read_number(p + 1, end, 64, &timestamp)) == NULL ||
        (p = read_number(p, end, 32, &delta)) == NULL)
        return 0;
    timestamp = b->has_append_time ? b->append_time
                                   : (int64_t)((uint64_t)b->base_timestamp + (uint64_t)timestamp);
    int64_t offset = (int64_t)((uint64_t)b->base_offset + (uint64_t)delta);
    int is_taken = offset >= b->first_offset && offset < b->end_offset;
    const uint8_t *key_end = pass_field(p, end, &key_length);
    if (key_end == NULL)
        return 0;
    const uint8_t *value_end = pass_field(key_end, end, &value_length);
    if (value_end == NULL)
        return 0;
    if (take_headers(c, value_end, end, is_taken && c->has_headers) != end)
        return 0;
    if (!is_taken)
        return 1;
    int32_t sequence =
        b->base_sequence < 0 ? -1 : (int32_t)((b->base_sequence + delta) & SEQUENCE_MASK);
    const uint8_t *key = key_length > 0 ? key_end - key_length : key_end;
    const uint8_t *value = value_length > 0 ? value_end - value_length : value_end;
    if (!put(&c->offsets, &offset, sizeof offset) ||
        !put(&c->timestamps, &timestamp, sizeof timestamp) ||
        !put(&c->sequences, &sequence, sizeof sequence) ||
        (c->has_keys && !put_field(&c->key, key, key_length)) ||
        (c->has_values && !put_field(&c->value, value, value_length)))
        return 0;
    c->rows++;
    return 1;
}

static int take_records(Columns *c, const struct of_batch *b, const uint8_t *p, const uint8_t *end,
                        int64_t count)
{
    if (count < 0)
        return 0;
    if (c->has_headers && c->header_ends.used == 0) {
        int32_t begin = 0;
        if (!put(&c->header_ends, &begin, sizeof begin))
            return 0;
    }
    for (; count > 0; count--) {
        int64_t length;
        if ((p = read_number(p, end, 32, &length)) == NULL || length < 0 || length > end - p ||
            !take_record(c, b, p, p + length))
            return 0;
        p += length;
    }
    return p == end;
}

static PyObject *add_batch(PyObject *object, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"records", "count", "base_offset", "base_timestamp", "append_time",
                            "base_sequence", "first_offset", "end_offset", NULL};
    Columns *c = (Columns *)object;
    Py_buffer view;
    PyObject *append_time;
    long long count, base_offset, base_timestamp, first_offset, end_offset;
    int base_sequence;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "y*$LLLOiLL", names, &view, &count,
                                     &base_offset, &base_timestamp, &append_time, &base_sequence,
                                     &first_offset, &end_offset))
        return NULL;
    struct of_batch b = {
        .base_offset = base_offset, .base_timestamp = base_timestamp,
        .first_offset = first_offset, .end_offset = end_offset, .base_sequence = base_sequence,
        .has_append_time = append_time != Py_None,
    };
    if (b.has_append_time)
        b.append_time = PyLong_AsLongLong(append_time);
    PyObject *result = NULL;
    if (!PyErr_Occurred()) {
        struct taken_back before = {.rows = c->rows, .rows_with_headers = c->rows_with_headers};
        note_fields(&before.key, &c->key);
        note_fields(&before.value, &c->value);
        note_fields(&before.header_key, &c->header_key);
        note_fields(&before.header_value, &c->header_value);
        const uint8_t *p = view.buf;
        int is_right = take_records(c, &b, p, p + view.len, count);
        if (!is_right)
            restore(c, &before);
        if (!PyErr_Occurred())
            result = PyLong_FromLongLong(is_right ? c->rows - before.rows : -1);
    }
    PyBuffer_Release(&view);
    return result;
}

static PyObject *take_columns(PyObject *object, PyObject *ignored)
{
    (void)ignored;
    Columns *c = (Columns *)object;
    long long rows = c->rows, without = c->rows - c->rows_with_headers;
    PyObject *headers = Py_NewRef(Py_None);
    int32_t begin = 0;
    if (c->has_headers) {
        if (c->header_ends.used == 0 && !put(&c->header_ends, &begin, sizeof begin))
            headers = NULL;
        else {
            Py_DECREF(headers);
            headers = Py_BuildValue("(NNLNN)", give(&c->header_ends), give(&c->header_validity),
                                    without, give_fields(&c->header_key),
                                    give_fields(&c->header_value));
        }
    }
    if (headers == NULL)
        return NULL;
    c->rows = c->rows_with_headers = 0;
    PyObject *key = c->has_keys ? give_fields(&c->key) : Py_NewRef(Py_None);
    PyObject *value = c->has_values ? give_fields(&c->value) : Py_NewRef(Py_None);
    return Py_BuildValue("(LNNNNNN)", rows, give(&c->offsets), give(&c->timestamps),
                         give(&c->sequences), key, value, headers);
}

static PyObject *new_columns(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"keys", "values", "headers", NULL};
    int keys, values, headers;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "$ppp", names, &keys, &values, &headers))
        return NULL;
    Columns *self = (Columns *)type->tp_alloc(type, 0);
    if (self != NULL) {
        self->has_keys = keys;
        self->has_values = values;
        self->has_headers = headers;
    }
    return (PyObject *)self;
}

static void free_columns(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    forget_all((Columns *)object);
    type->tp_free(object);
    Py_DECREF(type);
}

static PyObject *row_count_of(PyObject *object, void *closure)
{
    (void)closure;
    return PyLong_FromLongLong(((Columns *)object)->rows);
}

static PyObject *byte_count_of(PyObject *object, void *closure)
{
    (void)closure;
    Columns *c = (Columns *)object;
    return PyLong_FromSsize_t(c->key.data.used + c->value.data.used + c->header_key.data.used +
                              c->header_value.data.used);
}

static PyMethodDef columns_methods[] = {
    {"add", (PyCFunction)(void (*)(void))add_batch, METH_VARARGS | METH_KEYWORDS, NULL},
    {"take", take_columns, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef columns_getters[] = {
    {"row_count", row_count_of, NULL, NULL, NULL},
    {"byte_count", byte_count_of, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot columns_slots[] = {
    {Py_tp_new, new_columns},         {Py_tp_dealloc, free_columns},
    {Py_tp_methods, columns_methods}, {Py_tp_getset, columns_getters},
    {0, NULL},
};

static PyType_Spec columns_spec = {
    .name = "wirebroker.codecs._hot.RecordColumns",
    .basicsize = sizeof(Columns),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = columns_slots,
};
