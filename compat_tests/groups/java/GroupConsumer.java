import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** Apache Kafka's own consumer in a group: reads, commits what it has read, and says what happens. */
abstract class GroupConsumer implements ConsumerRebalanceListener {
    private static final Map<String, String> ASSIGNORS = Map.of(
            "range", "RangeAssignor",
            "roundrobin", "RoundRobinAssignor",
            "sticky", "StickyAssignor",
            "cooperative-sticky", "CooperativeStickyAssignor");
    private static final String OF_THE_BROKER = "broker-";
    private static final FileOutputStream OUTPUT = new FileOutputStream(FileDescriptor.out);

    final KafkaConsumer<byte[], byte[]> consumer;
    private final String name;
    private final Map<TopicPartition, OffsetAndMetadata> done = new HashMap<>();

    /** Assignors are separated by commas; what `more` has comes first. */
    GroupConsumer(
            String name, String bootstrap, String group, String assignors, int sessionMs, Properties more) {
        this.name = name;
        Properties config = new Properties();
        config.put("bootstrap.servers", bootstrap);
        config.put("group.id", group);
        if (assignors.startsWith(OF_THE_BROKER)) {
            config.put("group.protocol", "consumer");
            config.put("group.remote.assignor", assignors.substring(OF_THE_BROKER.length()));
        } else {
            config.put("group.protocol", "classic");
            config.put("partition.assignment.strategy", Arrays.stream(assignors.split(","))
                    .map(one -> "org.apache.kafka.clients.consumer." + ASSIGNORS.get(one))
                    .collect(Collectors.joining(",")));
            config.put("session.timeout.ms", sessionMs);
            config.put("heartbeat.interval.ms", sessionMs / 10);
        }
        config.put("auto.offset.reset", "earliest");
        config.put("enable.auto.commit", false);
        config.put("fetch.max.wait.ms", 100);
        config.put("key.deserializer", ByteArrayDeserializer.class.getName());
        config.put("value.deserializer", ByteArrayDeserializer.class.getName());
        config.putAll(more);
        consumer = new KafkaConsumer<>(config);
    }

    /** Return a partition's name in events, as JSON. */
    abstract String nameOf(TopicPartition partition);

    /** What has been read up to there is committed. */
    void committed(TopicPartition partition, long offset) {}

    /** A commit that is refused, because a rebalance has begun, is tried again while it is ours. */
    final void process() {
        for (ConsumerRecord<byte[], byte[]> one : consumer.poll(Duration.ofMillis(50))) {
            TopicPartition of = new TopicPartition(one.topic(), one.partition());
            sayOffset("record", of, one.offset());
            done.put(of, new OffsetAndMetadata(one.offset() + 1));
        }
        if (!done.isEmpty()) {
            consumer.commitSync(done);
            done.forEach((of, to) -> committed(of, to.offset()));
            done.clear();
        }
    }

    @Override
    public final void onPartitionsAssigned(Collection<TopicPartition> partitions) {
        sayPartitions("assigned", partitions);
    }

    @Override
    public final void onPartitionsRevoked(Collection<TopicPartition> partitions) {
        done.keySet().removeAll(partitions);
        sayPartitions("revoked", partitions);
    }

    final void sayOffset(String event, TopicPartition partition, long offset) {
        say(event, ",\"partition\":" + nameOf(partition) + ",\"offset\":" + offset);
    }

    final void sayError(KafkaException error) {
        String text = error.toString().replace('"', '\'').replace('\n', ' ');
        say("error", ",\"error\":\"" + text + "\"");
    }

    private void sayPartitions(String event, Collection<TopicPartition> partitions) {
        String names = partitions.stream().map(this::nameOf).collect(Collectors.joining(","));
        say(event, ",\"partitions\":[" + names + "]");
    }

    /** Several members write into one pipe: a line goes out by one call, so that lines never mix. */
    final void say(String event, String more) {
        String line = "{\"member\":\"" + name + "\",\"event\":\"" + event + "\"" + more + "}\n";
        try {
            OUTPUT.write(line.getBytes(StandardCharsets.UTF_8));
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }
}
