import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.IntStream;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.PartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.api.streams.assignor.TopologyDescriber;
import org.apache.kafka.coordinator.group.assignor.RangeAssignor;
import org.apache.kafka.coordinator.group.assignor.SimpleAssignor;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.apache.kafka.coordinator.group.modern.Assignment;
import org.apache.kafka.coordinator.group.modern.GroupSpecImpl;
import org.apache.kafka.coordinator.group.modern.MemberSubscriptionAndAssignmentImpl;
import org.apache.kafka.coordinator.group.streams.assignor.AssignmentConfigsImpl;
import org.apache.kafka.coordinator.group.streams.assignor.MemberMetadataAndStateImpl;
import org.apache.kafka.coordinator.group.streams.assignor.StickyTaskAssignor;

/**
 * Measures Kafka's assignors: CPU time of the thread for one assignment.
 *
 * In:  int32 assignor (0 range, 1 uniform, 2 simple, 3 sticky), int32 members, int32 topics or
 *      subtopologies, int32 partitions or tasks of each, int32 repetitions
 * Out: int8 status 0, int32 length, then int64 nanoseconds: of a first assignment, the first and
 *      the least of all repetitions; the same after one member has left
 */
public final class AssignorTimes {
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

    private final int kind;
    private final List<Uuid> topics = new ArrayList<>();
    private final int partitions;

    private AssignorTimes(int kind, int topicCount, int partitions) {
        this.kind = kind;
        this.partitions = partitions;
        for (int number = 1; number <= topicCount; number++) {
            topics.add(new Uuid(number * 0x9E3779B97F4A7C15L, number));
        }
    }

    public static void main(String[] arguments) throws Exception {
        DataInputStream in = new DataInputStream(System.in);
        DataOutputStream out = new DataOutputStream(new BufferedOutputStream(System.out));
        while (true) {
            int kind = in.readInt();
            int members = in.readInt();
            AssignorTimes group = new AssignorTimes(kind, in.readInt(), in.readInt());
            long[] times = group.times(members, in.readInt());
            out.writeByte(0);
            out.writeInt(times.length * Long.BYTES);
            for (long time : times) {
                out.writeLong(time);
            }
            out.flush();
        }
    }

    private long[] times(int members, int repetitions) {
        long[] times = {0, Long.MAX_VALUE, 0, Long.MAX_VALUE};
        for (int round = 0; round < repetitions; round++) {
            Step first = kind == 3 ? stream(members, Map.of()) : assign(members, Map.of());
            Step left = kind == 3
                ? stream(members - 1, first.tasks)
                : assign(members - 1, first.partitions);
            if (round == 0) {
                times[0] = first.nanos;
                times[2] = left.nanos;
            }
            times[1] = Math.min(times[1], first.nanos);
            times[3] = Math.min(times[3], left.nanos);
        }
        return times;
    }

    private record Step(
        long nanos,
        Map<String, Map<Uuid, Set<Integer>>> partitions,
        Map<String, Map<String, Set<Integer>>> tasks) {
    }

    private Step assign(int memberCount, Map<String, Map<Uuid, Set<Integer>>> owned) {
        Set<Uuid> subscribed = new HashSet<>(topics);
        Map<String, MemberSubscriptionAndAssignmentImpl> members = new HashMap<>();
        Map<Uuid, Map<Integer, String>> owners = new HashMap<>();
        for (int number = 0; number < memberCount; number++) {
            String id = "member-" + number;
            Map<Uuid, Set<Integer>> own = owned.getOrDefault(id, Map.of());
            own.forEach((topic, indexes) -> indexes.forEach(index ->
                owners.computeIfAbsent(topic, key -> new HashMap<>()).put(index, id)));
            members.put(id, new MemberSubscriptionAndAssignmentImpl(
                Optional.empty(), Optional.empty(), subscribed, new Assignment(own)));
        }
        PartitionAssignor assignor = switch (kind) {
            case 0 -> new RangeAssignor();
            case 1 -> new UniformAssignor();
            default -> new SimpleAssignor();
        };
        GroupSpecImpl spec = new GroupSpecImpl(members, SubscriptionType.HOMOGENEOUS, owners);
        long began = THREADS.getCurrentThreadCpuTime();
        GroupAssignment assignment = assignor.assign(spec, describer());
        long nanos = THREADS.getCurrentThreadCpuTime() - began;
        Map<String, Map<Uuid, Set<Integer>>> result = new HashMap<>();
        assignment.members().forEach((id, member) -> result.put(id, member.partitions()));
        return new Step(nanos, result, Map.of());
    }

    private SubscribedTopicDescriber describer() {
        Set<Uuid> known = new HashSet<>(topics);
        return new SubscribedTopicDescriber() {
            @Override
            public int numPartitions(Uuid topic) {
                return known.contains(topic) ? partitions : -1;
            }

            @Override
            public Set<String> racksForPartition(Uuid topic, int partition) {
                return Set.of();
            }
        };
    }

    private Step stream(int memberCount, Map<String, Map<String, Set<Integer>>> owned) {
        Map<String, MemberMetadataAndStateImpl> members = new HashMap<>();
        for (int number = 0; number < memberCount; number++) {
            String id = "member-" + number;
            members.put(id, new MemberMetadataAndStateImpl(
                Optional.empty(), Optional.empty(), "process-" + number, Map.of(),
                owned.getOrDefault(id, Map.of()), Map.of(), Map.of(), Map.of(), Map.of()));
        }
        List<String> names =
            IntStream.range(0, topics.size()).mapToObj(Integer::toString).toList();
        TopologyDescriber describer = new TopologyDescriber() {
            @Override
            public List<String> subtopologies() {
                return names;
            }

            @Override
            public int maxNumInputPartitions(String name) {
                return partitions;
            }

            @Override
            public boolean isStateful(String name) {
                return true;
            }
        };
        var spec = new org.apache.kafka.coordinator.group.streams.assignor.GroupSpecImpl(
            members, new AssignmentConfigsImpl(0, List.of()));
        long began = THREADS.getCurrentThreadCpuTime();
        var assignment = new StickyTaskAssignor().assign(spec, describer);
        long nanos = THREADS.getCurrentThreadCpuTime() - began;
        Map<String, Map<String, Set<Integer>>> result = new HashMap<>();
        assignment.members().forEach((id, member) -> result.put(id, member.activeTasks()));
        return new Step(nanos, Map.of(), result);
    }
}
