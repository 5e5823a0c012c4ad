import java.nio.charset.StandardCharsets;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.List;
import java.util.Properties;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.TimeWindows;

/**
 * An instance of an application under exactly_once_v2.
 *
 * Given: bootstrap, application id, prefix of topics, folder for its state, its port for queries,
 * group.protocol, the number of replicas of internal topics.
 * Reads PREFIX-lines and PREFIX-names, both by customer; writes
 *     PREFIX-words    the count of each word, by way of a repartition topic
 *     PREFIX-hours    the count of each customer's lines by the hour
 *     PREFIX-lengths  the sum of the lengths of each customer's lines
 *     PREFIX-named    each line with the customer's name: a join of stream and table
 * Prints states; on the line "hosts" the hosts with their active and standby partitions. Ends with
 * standard input.
 */
public final class Application {
    private Application() {}

    public static void main(String[] given) throws Exception {
        KafkaStreams streams = new KafkaStreams(topology(given[2]).build(), config(given));
        streams.setUncaughtExceptionHandler(error -> {
            System.out.println("replaced: " + error);
            return StreamThreadExceptionResponse.REPLACE_THREAD;
        });
        streams.setStateListener((now, before) -> System.out.println(now));
        streams.start();
        BufferedReader in =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        while (in.readLine() != null) {
            System.out.println("hosts " + hosts(streams));
        }
        streams.close(Duration.ofSeconds(30));
    }

    private static String hosts(KafkaStreams streams) {
        TreeMap<String, String> hosts = new TreeMap<>();
        streams.metadataForAllStreamsClients().forEach(host -> hosts.put(
            host.host() + ":" + host.port(),
            host.topicPartitions().size() + "+" + host.standbyTopicPartitions().size()));
        return hosts.entrySet().stream()
            .map(each -> each.getKey() + "=" + each.getValue())
            .collect(Collectors.joining(" "));
    }

    private static StreamsBuilder topology(String prefix) {
        StreamsBuilder builder = new StreamsBuilder();
        KStream<String, String> lines = builder.stream(prefix + "-lines");
        KTable<String, String> names = builder.table(prefix + "-names", Materialized.as("names"));
        Produced<String, Long> numbers = Produced.with(Serdes.String(), Serdes.Long());
        lines.flatMapValues(line -> List.of(line.split(" ")))
            .groupBy((customer, word) -> word, Grouped.as("by-word"))
            .count(Materialized.as("words"))
            .toStream()
            .to(prefix + "-words", numbers);
        lines.groupByKey()
            .windowedBy(TimeWindows.ofSizeWithNoGrace(Duration.ofHours(1)))
            .count(Materialized.as("hours"))
            .toStream((window, count) -> window.key() + "@" + window.window().start())
            .to(prefix + "-hours", numbers);
        lines.groupByKey()
            .aggregate(
                () -> 0L,
                (customer, line, sum) -> sum + line.length(),
                Materialized.<String, Long>as(
                    org.apache.kafka.streams.state.Stores.persistentKeyValueStore("lengths"))
                    .withKeySerde(Serdes.String()).withValueSerde(Serdes.Long()))
            .toStream()
            .to(prefix + "-lengths", numbers);
        lines.join(names, (line, name) -> name + ": " + line).to(prefix + "-named");
        return builder;
    }

    private static Properties config(String[] given) {
        Properties config = new Properties();
        config.put("bootstrap.servers", given[0]);
        config.put("application.id", given[1]);
        config.put("state.dir", given[3]);
        config.put("application.server", "localhost:" + given[4]);
        config.put("group.protocol", given[5]);
        config.put("processing.guarantee", StreamsConfig.EXACTLY_ONCE_V2);
        config.put("default.key.serde", Serdes.StringSerde.class);
        config.put("default.value.serde", Serdes.StringSerde.class);
        config.put("commit.interval.ms", 100);
        config.put("statestore.cache.max.bytes", 0); // each step of a count goes out
        config.put("num.stream.threads", 2);
        config.put("replication.factor", Integer.parseInt(given[6]));
        config.put(StreamsConfig.consumerPrefix(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG), "earliest");
        config.put(StreamsConfig.consumerPrefix(ConsumerConfig.MAX_POLL_RECORDS_CONFIG), 200);
        config.put(StreamsConfig.producerPrefix(ProducerConfig.TRANSACTION_TIMEOUT_CONFIG), 5000);
        return config;
    }
}
