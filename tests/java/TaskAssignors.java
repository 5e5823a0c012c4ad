import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.common.utils.internals.LogContext;
import org.apache.kafka.coordinator.group.api.streams.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.streams.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.api.streams.assignor.TopologyDescriber;
import org.apache.kafka.coordinator.group.streams.assignor.AssignmentConfigsImpl;
import org.apache.kafka.coordinator.group.streams.assignor.GroupSpecImpl;
import org.apache.kafka.coordinator.group.streams.assignor.MemberMetadataAndStateImpl;
import org.apache.kafka.coordinator.group.streams.assignor.StickyTaskAssignor;
import org.apache.kafka.timeline.SnapshotRegistry;
import org.apache.kafka.timeline.TimelineHashMap;

/**
 * Assigns the tasks of streams groups with Kafka's assignor, as its coordinator calls it.
 *
 * In:  int32 standby tasks,
 *      []subtopology: string id, int32 tasks, int32 whether it has state
 *      []member: string id, string process, []task active, []task standby,
 *      []offset: string subtopology, int32 partition, int32 offset
 *      A task is a string subtopology and an int32 partition. Arrays and strings begin with their
 *      int32 length. Members joined in the order of the array, and have changed since.
 * Out: int8 status (0 assigned, 1 failed), int32 length, then for each member in the order of the
 *      input []task active, []task standby, both sorted; or the exception
 */
public final class TaskAssignors {
    private final DataInputStream in;
    private final TreeMap<String, int[]> subtopologies = new TreeMap<>();
    private final List<String> joined = new ArrayList<>();
    private final TimelineHashMap<String, MemberMetadataAndStateImpl> members =
        new TimelineHashMap<>(new SnapshotRegistry(new LogContext()), 0);

    private TaskAssignors(DataInputStream in) {
        this.in = in;
    }

    public static void main(String[] arguments) throws Exception {
        DataInputStream in = new DataInputStream(new BufferedInputStream(System.in, 1 << 20));
        DataOutputStream out = new DataOutputStream(new BufferedOutputStream(System.out, 1 << 20));
        while (true) {
            in.mark(1);
            if (in.read() < 0) {
                return;
            }
            in.reset();
            byte[] answer;
            int status = 0;
            TaskAssignors group = new TaskAssignors(in);
            int standbyTasks = in.readInt();
            group.read();
            try {
                answer = group.assign(standbyTasks);
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
            subtopologies.put(readText(), new int[] {in.readInt(), in.readInt()});
        }
        for (int left = in.readInt(); left > 0; left--) {
            String id = readText();
            String process = readText();
            Map<String, Set<Integer>> active = readTasks();
            Map<String, Set<Integer>> standby = readTasks();
            Map<String, Map<Integer, Long>> offsets = new HashMap<>();
            for (int rest = in.readInt(); rest > 0; rest--) {
                offsets.computeIfAbsent(readText(), key -> new HashMap<>())
                    .put(in.readInt(), (long) in.readInt());
            }
            joined.add(id);
            members.put(id, new MemberMetadataAndStateImpl(
                Optional.empty(), Optional.empty(), process, Map.of(), active, standby, Map.of(),
                offsets, Map.of()));
        }
        // Replacing a value may enlarge the table.
        joined.forEach(id -> members.put(id, members.get(id)));
    }

    private Map<String, Set<Integer>> readTasks() throws IOException {
        Map<String, Set<Integer>> tasks = new HashMap<>();
        for (int left = in.readInt(); left > 0; left--) {
            tasks.computeIfAbsent(readText(), key -> new HashSet<>()).add(in.readInt());
        }
        return tasks;
    }

    private String readText() throws IOException {
        byte[] bytes = new byte[in.readInt()];
        in.readFully(bytes);
        return new String(bytes, StandardCharsets.UTF_8);
    }

    private byte[] assign(int standbyTasks) throws IOException {
        Map<String, MemberMetadataAndStateImpl> visited = new HashMap<>();
        members.forEach(visited::put);
        TopologyDescriber describer = new TopologyDescriber() {
            @Override
            public List<String> subtopologies() {
                return List.copyOf(subtopologies.keySet());
            }

            @Override
            public int maxNumInputPartitions(String name) {
                return subtopologies.get(name)[0];
            }

            @Override
            public boolean isStateful(String name) {
                return subtopologies.get(name)[1] != 0;
            }
        };
        GroupAssignment assignment = new StickyTaskAssignor().assign(
            new GroupSpecImpl(visited, new AssignmentConfigsImpl(standbyTasks, List.of())),
            describer);
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        DataOutputStream out = new DataOutputStream(bytes);
        for (String member : joined) {
            MemberAssignment assigned = assignment.members().get(member);
            writeTasks(out, assigned.activeTasks());
            writeTasks(out, assigned.standbyTasks());
        }
        return bytes.toByteArray();
    }

    private void writeTasks(DataOutputStream out, Map<String, Set<Integer>> tasks)
        throws IOException {
        out.writeInt(tasks.values().stream().mapToInt(Set::size).sum());
        for (Map.Entry<String, Set<Integer>> each : new TreeMap<>(tasks).entrySet()) {
            for (int partition : new TreeSet<>(each.getValue())) {
                byte[] name = each.getKey().getBytes(StandardCharsets.UTF_8);
                out.writeInt(name.length);
                out.write(name);
                out.writeInt(partition);
            }
        }
    }
}
