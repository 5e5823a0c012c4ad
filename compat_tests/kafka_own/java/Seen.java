package org.apache.kafka.common.test.junit;

import java.lang.reflect.*;
import java.util.*;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Collectors;
import kafka.network.SocketServer;
import kafka.server.ControllerServer;
import kafka.server.KafkaBroker;
import kafka.server.KafkaConfig;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.requests.MetadataResponse;
import org.apache.kafka.controller.Controller;
import org.apache.kafka.coordinator.group.GroupCoordinator;
import org.apache.kafka.metadata.*;
import org.mockito.Mockito;
import org.opentest4j.TestAbortedException;

/** A broker as Kafka's tests hold it, with what can be seen from outside: its settings, its ports, and the metadata that it answers. */
final class Seen {

    interface Answer {
        Object of(Method m, Object[] a) throws Throwable;
    }

    @SuppressWarnings("unchecked")
    static <T> T stand(Class<T> type, Answer answer) {
        return (T) Proxy.newProxyInstance(
            type.getClassLoader(),
            new Class<?>[] { type },
            (self, m, a) ->
                switch (m.getName()) {
                    case "hashCode" -> System.identityHashCode(self);
                    case "equals" -> self == a[0];
                    case "toString" -> type.getSimpleName() + " seen from outside";
                    default -> answer.of(m, a);
                }
        );
    }

    static TestAbortedException no(Class<?> type, Method m) {
        return new TestAbortedException("internals: " + type.getSimpleName() + "." + m.getName());
    }

    static Map<Integer, KafkaBroker> brokers(Nodes nodes, Collection<Integer> ids) {
        Map<Integer, KafkaBroker> m = new TreeMap<>();
        for (int id : ids) m.put(id, broker(nodes, id));
        return m;
    }

    private static KafkaBroker broker(Nodes nodes, int id) {
        return stand(
            KafkaBroker.class,
            (m, a) ->
                switch (m.getName()) {
                    case "config" -> new KafkaConfig(nodes.properties.get(id), false);
                    case "boundPort" -> nodes.brokers.get(id);
                    case "socketServer" -> Mockito.mock(SocketServer.class, call -> {
                        if (!call.getMethod().getName().equals("boundPort")) throw no(
                            SocketServer.class,
                            call.getMethod()
                        );
                        return nodes.brokers.get(id);
                    });
                    case "brokerState" -> nodes.alive(id)
                        ? BrokerState.RUNNING
                        : BrokerState.NOT_RUNNING;
                    case "isShutdown" -> !nodes.alive(id);
                    case "shutdown" -> {
                        nodes.stop(id);
                        yield null;
                    }
                    case "startup" -> {
                        nodes.start(id);
                        yield null;
                    }
                    case "awaitShutdown" -> null;
                    case "clusterId" -> answer(nodes, id, null).clusterId();
                    case "metadataCache" -> cache(nodes, id);
                    case "groupCoordinator" -> stand(GroupCoordinator.class, (g, b) -> {
                        if (!g.getName().equals("groupMetadataTopicConfigs")) throw no(
                            GroupCoordinator.class,
                            g
                        );
                        Properties p = new Properties();
                        p.put("cleanup.policy", "compact");
                        p.put("compression.type", "producer");
                        p.put("segment.bytes", "104857600");
                        return p;
                    });
                    default -> throw no(KafkaBroker.class, m);
                }
        );
    }

    /** Controllers have settings and a port, and know the ids of topics. */
    static Map<Integer, ControllerServer> controllers(Nodes nodes) {
        Map<Integer, ControllerServer> m = new TreeMap<>();
        for (int id : nodes.controllers.keySet()) m.put(
            id,
            Mockito.mock(ControllerServer.class, call ->
                switch (call.getMethod().getName()) {
                    case "config" -> new KafkaConfig(nodes.properties.get(id), false);
                    case "socketServer" -> Mockito.mock(SocketServer.class, inner -> {
                        if (!inner.getMethod().getName().equals("boundPort")) throw no(
                            SocketServer.class,
                            inner.getMethod()
                        );
                        return nodes.controllers.get(id);
                    });
                    case "controller" -> stand(Controller.class, (c, b) -> {
                        if (!c.getName().equals("findAllTopicIds")) throw no(Controller.class, c);
                        return CompletableFuture.completedFuture(topicIds(nodes));
                    });
                    default -> throw no(ControllerServer.class, call.getMethod());
                }
            )
        );
        return m;
    }

    private static Map<String, Uuid> topicIds(Nodes nodes) {
        int id = nodes.brokers.keySet().stream().filter(nodes::alive).findFirst().orElseThrow();
        return answer(nodes, id, null)
            .topicMetadata()
            .stream()
            .collect(
                Collectors.toMap(
                    MetadataResponse.TopicMetadata::topic,
                    MetadataResponse.TopicMetadata::topicId
                )
            );
    }

    private static MetadataResponse answer(Nodes nodes, int id, String topic) {
        MetadataResponse r = nodes.metadata(id, topic);
        if (r == null) throw new TestAbortedException(
            "internals: MetadataCache of a broker that wants a login"
        );
        return r;
    }

    private static Optional<MetadataResponse.TopicMetadata> topic(
        Nodes nodes,
        int id,
        String name
    ) {
        return answer(nodes, id, name)
            .topicMetadata()
            .stream()
            .filter(t -> name.equals(t.topic()) && t.error().code() == 0)
            .findFirst();
    }

    private static MetadataCache cache(Nodes nodes, int id) {
        return stand(
            MetadataCache.class,
            (m, a) ->
                switch (m.getName()) {
                    case "numPartitions" -> topic(nodes, id, (String) a[0]).map(t ->
                        t.partitionMetadata().size()
                    );
                    case "getTopicId" -> topic(nodes, id, (String) a[0])
                        .map(MetadataResponse.TopicMetadata::topicId)
                        .orElse(Uuid.ZERO_UUID);
                    case "getAllTopics" -> answer(nodes, id, null)
                        .topicMetadata()
                        .stream()
                        .map(MetadataResponse.TopicMetadata::topic)
                        .collect(Collectors.toSet());
                    case "topicNamesToIds" -> answer(nodes, id, null)
                        .topicMetadata()
                        .stream()
                        .collect(
                            Collectors.toMap(
                                MetadataResponse.TopicMetadata::topic,
                                MetadataResponse.TopicMetadata::topicId
                            )
                        );
                    case "topicIdsToNames" -> answer(nodes, id, null)
                        .topicMetadata()
                        .stream()
                        .collect(
                            Collectors.toMap(
                                MetadataResponse.TopicMetadata::topicId,
                                MetadataResponse.TopicMetadata::topic
                            )
                        );
                    case "contains" -> a[0] instanceof TopicPartition tp
                        ? topic(nodes, id, tp.topic())
                              .filter(t ->
                                  t
                                      .partitionMetadata()
                                      .stream()
                                      .anyMatch(p -> p.partition() == tp.partition())
                              )
                              .isPresent()
                        : topic(nodes, id, (String) a[0]).isPresent();
                    case "getLeaderAndIsr" -> topic(nodes, id, (String) a[0])
                        .flatMap(t ->
                            t
                                .partitionMetadata()
                                .stream()
                                .filter(p -> p.partition() == (Integer) a[1])
                                .findFirst()
                        )
                        .map(p ->
                            new LeaderAndIsr(
                                p.leaderId.orElse(-1),
                                p.leaderEpoch.orElse(0),
                                p.inSyncReplicaIds,
                                LeaderRecoveryState.RECOVERED,
                                0
                            )
                        );
                    case "getAliveBrokerNodes" -> List.copyOf(answer(nodes, id, null).brokers());
                    case "hasAliveBroker" -> answer(nodes, id, null)
                        .brokers()
                        .stream()
                        .anyMatch(n -> n.id() == (Integer) a[0]);
                    default -> throw no(MetadataCache.class, m);
                }
        );
    }
}
