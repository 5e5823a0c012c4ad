/* The walk over a batch's records, whole or in pieces: records/walk.py says what it means.
 *
 * A part of _hot.c, which includes it once. A record that is whole within its piece is walked in one
 * go, 3 to 7 ns; one that is cut goes through a machine of a byte a step. */

enum {
    NO_TIMESTAMP = -1,
    MAX_REFUSED = 4096, /* as records/walk.py's */
    LARGE_BYTES = 32 * 1024, /* from here on other threads may run meanwhile */
};

enum phase {
    LENGTH, ATTRIBUTES, TIMESTAMP, OFFSET, KEY_LENGTH, KEY, VALUE_LENGTH, VALUE,
    HEADER_COUNT, HEADER_KEY_LENGTH, HEADER_KEY, HEADER_VALUE_LENGTH, HEADER_VALUE,
};

struct refusal {
    int64_t index, timestamp;
    int is_key;
};

struct walk {
    int64_t count, base_timestamp, earliest, latest, most_bytes;
    int needs_key;
    int64_t index, max_timestamp, min_timestamp;
    const char *fault;
    int64_t refused_count;
    int is_time_refused, is_out_of_memory;
    struct refusal *refused;
    /* Of a record that is cut: what comes next, how much of it and of the record is still to come. */
    enum phase phase;
    int has_key, shift;
    int64_t remaining, skip, headers, timestamp;
    uint64_t number;
};

static void begin_walk(struct walk *w, int64_t count, int64_t base_timestamp)
{
    memset(w, 0, sizeof *w);
    w->count = count;
    w->base_timestamp = base_timestamp;
    w->earliest = INT64_MIN;
    w->latest = INT64_MAX;
    w->most_bytes = INT64_MAX;
    w->max_timestamp = NO_TIMESTAMP;
    w->min_timestamp = INT64_MAX;
}

static void refuse_record(struct walk *w, int is_key)
{
    if (!is_key)
        w->is_time_refused = 1;
    if (w->refused == NULL && w->refused_count == 0) {
        w->refused = PyMem_RawMalloc(MAX_REFUSED * sizeof *w->refused);
        w->is_out_of_memory = w->refused == NULL;
    }
    if (w->refused != NULL && w->refused_count < MAX_REFUSED)
        w->refused[w->refused_count] = (struct refusal){w->index, w->timestamp, is_key};
    w->refused_count++;
}

/* A record was walked to its end. */
static inline void note_record(struct walk *w)
{
    int64_t timestamp = w->timestamp;
    if (timestamp > w->max_timestamp)
        w->max_timestamp = timestamp;
    if (timestamp != NO_TIMESTAMP && timestamp < w->min_timestamp)
        w->min_timestamp = timestamp;
    if (w->needs_key && !w->has_key)
        refuse_record(w, 1);
    else if (timestamp != NO_TIMESTAMP && (timestamp < w->earliest || timestamp > w->latest))
        refuse_record(w, 0);
    w->index++;
}

static inline int64_t zigzag(uint64_t value) { return (int64_t)(value >> 1 ^ -(value & 1)); }

/* Reads a varint of at most `bits`; returns NULL if it ends beyond the end, or is longer. */
static inline const uint8_t *read_number(const uint8_t *p, const uint8_t *end, int bits, int64_t *n)
{
    if (p >= end)
        return NULL;
    uint64_t value = *p++;
    if (value >= 0x80) {
        value &= 0x7F;
        for (int shift = 7;; shift += 7) {
            if (p >= end || shift >= bits)
                return NULL;
            uint64_t byte = *p++;
            value |= (byte & 0x7F) << shift;
            if (byte < 0x80) {
                if (byte >> (bits - shift < 7 ? bits - shift : 7))
                    return NULL;
                break;
            }
        }
    }
    *n = zigzag(value);
    return p;
}

/* Reads a length and passes what it counts, nothing if it is negative. */
static inline const uint8_t *pass_field(const uint8_t *p, const uint8_t *end, int64_t *length)
{
    p = read_number(p, end, 32, length);
    if (p == NULL || *length > end - p)
        return NULL;
    return *length > 0 ? p + *length : p;
}

static const char too_large[] = "a record is larger than max.decompressed.message.bytes";
static const char contradicts[] = "a record contradicts its lengths";
static const char misnumbered[] = "the records' offsets do not count 0, 1, 2";
static const char too_many[] = "bytes follow the last record";

/* Walks the record between `p` and `end`, all of it; returns 0 at a fault. */
static inline int walk_record(struct walk *w, const uint8_t *p, const uint8_t *end)
{
    int64_t number, length;
    if (p >= end || (p = read_number(p + 1, end, 64, &number)) == NULL)
        goto fault;
    w->timestamp = (int64_t)((uint64_t)w->base_timestamp + (uint64_t)number);
    if ((p = read_number(p, end, 32, &number)) == NULL)
        goto fault;
    if (number != w->index) {
        w->fault = misnumbered;
        return 0;
    }
    if ((p = pass_field(p, end, &length)) == NULL)
        goto fault;
    w->has_key = length >= 0;
    if ((p = pass_field(p, end, &length)) == NULL ||
        (p = read_number(p, end, 32, &number)) == NULL || number < 0)
        goto fault;
    for (; number > 0; number--) {
        if ((p = pass_field(p, end, &length)) == NULL || length < 0 ||
            (p = pass_field(p, end, &length)) == NULL)
            goto fault;
    }
    if (p != end)
        goto fault;
    note_record(w);
    return 1;
fault:
    w->fault = contradicts;
    return 0;
}

/* Takes a number of a record that is cut; returns 0 at a fault. */
static int take_number(struct walk *w, int64_t number)
{
    switch (w->phase) {
    case LENGTH:
        if (number < 0)
            return 0;
        if (number > w->most_bytes) {
            w->fault = too_large;
            return 0;
        }
        w->remaining = number;
        w->phase = ATTRIBUTES;
        return 1;
    case TIMESTAMP:
        w->timestamp = (int64_t)((uint64_t)w->base_timestamp + (uint64_t)number);
        w->phase = OFFSET;
        return 1;
    case OFFSET:
        if (number != w->index) {
            w->fault = misnumbered;
            return 0;
        }
        w->phase = KEY_LENGTH;
        return 1;
    case HEADER_COUNT:
        if (number < 0)
            return 0;
        w->headers = number;
        w->phase = HEADER_KEY_LENGTH;
        return 1;
    default: /* a length, of a field that comes next */
        if ((w->phase == HEADER_KEY_LENGTH && number < 0) || number > w->remaining)
            return 0;
        if (w->phase == KEY_LENGTH)
            w->has_key = number >= 0;
        w->skip = number > 0 ? number : 0;
        w->remaining -= w->skip;
        w->phase++;
        return 1;
    }
}

/* Moves on where nothing is to be read; returns 0 at a fault. */
static int settle(struct walk *w)
{
    if (w->skip == 0) {
        if (w->phase == KEY || w->phase == VALUE || w->phase == HEADER_KEY) {
            w->phase++;
        } else if (w->phase == HEADER_VALUE) {
            w->headers--;
            w->phase = HEADER_KEY_LENGTH;
        }
    }
    if (w->phase == HEADER_KEY_LENGTH && w->headers == 0) {
        if (w->remaining)
            return 0;
        note_record(w);
        w->phase = LENGTH;
    }
    return 1;
}

/* Goes on in a record that is cut, up to its end or the piece's; returns NULL at a fault. */
static const uint8_t *walk_cut(struct walk *w, const uint8_t *p, const uint8_t *end)
{
    do {
        if (w->skip) {
            int64_t step = w->skip < end - p ? w->skip : end - p;
            w->skip -= step;
            p += step;
        } else {
            if (w->phase != LENGTH && w->remaining-- == 0)
                goto fault;
            uint8_t byte = *p++;
            if (w->phase == ATTRIBUTES) {
                w->phase = TIMESTAMP;
                continue;
            }
            int bits = w->phase == TIMESTAMP ? 64 : 32;
            if (w->shift >= bits ||
                (w->shift && (byte & 0x7F) >> (bits - w->shift < 7 ? bits - w->shift : 7)))
                goto fault;
            w->number |= (uint64_t)(byte & 0x7F) << w->shift;
            w->shift += 7;
            if (byte >= 0x80)
                continue;
            int64_t number = zigzag(w->number);
            w->number = 0;
            w->shift = 0;
            if (!take_number(w, number))
                goto fault;
        }
        if (!settle(w))
            goto fault;
    } while (p < end && (w->phase != LENGTH || w->shift));
    return p;
fault:
    if (w->fault == NULL)
        w->fault = contradicts;
    return NULL;
}

/* Walks on through the next bytes; returns 0 at a fault. */
static int walk_on(struct walk *w, const uint8_t *p, const uint8_t *end)
{
    while (w->fault == NULL && p < end) {
        if (w->phase == LENGTH && !w->shift) {
            if (w->index == w->count) {
                w->fault = too_many;
                break;
            }
            int64_t length;
            const uint8_t *body = read_number(p, end, 32, &length);
            if (body != NULL && length >= 0 && length <= end - body &&
                length <= w->most_bytes) {
                walk_record(w, body, body + length);
                p = body + length;
                continue;
            }
        }
        p = walk_cut(w, p, end);
    }
    return w->fault == NULL;
}

/* Tells whether the records of an uncompressed batch are as its header says. */
static int walks_plainly(const uint8_t *p, Py_ssize_t size)
{
    struct walk w;
    begin_walk(&w, (int32_t)get32(p + RECORD_COUNT_AT),
               (int64_t)get64(p + BASE_TIMESTAMP_AT));
    int is_whole = walk_on(&w, p + HEADER_BYTES, p + size) && w.index == w.count &&
                   w.phase == LENGTH && !w.shift;
    return is_whole && w.max_timestamp == (int64_t)get64(p + MAX_TIMESTAMP_AT) &&
           w.min_timestamp >= w.base_timestamp;
}

typedef struct {
    PyObject_HEAD struct walk walk;
} Walker;

static PyObject *new_walker(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"count", "base_timestamp", "earliest", "latest", "needs_key",
                            "most_bytes", NULL};
    long long count, base_timestamp, earliest = INT64_MIN, latest = INT64_MAX;
    long long most_bytes = INT64_MAX;
    int needs_key = 0;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "LL|LLpL", names, &count, &base_timestamp,
                                     &earliest, &latest, &needs_key, &most_bytes))
        return NULL;
    Walker *self = (Walker *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    begin_walk(&self->walk, count, base_timestamp);
    self->walk.earliest = earliest;
    self->walk.latest = latest;
    self->walk.needs_key = needs_key;
    self->walk.most_bytes = most_bytes;
    return (PyObject *)self;
}

static void free_walker(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    PyMem_RawFree(((Walker *)object)->walk.refused);
    type->tp_free(object);
    Py_DECREF(type);
}

static PyObject *feed(PyObject *object, PyObject *piece)
{
    struct walk *w = &((Walker *)object)->walk;
    Py_buffer view;
    if (PyObject_GetBuffer(piece, &view, PyBUF_SIMPLE) < 0)
        return NULL;
    const uint8_t *p = view.buf;
    if (view.len >= LARGE_BYTES) {
        Py_BEGIN_ALLOW_THREADS
        walk_on(w, p, p + view.len);
        Py_END_ALLOW_THREADS
    } else {
        walk_on(w, p, p + view.len);
    }
    PyBuffer_Release(&view);
    if (w->is_out_of_memory)
        return PyErr_NoMemory();
    return PyBool_FromLong(w->fault == NULL);
}

static PyObject *fault_of(PyObject *object, void *closure)
{
    (void)closure;
    struct walk *w = &((Walker *)object)->walk;
    if (w->fault != NULL)
        return PyUnicode_FromString(w->fault);
    if (w->phase != LENGTH || w->shift || w->index != w->count)
        return PyUnicode_FromFormat("%lld of %lld records are there", (long long)w->index,
                                    (long long)w->count);
    Py_RETURN_NONE;
}

static PyObject *refused_of(PyObject *object, void *closure)
{
    (void)closure;
    struct walk *w = &((Walker *)object)->walk;
    int64_t count = w->refused_count < MAX_REFUSED ? w->refused_count : MAX_REFUSED;
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (Py_ssize_t at = 0; list != NULL && at < count; at++) {
        struct refusal *each = &w->refused[at];
        PyObject *pair = each->is_key
            ? Py_BuildValue("(LO)", (long long)each->index, Py_None)
            : Py_BuildValue("(LL)", (long long)each->index, (long long)each->timestamp);
        if (pair == NULL)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, at, pair);
    }
    return list;
}

static PyObject *is_time_refused_of(PyObject *object, void *closure)
{
    (void)closure;
    return PyBool_FromLong(((Walker *)object)->walk.is_time_refused);
}

static PyMethodDef walker_methods[] = {
    {"feed", feed, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef walker_members[] = {
    {"max_timestamp", T_LONGLONG, offsetof(Walker, walk.max_timestamp), READONLY, NULL},
    {"refused_count", T_LONGLONG, offsetof(Walker, walk.refused_count), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef walker_getters[] = {
    {"fault", fault_of, NULL, NULL, NULL},
    {"refused", refused_of, NULL, NULL, NULL},
    {"is_time_refused", is_time_refused_of, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot walker_slots[] = {
    {Py_tp_new, new_walker},         {Py_tp_dealloc, free_walker},
    {Py_tp_methods, walker_methods}, {Py_tp_members, walker_members},
    {Py_tp_getset, walker_getters},  {0, NULL},
};

static PyType_Spec walker_spec = {
    .name = "wirebroker.codecs._hot.RecordWalker",
    .basicsize = sizeof(Walker),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = walker_slots,
};
