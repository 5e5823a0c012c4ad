import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** A member of a share group on Apache Kafka's own consumer; see ../README.md. */
public final class ShareMember {
    private static final FileOutputStream OUTPUT = new FileOutputStream(FileDescriptor.out);

    private final String name;
    private final KafkaShareConsumer<byte[], byte[]> consumer;
    private final BlockingQueue<String> commands = new LinkedBlockingQueue<>();
    private boolean isHolding;

    private ShareMember(String[] given) {
        name = given[0];
        Properties config = new Properties();
        config.put("bootstrap.servers", given[1]);
        config.put("group.id", given[3]);
        config.put("share.acknowledgement.mode", "explicit");
        config.put("max.poll.records", 10);
        config.put("metadata.max.age.ms", 1000);
        config.put("key.deserializer", ByteArrayDeserializer.class.getName());
        config.put("value.deserializer", ByteArrayDeserializer.class.getName());
        consumer = new KafkaShareConsumer<>(config);
        consumer.subscribe(List.of(given[2].split(",")));
    }

    public static void main(String[] given) throws InterruptedException {
        ShareMember member = new ShareMember(given);
        Thread listener = new Thread(member::listen);
        listener.setDaemon(true);
        listener.start();
        member.run();
    }

    private void listen() {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        try {
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                commands.add(line);
            }
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
        commands.add("leave");
    }

    private void run() throws InterruptedException {
        boolean isOpen = true;
        while (isOpen) {
            String command = commands.poll();
            if (command == null) {
                isOpen = process();
            } else if (command.equals("leave")) {
                isOpen = false;
            } else {
                isHolding = command.equals("hold");
            }
        }
        consumer.close();
        say("left", "");
    }

    /** Take and acknowledge one batch; return false on the command "leave". */
    private boolean process() throws InterruptedException {
        List<ConsumerRecord<byte[], byte[]>> records = new ArrayList<>();
        try {
            consumer.poll(Duration.ofMillis(100)).forEach(records::add);
        } catch (KafkaException error) {
            say("error", ",\"error\":\"" + textOf(error) + "\"");
            return true;
        }
        if (records.isEmpty()) {
            return true;
        }
        records.forEach(record ->
            sayRecord("acquired", record, ",\"delivery\":" + record.deliveryCount().get()));
        String command = "accept";
        if (isHolding) {
            say("holding", "");
            command = commands.take();
            isHolding = false;
        }
        if (command.equals("leave")) {
            return false;
        }
        acknowledge(records, command);
        return true;
    }

    private void acknowledge(List<ConsumerRecord<byte[], byte[]>> records, String command) {
        AcknowledgeType type = AcknowledgeType.valueOf(command.toUpperCase());
        Map<TopicIdPartition, Optional<KafkaException>> results;
        try {
            records.forEach(record -> consumer.acknowledge(record, type));
            results = consumer.commitSync(Duration.ofSeconds(10));
        } catch (KafkaException | IllegalStateException error) {
            say("refused", ",\"error\":\"" + textOf(error) + "\"");
            return;
        }
        Set<String> refused = new HashSet<>();
        results.forEach((of, error) -> error.ifPresent(present -> {
            String partition = of.topic() + "-" + of.partition();
            refused.add(partition);
            say("refused",
                ",\"partition\":\"" + partition + "\",\"error\":\"" + textOf(present) + "\"");
        }));
        String event = command.endsWith("e") ? command + "d" : command + "ed";
        records.stream()
            .filter(record -> !refused.contains(record.topic() + "-" + record.partition()))
            .forEach(record -> sayRecord(event, record, ""));
    }

    private void sayRecord(String event, ConsumerRecord<byte[], byte[]> record, String more) {
        String partition = record.topic() + "-" + record.partition();
        say(event, ",\"partition\":\"" + partition + "\",\"offset\":" + record.offset() + more);
    }

    private static String textOf(Exception error) {
        return error.toString().replace('"', '\'').replace('\n', ' ');
    }

    /** Several members write into one pipe: a line goes out by one call, so that lines never mix. */
    private void say(String event, String more) {
        String line = "{\"member\":\"" + name + "\",\"event\":\"" + event + "\"" + more + "}\n";
        try {
            OUTPUT.write(line.getBytes(StandardCharsets.UTF_8));
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }
}
