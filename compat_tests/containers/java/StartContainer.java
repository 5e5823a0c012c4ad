import java.util.function.Supplier;
import org.testcontainers.containers.GenericContainer;
import org.testcontainers.kafka.ConfluentKafkaContainer;
import org.testcontainers.kafka.KafkaContainer;
import org.testcontainers.utility.DockerImageName;

/** Starts an image by testcontainers' Kafka classes; see ../harness.py for what it is told. */
public final class StartContainer {
    public static void main(String[] arguments) throws Exception {
        DockerImageName image = DockerImageName.parse(arguments[0]);
        if (arguments[1].equals("apache")) {
            KafkaContainer kafka = new KafkaContainer(image.asCompatibleSubstituteFor("apache/kafka"));
            run(kafka, kafka::getBootstrapServers);
        } else {
            ConfluentKafkaContainer kafka = new ConfluentKafkaContainer(
                    image.asCompatibleSubstituteFor("confluentinc/cp-kafka"));
            run(kafka, kafka::getBootstrapServers);
        }
        System.exit(0);
    }

    private static void run(GenericContainer<?> container, Supplier<String> bootstrap)
            throws Exception {
        container.start();
        System.out.println("started " + bootstrap.get());
        System.in.read();
        container.stop();
    }
}
