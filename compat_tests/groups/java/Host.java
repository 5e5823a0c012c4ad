import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;

/** Several members in one process, each with a thread; commands and events: see ../README.md. */
public final class Host {
    private Host() {}

    public static void main(String[] given) throws Exception {
        BufferedReader commands =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        Map<String, Hosted> members = new HashMap<>();
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            String[] command = line.split("\t");
            if (command[0].equals("open")) {
                Hosted member = new Hosted(given[0], command);
                members.put(command[1], member);
                new Thread(member::run).start();
            } else {
                members.get(command[1]).commands.add(command);
            }
        }
        Runtime.getRuntime().halt(0);
    }

    /** One member. Its consumer is used by its thread alone, between two polls. */
    private static final class Hosted extends GroupConsumer {
        private final BlockingQueue<String[]> commands = new LinkedBlockingQueue<>();
        private boolean isPolling;
        private boolean isOpen = true;

        Hosted(String bootstrap, String[] open) {
            super(open[1], bootstrap, open[2], open[3], Integer.parseInt(open[4]), more(open));
        }

        private static Properties more(String[] open) {
            Properties config = new Properties();
            config.put("max.poll.interval.ms", open[5]);
            config.put("metadata.max.age.ms", open[6]);
            config.put("allow.auto.create.topics", false);
            return config;
        }

        private void run() {
            try {
                while (isOpen) {
                    // A member that doesn't poll waits for a command; its heartbeats go on.
                    String[] command = isPolling ? commands.poll() : commands.take();
                    try {
                        if (command == null) {
                            process();
                        } else {
                            obey(command);
                        }
                    } catch (KafkaException error) {
                        sayError(error);
                    }
                }
            } catch (InterruptedException interrupted) {
                throw new IllegalStateException(interrupted);
            }
        }

        private void obey(String[] command) {
            switch (command[0]) {
                case "subscribe" -> {
                    if (command[2].startsWith("^")) {
                        consumer.subscribe(new SubscriptionPattern(command[2]), this);
                    } else {
                        consumer.subscribe(List.of(command[2].split(",")), this);
                    }
                    isPolling = true;
                }
                case "stall" -> {
                    isPolling = false;
                    say("stalled", "");
                }
                case "poll" -> isPolling = true;
                case "commit" -> {
                    TopicPartition of = new TopicPartition(command[2], Integer.parseInt(command[3]));
                    long offset = Long.parseLong(command[4]);
                    consumer.commitSync(Map.of(of, new OffsetAndMetadata(offset)));
                    say("committed", "");
                }
                case "close" -> {
                    consumer.close();
                    isOpen = false;
                    say("left", "");
                }
                default -> throw new IllegalArgumentException(command[0]);
            }
        }

        @Override
        String nameOf(TopicPartition partition) {
            return "\"" + partition + "\"";
        }
    }
}
