package org.apache.kafka.common.test;

import java.util.*;
import java.util.stream.Collectors;
import kafka.server.BrokerServer;
import kafka.server.ControllerServer;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.test.junit.Nodes;
import org.apache.kafka.controller.Controller;
import org.mockito.Mockito;
import org.opentest4j.TestAbortedException;

/** Replaces the class of the same name in Kafka's test library: the cluster of processes (see Nodes) under tests that
 *  start one themselves, such as those of Kafka Streams. */
public class KafkaClusterTestKit implements AutoCloseable {

    private final TestKitNodes plan;
    private final Nodes nodes;
    private final MockFaultHandler fatal = new MockFaultHandler("fatal"),
        nonFatal = new MockFaultHandler("nonFatal");

    private KafkaClusterTestKit(TestKitNodes plan, Map<String, String> settings) {
        this.plan = plan;
        Map<Integer, Map<String, String>> perNode = new TreeMap<>();
        plan.brokerNodes().forEach((id, node) -> perNode.put(id, node.propertyOverrides()));
        int brokers = plan.brokerNodes().size();
        nodes = new Nodes(
            brokers,
            plan.controllerNodes().size(),
            brokers == 1 && plan.isCombined(plan.brokerNodes().firstKey()),
            plan.brokerNodes().values().iterator().next().logDataDirectories().size(),
            plan.brokerListenerName().value(),
            plan.brokerListenerProtocol().name,
            plan.controllerListenerName().value(),
            plan.controllerListenerProtocol().name,
            settings,
            perNode,
            List.of()
        );
    }

    public void format() {
        /* nodes format their directories when they start first */
    }

    public void startup() {
        nodes.start();
    }

    public void waitForReadyBrokers() {
        /* startup waits for them */
    }

    public Admin admin() {
        return admin(Map.of(), false);
    }

    public Admin admin(Map<String, Object> configs) {
        return admin(configs, false);
    }

    public Admin admin(Map<String, Object> configs, boolean usingControllers) {
        Map<String, Object> all = new HashMap<>(configs);
        if (usingControllers) all.putIfAbsent("bootstrap.controllers", bootstrapControllers());
        else all.putIfAbsent("bootstrap.servers", bootstrapServers());
        return Admin.create(all);
    }

    public String bootstrapServers() {
        return nodes.bootstrapServers();
    }

    public String bootstrapControllers() {
        return nodes.bootstrapControllers();
    }

    public Map<Integer, ControllerServer> controllers() {
        return hidden(ControllerServer.class, nodes.controllers.keySet());
    }

    public Controller waitForActiveController() {
        throw new TestAbortedException("internals: a Controller object");
    }

    public Map<Integer, BrokerServer> brokers() {
        return hidden(BrokerServer.class, nodes.brokers.keySet());
    }

    private static <T> Map<Integer, T> hidden(Class<T> type, Collection<Integer> ids) {
        return ids
            .stream()
            .collect(
                Collectors.toMap(
                    id -> id,
                    id ->
                        Mockito.mock(type, call -> {
                            throw new TestAbortedException(
                                "internals: " +
                                    type.getSimpleName() +
                                    "." +
                                    call.getMethod().getName()
                            );
                        })
                )
            );
    }

    public TestKitNodes nodes() {
        return plan;
    }

    public MockFaultHandler fatalFaultHandler() {
        return fatal;
    }

    public MockFaultHandler nonFatalFaultHandler() {
        return nonFatal;
    }

    @Override
    public void close() {
        nodes.close();
    }

    public static class Builder {

        private final TestKitNodes plan;
        private final Map<String, String> settings = new TreeMap<>();

        public Builder(TestKitNodes plan) {
            this.plan = plan;
        }

        public Builder setConfigProp(String key, Object value) {
            settings.put(key, Nodes.text(value));
            return this;
        }

        public Builder setStandalone(boolean standalone) {
            if (standalone) throw new TestAbortedException("internals: voters in the metadata");
            return this;
        }

        public Builder setInitialVoterSet(Map<Integer, Uuid> voters) {
            throw new TestAbortedException("internals: voters in the metadata");
        }

        public Builder setDeleteOnClose(boolean delete) {
            return this;
        }

        public KafkaClusterTestKit build() {
            Nodes.refusePlugins(settings);
            return new KafkaClusterTestKit(plan, settings);
        }
    }
}
