import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.InvalidProducerEpochException;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** Transactions by Apache Kafka's own clients: a command a line, an answer a line; see ../README.md. */
public final class Transactions {
    private static final Duration WAIT = Duration.ofSeconds(30);

    private final String bootstrap;
    private KafkaProducer<String, String> producer;

    private Transactions(String bootstrap) {
        this.bootstrap = bootstrap;
    }

    public static void main(String[] given) throws Exception {
        Transactions transactions = new Transactions(given[0]);
        BufferedReader commands =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            System.out.println(transactions.answer(line.split("\t")));
        }
        Runtime.getRuntime().halt(0); // an open transaction stays open
    }

    private String answer(String[] command) {
        try {
            return ("ok\t" + obey(command)).trim();
        } catch (ProducerFencedException | InvalidProducerEpochException fenced) {
            return "fenced\t" + fenced;
        } catch (Exception error) {
            boolean isFenced = error.getCause() instanceof ProducerFencedException
                    || error.getCause() instanceof InvalidProducerEpochException;
            return (isFenced ? "fenced\t" : "error\t") + error + " " + error.getCause();
        }
    }

    private String obey(String[] command) throws Exception {
        switch (command[0]) {
            case "start" -> start(command[1], command[2]);
            case "begin" -> producer.beginTransaction();
            case "write" -> write(command[1], List.of(command).subList(2, command.length));
            case "copy" -> copy(command[1], command[2], command[3], Integer.parseInt(command[4]));
            case "commit" -> producer.commitTransaction();
            case "abort" -> producer.abortTransaction();
            case "read" -> {
                return read(command[1], Integer.parseInt(command[2]));
            }
            default -> throw new IllegalArgumentException(command[0]);
        }
        return "";
    }

    private void start(String transactionalId, String timeoutMs) {
        Properties config = new Properties();
        config.put("bootstrap.servers", bootstrap);
        config.put("transactional.id", transactionalId);
        config.put("transaction.timeout.ms", timeoutMs);
        producer = new KafkaProducer<>(config, new StringSerializer(), new StringSerializer());
        producer.initTransactions();
    }

    private void write(String topic, List<String> values) throws ExecutionException, InterruptedException {
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        for (String value : values) {
            sent.add(producer.send(new ProducerRecord<>(topic, 0, null, value)));
        }
        producer.flush();
        for (Future<RecordMetadata> one : sent) {
            one.get();
        }
    }

    private void copy(String source, String target, String group, int count) throws Exception {
        try (KafkaConsumer<String, String> consumer = consumer(group)) {
            consumer.subscribe(List.of(source));
            List<String> values = new ArrayList<>();
            long next = take(consumer, count, values);
            write(target, values.stream().map(String::toUpperCase).toList());
            producer.sendOffsetsToTransaction(
                    Map.of(new TopicPartition(source, 0), new OffsetAndMetadata(next)),
                    consumer.groupMetadata());
        }
    }

    private String read(String topic, int count) {
        try (KafkaConsumer<String, String> consumer = consumer(null)) {
            consumer.assign(List.of(new TopicPartition(topic, 0)));
            consumer.seekToBeginning(consumer.assignment());
            List<String> values = new ArrayList<>();
            take(consumer, count, values);
            return String.join("\t", values);
        }
    }

    /** Adds so many values; returns the offset after the last. */
    private static long take(KafkaConsumer<String, String> consumer, int count, List<String> values) {
        long deadline = System.nanoTime() + WAIT.toNanos();
        long next = 0;
        while (values.size() < count) {
            if (System.nanoTime() > deadline) {
                throw new IllegalStateException(values.size() + " of " + count + " records came");
            }
            for (ConsumerRecord<String, String> one : consumer.poll(Duration.ofMillis(100))) {
                if (values.size() < count) {
                    values.add(one.value());
                    next = one.offset() + 1;
                }
            }
        }
        return next;
    }

    private KafkaConsumer<String, String> consumer(String group) {
        Properties config = new Properties();
        config.put("bootstrap.servers", bootstrap);
        if (group != null) {
            config.put("group.id", group);
        }
        config.put("isolation.level", "read_committed");
        config.put("auto.offset.reset", "earliest");
        config.put("enable.auto.commit", false);
        return new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer());
    }
}
