import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.api.assignor.PartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.assignor.RangeAssignor;
import org.apache.kafka.coordinator.group.assignor.SimpleAssignor;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.apache.kafka.coordinator.group.modern.Assignment;
import org.apache.kafka.coordinator.group.modern.GroupSpecImpl;
import org.apache.kafka.coordinator.group.modern.MemberSubscriptionAndAssignmentImpl;

/**
 * Assigns the partitions of groups with Kafka's assignors.
 *
 * In:  int8 kind (0 range, 1 uniform, 2 simple), int8 whether all subscriptions are equal,
 *      []topic: uuid, int32 partitions (-1: the topic does not exist)
 *      []member: string id, string instance id (empty: none), []int32 subscribed topics,
 *      []owned: int32 topic, []int32 partitions
 *      Arrays and strings begin with their int32 length; a topic is its place in the first array.
 * Out: int8 status (0 assigned, 1 failed), int32 length, then for each member in the order of the
 *      input []owned as above; or the exception
 */
public final class Assignors {
    private final DataInputStream in;
    private final List<Uuid> topics = new ArrayList<>();
    private final Map<Uuid, Integer> counts = new HashMap<>();
    private final Map<String, MemberSubscriptionAndAssignmentImpl> members = new LinkedHashMap<>();
    private final Map<Uuid, Map<Integer, String>> owners = new HashMap<>();

    private Assignors(DataInputStream in) {
        this.in = in;
    }

    public static void main(String[] arguments) throws Exception {
        DataInputStream in = new DataInputStream(new BufferedInputStream(System.in, 1 << 20));
        DataOutputStream out = new DataOutputStream(new BufferedOutputStream(System.out, 1 << 20));
        int kind;
        while ((kind = in.read()) >= 0) {
            boolean isEqual = in.readByte() != 0;
            Assignors group = new Assignors(in);
            group.read();
            byte[] answer;
            int status = 0;
            try {
                answer = group.assign(
                    switch (kind) {
                        case 0 -> new RangeAssignor();
                        case 1 -> new UniformAssignor();
                        default -> new SimpleAssignor();
                    },
                    isEqual ? SubscriptionType.HOMOGENEOUS : SubscriptionType.HETEROGENEOUS);
            } catch (Exception e) {
                status = 1;
                answer = e.toString().getBytes(StandardCharsets.UTF_8);
            }
            out.writeByte(status);
            out.writeInt(answer.length);
            out.write(answer);
            out.flush();
        }
    }

    private void read() throws IOException {
        for (int left = in.readInt(); left > 0; left--) {
            Uuid id = new Uuid(in.readLong(), in.readLong());
            topics.add(id);
            counts.put(id, in.readInt());
        }
        for (int left = in.readInt(); left > 0; left--) {
            readMember();
        }
    }

    private void readMember() throws IOException {
        String id = readText();
        String instanceId = readText();
        Set<Uuid> subscribed = new LinkedHashSet<>();
        for (int left = in.readInt(); left > 0; left--) {
            subscribed.add(topics.get(in.readInt()));
        }
        Map<Uuid, Set<Integer>> owned = new LinkedHashMap<>();
        for (int left = in.readInt(); left > 0; left--) {
            Uuid topic = topics.get(in.readInt());
            Set<Integer> partitions = new TreeSet<>();
            for (int rest = in.readInt(); rest > 0; rest--) {
                partitions.add(in.readInt());
            }
            owned.put(topic, partitions);
            for (int partition : partitions) {
                owners.computeIfAbsent(topic, key -> new HashMap<>()).put(partition, id);
            }
        }
        Optional<String> instance =
            instanceId.isEmpty() ? Optional.empty() : Optional.of(instanceId);
        members.put(id, new MemberSubscriptionAndAssignmentImpl(
            Optional.empty(), instance, subscribed, new Assignment(owned)));
    }

    private String readText() throws IOException {
        byte[] bytes = new byte[in.readInt()];
        in.readFully(bytes);
        return new String(bytes, StandardCharsets.UTF_8);
    }

    private byte[] assign(PartitionAssignor assignor, SubscriptionType type) throws IOException {
        SubscribedTopicDescriber describer = new SubscribedTopicDescriber() {
            @Override
            public int numPartitions(Uuid topic) {
                return counts.getOrDefault(topic, -1);
            }

            @Override
            public Set<String> racksForPartition(Uuid topic, int partition) {
                return Set.of();
            }
        };
        GroupAssignment assignment =
            assignor.assign(new GroupSpecImpl(members, type, owners), describer);
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        DataOutputStream out = new DataOutputStream(bytes);
        for (String member : members.keySet()) {
            MemberAssignment assigned = assignment.members().get(member);
            Map<Uuid, Set<Integer>> owned = assigned == null ? Map.of() : assigned.partitions();
            out.writeInt(owned.size());
            for (Map.Entry<Uuid, Set<Integer>> each : owned.entrySet()) {
                out.writeInt(topics.indexOf(each.getKey()));
                out.writeInt(each.getValue().size());
                for (int partition : each.getValue()) {
                    out.writeInt(partition);
                }
            }
        }
        return bytes.toByteArray();
    }
}
