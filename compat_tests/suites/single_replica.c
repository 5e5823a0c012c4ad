/* Loaded before librdkafka (LD_PRELOAD): topics get one replica, whatever the tests ask for.
 *
 * Some of librdkafka's tests make topics with three replicas, which a single broker refuses,
 * Apache Kafka's as well as ours.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

typedef void *new_topic_fn(const char *, int, int, char *, size_t);

void *rd_kafka_NewTopic_new(const char *name, int partitions, int replicas, char *error,
                            size_t error_size) {
    new_topic_fn *real = (new_topic_fn *)dlsym(RTLD_NEXT, "rd_kafka_NewTopic_new");
    return real(name, partitions, replicas > 1 ? 1 : replicas, error, error_size);
}
