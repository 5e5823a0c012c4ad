import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** A group member on Apache Kafka's own consumer; what it is given and says: see ../README.md. */
public final class Member implements ConsumerRebalanceListener {
    private static final Map<String, String> ASSIGNORS = Map.of(
            "range", "RangeAssignor",
            "roundrobin", "RoundRobinAssignor",
            "sticky", "StickyAssignor",
            "cooperative-sticky", "CooperativeStickyAssignor");

    private final String name;
    private final String topic;
    private final FileOutputStream output = new FileOutputStream(FileDescriptor.out);
    private final KafkaConsumer<byte[], byte[]> consumer;
    private final Map<TopicPartition, OffsetAndMetadata> done = new HashMap<>();
    private volatile boolean isLeaving;

    private Member(String[] given) {
        name = given[0];
        topic = given[2];
        int sessionMs = Integer.parseInt(given[6]);
        Properties config = new Properties();
        config.put("bootstrap.servers", given[1]);
        config.put("group.id", given[3]);
        config.put("partition.assignment.strategy", Arrays.stream(given[4].split(","))
                .map(one -> "org.apache.kafka.clients.consumer." + ASSIGNORS.get(one))
                .collect(Collectors.joining(",")));
        if (!given[5].equals("-")) {
            config.put("group.instance.id", given[5]);
        }
        config.put("group.protocol", "classic");
        config.put("session.timeout.ms", sessionMs);
        config.put("heartbeat.interval.ms", sessionMs / 10);
        config.put("max.poll.interval.ms", Math.max(10_000, sessionMs));
        config.put("auto.offset.reset", "earliest");
        config.put("enable.auto.commit", false);
        config.put("fetch.max.wait.ms", 100);
        config.put("key.deserializer", ByteArrayDeserializer.class.getName());
        config.put("value.deserializer", ByteArrayDeserializer.class.getName());
        consumer = new KafkaConsumer<>(config);
    }

    public static void main(String[] given) {
        Member member = new Member(given);
        Thread commands = new Thread(member::listen);
        commands.setDaemon(true);
        commands.start();
        member.run();
    }

    private void run() {
        consumer.subscribe(List.of(topic), this);
        while (!isLeaving) {
            try {
                process();
            } catch (WakeupException woken) {
                continue; // told to leave
            } catch (KafkaException error) {
                say("\"event\":\"error\",\"error\":\"" + error.toString().replace('"', '\'') + "\"");
            }
        }
        consumer.close();
        say("\"event\":\"left\"");
    }

    /** A commit that is refused, because a rebalance has begun, is tried again while it is ours. */
    private void process() {
        for (ConsumerRecord<byte[], byte[]> one : consumer.poll(Duration.ofMillis(50))) {
            sayOffset("record", one.partition(), one.offset());
            done.put(new TopicPartition(topic, one.partition()), new OffsetAndMetadata(one.offset() + 1));
        }
        if (!done.isEmpty()) {
            consumer.commitSync(done);
            done.forEach((of, to) -> sayOffset("committed", of.partition(), to.offset()));
            done.clear();
        }
    }

    private void listen() {
        try {
            new BufferedReader(new InputStreamReader(System.in)).readLine();
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
        isLeaving = true;
        consumer.wakeup();
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
        sayPartitions("assigned", partitions);
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
        done.keySet().removeAll(partitions);
        sayPartitions("revoked", partitions);
    }

    private void sayPartitions(String event, Collection<TopicPartition> partitions) {
        String numbers = partitions.stream().map(one -> String.valueOf(one.partition()))
                .collect(Collectors.joining(","));
        say("\"event\":\"" + event + "\",\"partitions\":[" + numbers + "]");
    }

    private void sayOffset(String event, int partition, long offset) {
        say("\"event\":\"" + event + "\",\"partition\":" + partition + ",\"offset\":" + offset);
    }

    /** Several members write into one pipe: a line goes out by one call, so that lines never mix. */
    private void say(String event) {
        String line = "{\"member\":\"" + name + "\"," + event + "}\n";
        try {
            output.write(line.getBytes(StandardCharsets.UTF_8));
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }
}
