package org.apache.kafka.common.test.junit;

import java.util.*;
import java.util.concurrent.*;
import java.util.function.Supplier;
import java.util.stream.*;
import kafka.server.ControllerServer;
import kafka.server.KafkaBroker;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.GroupProtocol;
import org.apache.kafka.common.acl.*;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.requests.MetadataResponse;
import org.apache.kafka.common.test.ClusterInstance;
import org.apache.kafka.common.test.KafkaClusterTestKit;
import org.apache.kafka.common.test.api.*;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.server.fault.FaultHandlerException;
import org.junit.jupiter.api.extension.*;
import org.opentest4j.TestAbortedException;

/** Replaces the class of the same name in Kafka's test library: a Kafka test that needs a cluster gets one of processes
 *  (see Nodes), reached over the wire alone. What looks into a broker's memory is skipped, with the reason. */
public class RaftClusterInvocationContext implements TestTemplateInvocationContext {

    private final String name;
    private final ClusterConfig config;
    private final boolean combined;

    public RaftClusterInvocationContext(String name, ClusterConfig config, boolean combined) {
        this.name = name;
        this.config = config;
        this.combined = combined;
    }

    @Override
    public String getDisplayName(int n) {
        return (
            name +
            " [" +
            n +
            "] " +
            (combined ? "combined" : "isolated") +
            " " +
            String.join(",", config.displayTags())
        );
    }

    @Override
    public List<Extension> getAdditionalExtensions() {
        Instance cluster = new Instance(config, combined);
        return List.of(
            (BeforeEachCallback) c -> {
                if (!isRun()) throw new TestAbortedException(
                    "twin: run once, " + (combined ? "isolated" : "combined")
                );
                if (config.isAutoStart()) cluster.start();
            },
            (AfterTestExecutionCallback) c -> {
                if (
                    c.getExecutionException().isPresent() && Boolean.getBoolean("kit.tails")
                ) for (int id : cluster.brokerIds())
                    System.err.println(
                        c.getDisplayName() + " node " + id + ": " + cluster.nodes.tail(id)
                    );
                cluster.stop();
            },
            (AfterEachCallback) c -> cluster.stop(),
            new ClusterInstanceParameterResolver(cluster)
        );
    }

    /** Of the two runs of a test, the one whose cluster can be built: broker and controller share a process only if
     *  there is one broker. */
    private boolean isRun() {
        boolean hasTwin = config.clusterTypes().containsAll(Set.of(Type.KRAFT, Type.CO_KRAFT));
        return !hasTwin || combined == (config.numBrokers() == 1);
    }

    /** Controllers by id, as far as they can be seen from outside (see Seen). */
    static final class Outside extends TreeMap<Integer, ControllerServer> {

        Outside(Map<Integer, ControllerServer> of) {
            super(of);
        }

        @Override
        public Collection<ControllerServer> values() {
            // Kafka's Scala helpers only wait for the controllers to catch up; tests in Java want the object
            boolean waits = StackWalker.getInstance().walk(s ->
                s.limit(6).anyMatch(f -> f.getClassName().startsWith("kafka."))
            );
            return waits ? List.of() : super.values();
        }
    }

    static class Instance implements ClusterInstance {

        private final ClusterConfig config;
        private final boolean combined;
        Nodes nodes;
        private boolean started, stopped;

        Instance(ClusterConfig config, boolean combined) {
            this.config = config;
            this.combined = combined;
        }

        private Nodes nodes() {
            if (nodes == null) {
                Map<String, String> all = new TreeMap<>(config.serverProperties());
                Nodes.refusePlugins(all);
                config.perServerOverrideProperties().values().forEach(Nodes::refusePlugins);
                List<String> format = new ArrayList<>();
                MetadataVersion v = config.metadataVersion();
                if (
                    v != MetadataVersion.latestTesting() && v != MetadataVersion.latestProduction()
                ) format.addAll(List.of("--release-version", v.version()));
                config
                    .features()
                    .forEach((f, level) ->
                        format.addAll(List.of("--feature", f.featureName() + "=" + level))
                    );
                // a test that stops broker 0 of a combined cluster stops only its broker role: here that takes a process of its own
                nodes = new Nodes(
                    config.numBrokers(),
                    config.numControllers(),
                    combined && config.numBrokers() == 1,
                    config.numDisksPerBroker(),
                    config.brokerListenerName().value(),
                    config.brokerSecurityProtocol().name,
                    config.controllerListenerName().value(),
                    config.controllerSecurityProtocol().name,
                    all,
                    config.perServerOverrideProperties(),
                    format
                );
            }
            return nodes;
        }

        private Set<Integer> alive() {
            return nodes()
                .brokers.keySet()
                .stream()
                .filter(nodes()::alive)
                .collect(Collectors.toCollection(TreeSet::new));
        }

        @Override
        public String bootstrapServers() {
            return nodes().bootstrapServers();
        }

        @Override
        public String bootstrapControllers() {
            return nodes().bootstrapControllers();
        }

        @Override
        public ListenerName clientListener() {
            return config.brokerListenerName();
        }

        @Override
        public ListenerName controllerListenerName() {
            return config.controllerListenerName();
        }

        @Override
        public String clusterId() {
            try (Admin a = admin()) {
                return a.describeCluster().clusterId().get(30, TimeUnit.SECONDS);
            } catch (Exception e) {
                throw new RuntimeException(e);
            }
        }

        @Override
        public Type type() {
            return combined ? Type.CO_KRAFT : Type.KRAFT;
        }

        @Override
        public ClusterConfig config() {
            return config;
        }

        @Override
        public Set<Integer> controllerIds() {
            return nodes().controllers.keySet();
        }

        @Override
        public Set<Integer> brokerIds() {
            return nodes().brokers.keySet();
        }

        public KafkaClusterTestKit getUnderlying() {
            throw new TestAbortedException("internals: the test kit");
        }

        @Override
        public void start() {
            if (!started) {
                nodes().start();
                started = true;
            }
        }

        @Override
        public boolean started() {
            return started;
        }

        @Override
        public void stop() {
            if (!stopped && nodes != null) {
                stopped = true;
                nodes.close();
            }
        }

        @Override
        public boolean stopped() {
            return stopped;
        }

        @Override
        public void shutdownBroker(int id) {
            nodes().stop(id);
        }

        @Override
        public void startBroker(int id) {
            nodes().start(id);
        }

        @Override
        public Optional<FaultHandlerException> firstFatalException() {
            return Optional.empty();
        }

        @Override
        public Optional<FaultHandlerException> firstNonFatalException() {
            return Optional.empty();
        }

        @Override
        public Map<Integer, KafkaBroker> brokers() {
            return Seen.brokers(nodes(), nodes().brokers.keySet());
        }

        @Override
        public Map<Integer, KafkaBroker> aliveBrokers() {
            return Seen.brokers(nodes(), alive());
        }

        @Override
        public Map<Integer, ControllerServer> controllers() {
            return new Outside(Seen.controllers(nodes()));
        }

        @Override
        public List<Integer> brokerBoundPorts() {
            return alive().stream().map(nodes().brokers::get).collect(Collectors.toList());
        }

        @Override
        public List<Integer> controllerBoundPorts() {
            return new ArrayList<>(nodes().controllers.values());
        }

        @Override
        public Set<GroupProtocol> supportedGroupProtocols() {
            if (System.getProperty("kit.protocols", "").equals("classic")) return Set.of(
                GroupProtocol.CLASSIC
            );
            String r = config
                .serverProperties()
                .getOrDefault("group.coordinator.rebalance.protocols", "classic,consumer");
            return r.contains("consumer")
                ? Set.of(GroupProtocol.CLASSIC, GroupProtocol.CONSUMER)
                : Set.of(GroupProtocol.CLASSIC);
        }

        @Override
        public void waitForReadyBrokers() throws InterruptedException {
            await("the brokers never registered", () -> {
                try (Admin a = admin()) {
                    return (
                        a.describeCluster().nodes().get(10, TimeUnit.SECONDS).size() ==
                        config.numBrokers()
                    );
                } catch (Exception e) {
                    return false;
                }
            });
        }

        @Override
        public void waitTopicCreation(String topic, int partitions) throws InterruptedException {
            if (partitions <= 0) throw new IllegalArgumentException(
                "Partition count must be > 0, but was " + partitions
            );
            boolean login = nodes().metadata(alive().iterator().next(), topic) == null;
            await(topic + " did not get " + partitions + " partitions", () -> {
                if (login) try (Admin a = admin()) {
                    return (
                        a
                            .describeTopics(List.of(topic))
                            .allTopicNames()
                            .get(10, TimeUnit.SECONDS)
                            .get(topic)
                            .partitions()
                            .size() == partitions
                    );
                } catch (Exception e) {
                    return false;
                }
                for (int id : alive()) {
                    MetadataResponse m = nodes().metadata(id, topic);
                    if (m == null) return false;
                    long known = m
                        .topicMetadata()
                        .stream()
                        .filter(t -> t.topic().equals(topic))
                        .mapToLong(t -> t.partitionMetadata().size())
                        .sum();
                    if (known != partitions) return false;
                }
                return true;
            });
        }

        @Override
        public void waitTopicDeletion(String topic) throws InterruptedException {
            await(topic + " is still there", () -> {
                try (Admin a = admin()) {
                    if (
                        a.listTopics().names().get(10, TimeUnit.SECONDS).contains(topic)
                    ) return false;
                } catch (Exception e) {
                    return false;
                }
                for (int id : alive()) {
                    MetadataResponse m = nodes().metadata(id, topic);
                    if (
                        m != null &&
                        m.errors().get(topic) !=
                            org.apache.kafka.common.protocol.Errors.UNKNOWN_TOPIC_OR_PARTITION
                    ) return false;
                }
                return true;
            });
        }

        @Override
        public void ensureConsistentMetadata() {
            Nodes.sleep(config.numBrokers() > 1 ? 500 : 50);
        }

        @Override
        public void ensureConsistentMetadata(
            Collection<KafkaBroker> b,
            Collection<ControllerServer> c
        ) {
            ensureConsistentMetadata();
        }

        @Override
        public List<org.apache.kafka.server.authorizer.Authorizer> authorizers() {
            throw new TestAbortedException("internals: an Authorizer object");
        }

        @Override
        public void waitAcls(AclBindingFilter filter, Collection<AccessControlEntry> entries)
            throws InterruptedException {
            await("the ACLs never became " + entries, () -> {
                try (Admin a = admin()) {
                    return a
                        .describeAcls(filter)
                        .values()
                        .get(10, TimeUnit.SECONDS)
                        .stream()
                        .map(AclBinding::entry)
                        .collect(Collectors.toSet())
                        .equals(new HashSet<>(entries));
                } catch (Exception e) {
                    return false;
                }
            });
        }

        private static void await(String why, Supplier<Boolean> done) throws InterruptedException {
            long end = System.currentTimeMillis() + 30_000;
            while (!done.get()) {
                if (System.currentTimeMillis() > end) throw new AssertionError(why);
                Thread.sleep(50);
            }
        }
    }
}
