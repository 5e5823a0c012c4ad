package org.apache.kafka.common.test.junit;

import java.io.*;
import java.net.*;
import java.nio.ByteBuffer;
import java.nio.file.*;
import java.util.*;
import java.util.concurrent.TimeUnit;
import java.util.stream.*;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.common.config.types.Password;
import org.apache.kafka.common.protocol.*;
import org.apache.kafka.common.requests.*;
import org.opentest4j.TestAbortedException;

/** The nodes of one cluster, as processes: wirebroker's, or Apache Kafka's for comparison.
 *  System properties: kit.broker (the wirebroker command, or "kafka"), kit.java.classpath (Kafka's own jars),
 *  kit.controllers (how many controllers a cluster may have; as many as its test asks for by default), kit.keep (keep the directories). */
public final class Nodes implements AutoCloseable {

    static final String COMMAND = System.getProperty("kit.broker", "wirebroker");
    static final boolean APACHE = COMMAND.equals("kafka");
    static final int CONTROLLERS = Integer.getInteger("kit.controllers", 99);
    static final String CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qk";
    static final boolean KEEP = Boolean.getBoolean("kit.keep");
    /** For nodes that run; one that ends is noticed immediately. */
    static final long START_MS = 60_000;

    public final TreeMap<Integer, Integer> brokers = new TreeMap<>(),
        controllers = new TreeMap<>(); // node id -> port
    final Map<Integer, Properties> properties = new TreeMap<>();
    private final Map<Integer, Process> running = new TreeMap<>();
    private final Path home;
    private final List<ServerSocket> held = new ArrayList<>();
    private final List<String> formatting;

    /** formatting: options of StorageTool besides the cluster id (--release-version, --feature); empty for the broker's defaults. */
    public Nodes(
        int brokerCount,
        int controllerCount,
        boolean combined,
        int disks,
        String listener,
        String security,
        String controllerListener,
        String controllerSecurity,
        Map<String, String> all,
        Map<Integer, Map<String, String>> perNode,
        List<String> formatting
    ) {
        this.formatting = formatting;
        int voters = Math.max(1, Math.min(controllerCount, CONTROLLERS));
        try {
            home = Files.createTempDirectory("kit");
            for (int id = 0; id < brokerCount; id++) brokers.put(id, port());
            for (int i = 0; i < voters; i++) controllers.put(combined ? i : 3000 + i, port());
            for (ServerSocket s : held) s.close();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        String quorum = controllers
            .entrySet()
            .stream()
            .map(e -> e.getKey() + "@localhost:" + e.getValue())
            .collect(Collectors.joining(","));
        TreeSet<Integer> ids = new TreeSet<>(brokers.keySet());
        ids.addAll(controllers.keySet());
        for (int id : ids) {
            boolean b = brokers.containsKey(id),
                c = controllers.containsKey(id);
            Properties p = new Properties();
            p.putAll(all);
            p.putAll(perNode.getOrDefault(id, Map.of()));
            p.put("process.roles", b && c ? "broker,controller" : b ? "broker" : "controller");
            p.put("node.id", "" + id);
            p.put("controller.quorum.voters", quorum);
            String lb = listener + "://localhost:" + brokers.get(id),
                lc = controllerListener + "://localhost:" + controllers.get(id);
            p.put("listeners", b && c ? lb + "," + lc : b ? lb : lc);
            if (b) p.put("advertised.listeners", lb);
            p.putIfAbsent(
                "listener.security.protocol.map",
                listener + ":" + security + "," + controllerListener + ":" + controllerSecurity
            );
            p.putIfAbsent("inter.broker.listener.name", listener);
            p.put("controller.listener.names", controllerListener);
            p.put(
                "log.dirs",
                IntStream.range(0, Math.max(1, disks))
                    .mapToObj(d -> home.resolve(id + "/data" + d).toString())
                    .collect(Collectors.joining(","))
            );
            p.putIfAbsent("log.cleaner.dedupe.buffer.size", "2097152");
            // Controllers that name others begin a new cluster only with its id.
            if (!APACHE) p.putIfAbsent("wirebroker.cluster.id", CLUSTER_ID);
            if (!APACHE && "".equals(p.get("group.share.persister.class.name"))) {
                // Without its persister Kafka has no state topic, and one broker is enough for share groups
                p.putIfAbsent("share.coordinator.state.topic.replication.factor", "1");
                p.putIfAbsent("share.coordinator.state.topic.num.partitions", "1");
                p.putIfAbsent("share.coordinator.state.topic.min.isr", "1");
            }
            p.put("unstable.feature.versions.enable", "true");
            p.put("unstable.api.versions.enable", "true");
            if ((b ? security : controllerSecurity).equals("SASL_PLAINTEXT")) {
                // a controller alone takes its own listener's protocol
                p.putIfAbsent("sasl.enabled.mechanisms", "PLAIN");
                p.putIfAbsent("sasl.mechanism.inter.broker.protocol", "PLAIN");
                p.putIfAbsent("sasl.mechanism.controller.protocol", "PLAIN");
                p.putIfAbsent(
                    "authorizer.class.name",
                    "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
                );
                p.putIfAbsent("allow.everyone.if.no.acl.found", "false");
                p.putIfAbsent("super.users", "User:plain-admin");
                String jaas =
                    "org.apache.kafka.common.security.plain.PlainLoginModule required username=\"plain-admin\" password=\"plain-admin-secret\" user_plain-user1=\"plain-user1-secret\" user_plain-admin=\"plain-admin-secret\";";
                p.putIfAbsent(
                    "listener.name." +
                        listener.toLowerCase(Locale.ROOT) +
                        ".plain.sasl.jaas.config",
                    jaas
                );
                p.putIfAbsent(
                    "listener.name." +
                        controllerListener.toLowerCase(Locale.ROOT) +
                        ".plain.sasl.jaas.config",
                    jaas
                );
            }
            properties.put(id, p);
        }
    }

    /** A value as a file of settings has it. */
    public static String text(Object value) {
        if (value instanceof List<?> list) return list.stream()
            .map(String::valueOf)
            .collect(Collectors.joining(","));
        return value instanceof Password password ? password.value() : String.valueOf(value);
    }

    private int port() throws IOException {
        ServerSocket s = new ServerSocket(0, 1, InetAddress.getByName("localhost"));
        held.add(s);
        return s.getLocalPort();
    }

    /** Java classes that a test plugs into the broker exist only inside a JVM. */
    public static void refusePlugins(Map<String, String> settings) {
        if (APACHE) return;
        for (Map.Entry<String, String> e : settings.entrySet())
            for (String name : String.valueOf(e.getValue()).split(",")) {
                if (
                    !name.matches("([a-z]\\w*\\.)+[A-Z][\\w$]*") ||
                    name.equals("org.apache.kafka.metadata.authorizer.StandardAuthorizer") ||
                    name.equals("org.apache.kafka.server.share.persister.DefaultStatePersister") ||
                    name.startsWith("org.apache.kafka.common.security.")
                ) continue;
                try {
                    Class.forName(name, false, Nodes.class.getClassLoader());
                } catch (ClassNotFoundException | LinkageError x) {
                    continue;
                }
                throw new TestAbortedException("plug-in: " + e.getKey() + "=" + name);
            }
    }

    public void start() {
        for (int id : new TreeSet<>(controllers.keySet())) launch(id);
        for (int id : brokers.keySet()) if (!running.containsKey(id)) launch(id);
        ready(brokers.keySet());
    }

    public void start(int id) {
        launch(id);
        ready(Set.of(id));
    }

    private void launch(int id) {
        try {
            Path dir = home.resolve("" + id);
            Files.createDirectories(dir);
            Path file = dir.resolve("server.properties"),
                out = dir.resolve("out.log");
            if (!Files.exists(file)) {
                try (Writer w = Files.newBufferedWriter(file)) {
                    properties.get(id).store(w, null);
                }
                if (APACHE || !formatting.isEmpty()) {
                    List<String> f = new ArrayList<>(
                        List.of(
                            "java",
                            "-Xmx256m",
                            "-cp",
                            System.getProperty("kit.java.classpath"),
                            "kafka.tools.StorageTool",
                            "format",
                            "-t",
                            CLUSTER_ID,
                            "-c",
                            file.toString()
                        )
                    );
                    f.addAll(formatting);
                    if (!APACHE && !formatting.contains("--release-version")) f.addAll(
                        List.of("--release-version", System.getProperty("kit.release", "4.3-IV0"))
                    ); // not the unstable version that the settings allow
                    if (
                        new ProcessBuilder(f)
                            .redirectErrorStream(true)
                            .redirectOutput(ProcessBuilder.Redirect.appendTo(out.toFile()))
                            .start()
                            .waitFor() != 0
                    ) throw new IllegalStateException("not formatted: " + tail(id));
                }
            }
            List<String> command = APACHE
                ? List.of(
                      "java",
                      "-Xmx512m",
                      "-XX:+UseSerialGC",
                      "-XX:TieredStopAtLevel=1",
                      "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
                      "-cp",
                      System.getProperty("kit.java.classpath"),
                      "kafka.Kafka",
                      file.toString()
                  )
                : List.of(COMMAND, "serve", "--config", file.toString());
            running.put(
                id,
                new ProcessBuilder(command)
                    .redirectErrorStream(true)
                    .redirectOutput(ProcessBuilder.Redirect.appendTo(out.toFile()))
                    .start()
            );
        } catch (IOException | InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    private void ready(Set<Integer> ids) {
        long end = System.currentTimeMillis() + START_MS;
        for (int id : ids)
            while (true) {
                Process p = running.get(id);
                if (!p.isAlive()) throw new IllegalStateException(
                    "node " + id + " ended with " + p.exitValue() + ": " + tail(id)
                );
                try (Socket s = new Socket("localhost", brokers.get(id))) {
                    break;
                } catch (IOException e) {
                    if (System.currentTimeMillis() > end) throw new IllegalStateException(
                        "node " + id + " does not listen: " + tail(id)
                    );
                    sleep(30);
                }
            }
        // every broker knows every running one
        Set<Integer> wanted = brokers
            .keySet()
            .stream()
            .filter(this::alive)
            .collect(Collectors.toSet());
        while (System.currentTimeMillis() < end) {
            boolean all = true;
            for (int id : ids) {
                MetadataResponse m = metadata(id, null);
                if (m == null) {
                    sleep(200);
                    return;
                } // a listener with SASL: the clients will wait
                if (
                    !m
                        .brokers()
                        .stream()
                        .map(n -> n.id())
                        .collect(Collectors.toSet())
                        .containsAll(wanted)
                ) all = false;
            }
            if (all) return;
            sleep(50);
        }
        throw new IllegalStateException(
            "the brokers never saw each other: " +
                ids.stream().map(this::tail).collect(Collectors.joining(" | "))
        );
    }

    /** Returns the Metadata response of a broker on a new connection; null if the listener requires a login. */
    MetadataResponse metadata(int id, String topic) {
        try (Socket s = new Socket("localhost", brokers.get(id))) {
            s.setSoTimeout(10_000);
            MetadataRequest r = (
                topic == null
                    ? MetadataRequest.Builder.allTopics()
                    : new MetadataRequest.Builder(List.of(topic), false)
            ).build((short) 12);
            RequestHeader h = new RequestHeader(ApiKeys.METADATA, (short) 12, "kit", 1);
            ByteBuffer b = Frames.serialize(r, h);
            DataOutputStream o = new DataOutputStream(s.getOutputStream());
            o.writeInt(b.remaining());
            o.write(b.array(), b.arrayOffset() + b.position(), b.remaining());
            o.flush();
            DataInputStream i = new DataInputStream(s.getInputStream());
            byte[] answer = new byte[i.readInt()];
            i.readFully(answer);
            return (MetadataResponse) AbstractResponse.parseResponse(ByteBuffer.wrap(answer), h);
        } catch (IOException | RuntimeException e) {
            return null;
        }
    }

    boolean alive(int id) {
        Process p = running.get(id);
        return p != null && p.isAlive();
    }

    public void stop(int id) {
        Process p = running.get(id);
        if (p == null) return;
        p.destroy();
        try {
            if (!p.waitFor(60, TimeUnit.SECONDS)) {
                p.destroyForcibly().waitFor();
            }
        } catch (InterruptedException e) {
            p.destroyForcibly();
            Thread.currentThread().interrupt();
        }
        running.remove(id);
    }

    public String bootstrapServers() {
        return brokers
            .values()
            .stream()
            .map(p -> "localhost:" + p)
            .collect(Collectors.joining(","));
    }

    public String bootstrapControllers() {
        return controllers
            .values()
            .stream()
            .map(p -> "localhost:" + p)
            .collect(Collectors.joining(","));
    }

    String tail(int id) {
        try {
            List<String> l = Files.readAllLines(home.resolve(id + "/out.log"));
            return String.join("\n", l.subList(Math.max(0, l.size() - 8), l.size()));
        } catch (IOException | RuntimeException e) {
            return "no log";
        }
    }

    static void sleep(long ms) {
        try {
            Thread.sleep(ms);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException(e);
        }
    }

    @Override
    public void close() {
        for (Process p : running.values()) p.destroyForcibly();
        for (Process p : running.values())
            try {
                p.waitFor();
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        running.clear();
        if (KEEP) {
            System.err.println("kept: " + home);
            return;
        }
        try (Stream<Path> w = Files.walk(home)) {
            w.sorted(Comparator.reverseOrder()).forEach(f -> f.toFile().delete());
        } catch (IOException | UncheckedIOException e) {
            /* left to the temporary folder */
        }
    }
}
