import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.WakeupException;

/** A group member on Apache Kafka's own consumer; what it is given and says: see ../README.md. */
public final class Member extends GroupConsumer {
    private final String topic;
    private volatile boolean isLeaving;

    private Member(String[] given) {
        super(given[0], given[1], given[3], given[4], Integer.parseInt(given[6]), more(given));
        topic = given[2];
    }

    private static Properties more(String[] given) {
        Properties config = new Properties();
        if (!given[5].equals("-")) {
            config.put("group.instance.id", given[5]);
        }
        config.put("max.poll.interval.ms", Math.max(10_000, Integer.parseInt(given[6])));
        return config;
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
                sayError(error);
            }
        }
        consumer.close();
        say("left", "");
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
    String nameOf(TopicPartition partition) {
        return String.valueOf(partition.partition());
    }

    @Override
    void committed(TopicPartition partition, long offset) {
        sayOffset("committed", partition, offset);
    }
}
