import java.io.IOException;
import java.io.Reader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Produced;

/** Counts words by Kafka Streams under exactly_once_v2, until standard input ends. */
public final class Words {
    private Words() {}

    /** Given: bootstrap, application id, source, target, folder for its state, perhaps settings. */
    public static void main(String[] given) throws Exception {
        StreamsBuilder builder = new StreamsBuilder();
        builder.<String, String>stream(given[2])
                .flatMapValues(line -> List.of(line.split(" ")))
                .groupBy((key, word) -> word) // by way of a repartition topic
                .count() // in a store with a changelog topic
                .toStream()
                .to(given[3], Produced.with(Serdes.String(), Serdes.Long()));
        KafkaStreams streams = new KafkaStreams(builder.build(), config(given));
        streams.setUncaughtExceptionHandler(error -> {
            System.out.println("replaced: " + error);
            return StreamThreadExceptionResponse.REPLACE_THREAD;
        });
        streams.setStateListener((now, before) -> System.out.println(now));
        streams.start();
        while (System.in.read() >= 0) {
            // commands are not known; only the end counts
        }
        streams.close();
    }

    private static Properties config(String[] given) throws IOException {
        Properties config = new Properties();
        if (given.length > 5) {
            try (Reader file = Files.newBufferedReader(Path.of(given[5]))) {
                config.load(file);
            }
        }
        config.put("bootstrap.servers", given[0]);
        config.put("application.id", given[1]);
        config.put("state.dir", given[4]);
        config.put("processing.guarantee", StreamsConfig.EXACTLY_ONCE_V2);
        config.put("default.key.serde", Serdes.StringSerde.class);
        config.put("default.value.serde", Serdes.StringSerde.class);
        config.put("commit.interval.ms", 100);
        config.put("statestore.cache.max.bytes", 0); // each step of a count goes out
        config.put("num.stream.threads", 2);
        config.put("replication.factor", 1);
        config.put(StreamsConfig.consumerPrefix(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG), "earliest");
        config.put(StreamsConfig.consumerPrefix(ConsumerConfig.SESSION_TIMEOUT_MS_CONFIG), 3000);
        config.put(StreamsConfig.consumerPrefix(ConsumerConfig.HEARTBEAT_INTERVAL_MS_CONFIG), 300);
        config.put(StreamsConfig.consumerPrefix(ConsumerConfig.MAX_POLL_RECORDS_CONFIG), 200);
        config.put(StreamsConfig.producerPrefix(ProducerConfig.TRANSACTION_TIMEOUT_CONFIG), 5000);
        return config;
    }
}
