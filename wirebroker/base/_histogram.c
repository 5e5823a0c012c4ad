/* What RequestMeter does in a compiled build: one call counts all values of a request in histograms
 * (integer_histogram.py), for 50 to 100 ns. In Python each count above 256 is a new object. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <time.h>

/* As in integer_histogram.py. */
enum { SLOTS = 157, SUM = SLOTS - 1 };
static const int64_t LARGEST = ((int64_t)1 << 40) - 1;

/* As in request_meters.py: the phases of slow requests, one histogram after another. */
enum { TOTALS, QUEUE, LOCAL, REMOTE, SEND, PHASES };
static const double NOTICED_QUEUE_S = 0.00025;

static int64_t *slots_of(PyObject *counts, Py_ssize_t histograms)
{
    if (!PyMemoryView_Check(counts) ||
        PyMemoryView_GET_BUFFER(counts)->len != histograms * SLOTS * 8) {
        PyErr_Format(PyExc_TypeError, "the slots of %zd histograms are needed", histograms);
        return NULL;
    }
    return PyMemoryView_GET_BUFFER(counts)->buf;
}

static void record(int64_t *slots, int64_t value, int64_t times)
{
    int64_t kept = value < 0 ? 0 : value > LARGEST ? LARGEST : value;
    int64_t range = kept;
    if (kept >= 4) {
        int bits = 64 - __builtin_clzll((unsigned long long)kept);
        range = (bits - 2) * 4 + (kept >> (bits - 3) & 3);
    }
    slots[range] += times;
    slots[SUM] += value * times;
}

static PyObject *count_request(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    (void)module;
    if (count != 4) {
        PyErr_SetString(PyExc_TypeError, "the slots of two histograms, each with a value, are needed");
        return NULL;
    }
    int64_t *times = slots_of(arguments[0], 1);
    int64_t *sizes = slots_of(arguments[2], 1);
    if (times == NULL || sizes == NULL)
        return NULL;
    double began_s = PyFloat_AsDouble(arguments[1]);
    long long size = PyLong_AsLongLong(arguments[3]);
    if (PyErr_Occurred())
        return NULL;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now); /* time.perf_counter's on Linux */
    double seconds = (double)now.tv_sec + (double)now.tv_nsec * 1e-9 - began_s;
    int64_t microseconds = (int64_t)(seconds * 1e6);
    record(times, microseconds, 1);
    record(sizes, size, 1);
    return PyLong_FromLongLong(microseconds);
}

/* RequestMeter.served_later: (totals, phases, sizes, size, received_s, began_s, returned_s, now_s)
 * -> total microseconds. A negative size is not counted. */
static PyObject *count_slow(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    (void)module;
    if (count != 8) {
        PyErr_SetString(PyExc_TypeError, "three groups of slots, a size and four times are needed");
        return NULL;
    }
    int64_t *totals = slots_of(arguments[0], 1);
    int64_t *phases = slots_of(arguments[1], PHASES);
    int64_t *sizes = slots_of(arguments[2], 1);
    if (totals == NULL || phases == NULL || sizes == NULL)
        return NULL;
    long long size = PyLong_AsLongLong(arguments[3]);
    double received_s = PyFloat_AsDouble(arguments[4]);
    double began_s = PyFloat_AsDouble(arguments[5]);
    double returned_s = PyFloat_AsDouble(arguments[6]);
    double now_s = PyFloat_AsDouble(arguments[7]);
    if (PyErr_Occurred())
        return NULL;
    double queue_s = received_s != 0.0 ? began_s - received_s : 0.0;
    int64_t queue_us = queue_s > NOTICED_QUEUE_S ? (int64_t)(queue_s * 1e6) : 0;
    int64_t local_us = (int64_t)((returned_s - began_s) * 1e6);
    int64_t remote_us = (int64_t)((now_s - returned_s) * 1e6);
    int64_t total_us = queue_us + local_us + remote_us;
    record(totals, total_us, 1);
    record(phases + TOTALS * SLOTS, total_us, 1);
    record(phases + QUEUE * SLOTS, queue_us, 1);
    record(phases + LOCAL * SLOTS, local_us, 1);
    record(phases + REMOTE * SLOTS, remote_us, 1);
    if (size >= 0)
        record(sizes, size, 1);
    return PyLong_FromLongLong(total_us);
}

/* RequestMeter.sent_late: (totals, phases, total_us, send_us, was_slow) -> None. */
static PyObject *count_sent(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    (void)module;
    if (count != 5) {
        PyErr_SetString(PyExc_TypeError, "two groups of slots, two times and a flag are needed");
        return NULL;
    }
    int64_t *totals = slots_of(arguments[0], 1);
    int64_t *phases = slots_of(arguments[1], PHASES);
    if (totals == NULL || phases == NULL)
        return NULL;
    int64_t total_us = PyLong_AsLongLong(arguments[2]);
    int64_t send_us = PyLong_AsLongLong(arguments[3]);
    int was_slow = PyObject_IsTrue(arguments[4]);
    if (PyErr_Occurred())
        return NULL;
    record(totals, total_us, -1);
    record(totals, total_us + send_us, 1);
    record(phases + SEND * SLOTS, send_us, 1);
    if (was_slow)
        record(phases + TOTALS * SLOTS, total_us, -1);
    else
        record(phases + LOCAL * SLOTS, total_us, 1);
    record(phases + TOTALS * SLOTS, total_us + send_us, 1);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"count_slow", (PyCFunction)(void (*)(void))count_slow, METH_FASTCALL, NULL},
    {"count_sent", (PyCFunction)(void (*)(void))count_sent, METH_FASTCALL, NULL},
    {"count_request", (PyCFunction)(void (*)(void))count_request, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "wirebroker.base._histogram", .m_size = 0, .m_methods = methods,
};

PyMODINIT_FUNC PyInit__histogram(void) { return PyModuleDef_Init(&definition); }
