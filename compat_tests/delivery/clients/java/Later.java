import java.util.Map;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

/** Schedules a record and retries another one: Java's producer, headers alone. */
public final class Later {
  public static void main(String[] arguments) throws Exception {
    var settings = Map.<String, Object>of("bootstrap.servers", arguments[0]);
    var text = new StringSerializer();
    try (var producer = new KafkaProducer<>(settings, text, text)) {
      var later = new ProducerRecord<>("deliver", "customer-7", "a book");
      later.headers().add("deliver-to", "orders".getBytes()).add("deliver-after", "2s".getBytes());
      producer.send(later).get();

      var again = new ProducerRecord<>("retry", "customer-7", "a pen");
      again.headers().add("retry-topic", "orders.retry.billing".getBytes());
      again.headers().add("retry-backoff", "1s,10s".getBytes());
      producer.send(again).get();
    }
  }
}
