import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataImage;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataImage.TopicMetadata;
import org.apache.kafka.coordinator.group.Utils;

/**
 * Computes the hashes of groups' topics with Kafka's class.
 *
 * In:  []topic: uuid, string name, []partition: []string rack
 *      Arrays and strings begin with their int32 length.
 * Out: int8 0, int32 length, then int64 hash of each topic, int64 hash of all
 */
public final class MetadataHashes {
    private record Topic(Uuid id, String name, List<List<String>> racks) implements TopicMetadata {
        @Override
        public int partitionCount() {
            return racks.size();
        }

        @Override
        public List<String> partitionRacks(int partition) {
            return racks.get(partition);
        }
    }

    public static void main(String[] arguments) throws Exception {
        DataInputStream in = new DataInputStream(new BufferedInputStream(System.in, 1 << 20));
        DataOutputStream out = new DataOutputStream(new BufferedOutputStream(System.out, 1 << 20));
        int first;
        while ((first = in.read()) >= 0) {
            int count = first << 24 | in.readUnsignedByte() << 16 | in.readUnsignedShort();
            Map<String, Long> hashes = new HashMap<>();
            out.writeByte(0);
            out.writeInt(8 * (count + 1));
            for (; count > 0; count--) {
                Topic topic = readTopic(in);
                long hash = Utils.computeTopicHash(topic.name(), imageOf(topic));
                hashes.put(topic.name(), hash);
                out.writeLong(hash);
            }
            out.writeLong(Utils.computeGroupHash(hashes));
            out.flush();
        }
    }

    private static CoordinatorMetadataImage imageOf(Topic topic) {
        return (CoordinatorMetadataImage) Proxy.newProxyInstance(
            MetadataHashes.class.getClassLoader(),
            new Class<?>[] {CoordinatorMetadataImage.class},
            (proxy, method, values) -> Optional.of(topic));
    }

    private static Topic readTopic(DataInputStream in) throws IOException {
        Uuid id = new Uuid(in.readLong(), in.readLong());
        String name = readText(in);
        List<List<String>> partitions = new ArrayList<>();
        for (int left = in.readInt(); left > 0; left--) {
            List<String> racks = new ArrayList<>();
            for (int rest = in.readInt(); rest > 0; rest--) {
                racks.add(readText(in));
            }
            partitions.add(racks);
        }
        return new Topic(id, name, partitions);
    }

    private static String readText(DataInputStream in) throws IOException {
        byte[] bytes = new byte[in.readInt()];
        in.readFully(bytes);
        return new String(bytes, StandardCharsets.UTF_8);
    }
}
