import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collections;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;

/**
 * Kafka's own assignors over many groups in one call from Python.
 *
 * Compiled in the Spark JVM by Janino, which Spark ships, so a JRE is enough. Janino knows no
 * lambdas, ignores type arguments and takes a narrowed return type for the wide one: hence the
 * casts, the anonymous class and at().
 */
public class Assignors {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

    /** Groups in, one line each; out, for each group a line: its assignment or what it threw. */
    public String assign(String groups, final long millis) throws Exception {
        StringBuilder out = new StringBuilder();
        String[] lines = groups.split("\n");
        for (int i = 0; i < lines.length; i++) {
            final JsonNode group = JSON.readTree(lines[i]);
            out.append(JSON.writeValueAsString(limited(group, millis))).append('\n');
        }
        return out.toString();
    }

    /** Of each group whether its assignor finds, wherever it asks itself, that racks count. */
    public List rackUse(String groups, final long millis) throws Exception {
        List uses = new ArrayList();
        String[] lines = groups.split("\n");
        for (int i = 0; i < lines.length; i++) {
            final JsonNode group = JSON.readTree(lines[i]);
            final ConsumerPartitionAssignor assignor = watched(at(group, "assignor").asText());
            FutureTask task = new FutureTask(new Callable() {
                public Object call() throws Exception {
                    return answer(group, assignor);
                }
            });
            ended(task, millis);
            uses.add(Boolean.valueOf(((Watched) assignor).usesRacks()));
        }
        return uses;
    }

    private interface Watched {
        boolean usesRacks();
    }

    private static class WatchedRange extends RangeAssignor implements Watched {
        private boolean uses;

        protected boolean useRackAwareAssignment(Set consumers, Set replicas, Map partitions) {
            boolean now = super.useRackAwareAssignment(consumers, replicas, partitions);
            uses |= now;
            return now;
        }

        public boolean usesRacks() {
            return uses;
        }
    }

    private static class WatchedSticky extends StickyAssignor implements Watched {
        private boolean uses;

        protected boolean useRackAwareAssignment(Set consumers, Set replicas, Map partitions) {
            boolean now = super.useRackAwareAssignment(consumers, replicas, partitions);
            uses |= now;
            return now;
        }

        public boolean usesRacks() {
            return uses;
        }
    }

    private static class WatchedCooperative extends CooperativeStickyAssignor implements Watched {
        private boolean uses;

        protected boolean useRackAwareAssignment(Set consumers, Set replicas, Map partitions) {
            boolean now = super.useRackAwareAssignment(consumers, replicas, partitions);
            uses |= now;
            return now;
        }

        public boolean usesRacks() {
            return uses;
        }
    }

    private static ConsumerPartitionAssignor watched(String name) {
        if (name.equals("range")) return new WatchedRange();
        if (name.equals("sticky")) return new WatchedSticky();
        if (name.equals("cooperative-sticky")) return new WatchedCooperative();
        throw new IllegalArgumentException(name);
    }

    /** Nanoseconds that the assignors alone took for all groups, one after the other, each time. */
    public List time(String groups, int times) throws Exception {
        String[] lines = groups.split("\n");
        List taken = new ArrayList();
        for (int i = 0; i < times; i++) {
            ConsumerPartitionAssignor[] assignors = new ConsumerPartitionAssignor[lines.length];
            Cluster[] clusters = new Cluster[lines.length];
            ConsumerPartitionAssignor.GroupSubscription[] members =
                new ConsumerPartitionAssignor.GroupSubscription[lines.length];
            for (int g = 0; g < lines.length; g++) {  // anew: reading user data uses it up
                JsonNode group = JSON.readTree(lines[g]);
                String name = at(group, "assignor").asText();
                assignors[g] = assignor(name);
                clusters[g] = cluster(at(group, "topics"));
                members[g] = new ConsumerPartitionAssignor.GroupSubscription(
                    subscriptions(at(group, "members"), name.equals("sticky")));
            }
            long start = System.nanoTime();
            for (int g = 0; g < lines.length; g++) assignors[g].assign(clusters[g], members[g]);
            taken.add(Long.valueOf(System.nanoTime() - start));
        }
        return taken;
    }

    private static ObjectNode limited(final JsonNode group, long millis) throws Exception {
        FutureTask task = new FutureTask(new Callable() {
            public Object call() throws Exception {
                return answer(group, assignor(at(group, "assignor").asText()));
            }
        });
        return ended(task, millis);
    }

    /** Its answer, or TimeLimit once it has used so much processor time: machines stand still at times. */
    private static ObjectNode ended(FutureTask task, long millis) throws Exception {
        Thread thread = new Thread(task, "assignor");
        thread.setDaemon(true);
        thread.start();
        ObjectNode failed = JSON.createObjectNode();
        long left = millis;
        while (true) {
            try {
                return (ObjectNode) task.get(left, TimeUnit.MILLISECONDS);
            } catch (ExecutionException e) {
                return failed.put("error", e.getCause().getClass().getSimpleName());
            } catch (TimeoutException e) {
                left = millis - THREADS.getThreadCpuTime(thread.getId()) / 1000000;
                if (left > 0) continue;
                stop(thread);
                return failed.put("error", "TimeLimit");
            }
        }
    }

    /** An assignor that never ends hears no interrupt; newer Javas than 19 leave it running. */
    private static void stop(Thread thread) {
        thread.setPriority(Thread.MIN_PRIORITY);
        try {
            thread.stop();
        } catch (UnsupportedOperationException e) {
            thread.interrupt();
        }
    }

    private static ObjectNode answer(JsonNode group, ConsumerPartitionAssignor assignor)
        throws Exception {
        String name = at(group, "assignor").asText();
        Map subscriptions = subscriptions(at(group, "members"), name.equals("sticky"));
        Map assigned = assignor
            .assign(cluster(at(group, "topics")),
                new ConsumerPartitionAssignor.GroupSubscription(subscriptions))
            .groupAssignment();
        ObjectNode members = JSON.createObjectNode();
        for (Iterator it = subscriptions.keySet().iterator(); it.hasNext();) {
            String member = (String) it.next();
            ArrayNode list = members.putArray(member);
            ConsumerPartitionAssignor.Assignment given =
                (ConsumerPartitionAssignor.Assignment) assigned.get(member);
            if (given == null) continue;
            for (Iterator tps = given.partitions().iterator(); tps.hasNext();) {
                TopicPartition tp = (TopicPartition) tps.next();
                list.addArray().add(tp.topic()).add(tp.partition());
            }
        }
        ObjectNode answer = JSON.createObjectNode();
        answer.set("members", members);
        return answer;
    }

    static ConsumerPartitionAssignor assignor(String name) {
        if (name.equals("range")) return new RangeAssignor();
        if (name.equals("roundrobin")) return new RoundRobinAssignor();
        if (name.equals("sticky")) return new StickyAssignor();
        if (name.equals("cooperative-sticky")) return new CooperativeStickyAssignor();
        throw new IllegalArgumentException(name);
    }

    private static Cluster cluster(JsonNode topics) {
        Map nodes = new HashMap();
        List partitions = new ArrayList();
        for (Iterator it = topics.fields(); it.hasNext();) {
            Map.Entry topic = (Map.Entry) it.next();
            JsonNode racks = (JsonNode) topic.getValue();
            int count = racks.isInt() ? racks.asInt() : racks.size();
            for (int p = 0; p < count; p++) {
                Node[] replicas = replicas(racks.isInt() ? null : at(racks, p), nodes);
                partitions.add(new PartitionInfo(
                    (String) topic.getKey(), p, replicas[0], replicas, replicas));
            }
        }
        return new Cluster("oracle", nodes.values(), partitions,
            Collections.emptySet(), Collections.emptySet());
    }

    /** One broker a rack is enough; without racks, one broker that has none. */
    private static Node[] replicas(JsonNode racks, Map nodes) {
        int count = racks == null || racks.isEmpty() ? 1 : racks.size();
        Node[] replicas = new Node[count];
        for (int i = 0; i < count; i++) {
            boolean none = racks == null || racks.isEmpty() || at(racks, i).isNull();
            String rack = none ? null : at(racks, i).asText();
            Node node = (Node) nodes.get(rack);
            if (node == null) {
                node = new Node(nodes.size(), "broker", 9092, rack);
                nodes.put(rack, node);
            }
            replicas[i] = node;
        }
        return replicas;
    }

    /** A fresh map with no argument, filled in JoinGroup order, as the group leader does it. */
    private static Map subscriptions(JsonNode members, boolean sticky) throws Exception {
        Map subscriptions = new HashMap();
        for (Iterator it = members.iterator(); it.hasNext();) {
            JsonNode member = (JsonNode) it.next();
            List topics = new ArrayList();
            for (Iterator t = at(member, "topics").iterator(); t.hasNext();) {
                topics.add(((JsonNode) t.next()).asText());
            }
            List owned = new ArrayList();
            for (Iterator o = at(member, "owned").iterator(); o.hasNext();) {
                JsonNode tp = (JsonNode) o.next();
                owned.add(new TopicPartition(at(tp, 0).asText(), at(tp, 1).asInt()));
            }
            boolean has = !at(member, "generation").isNull();
            int generation = has ? at(member, "generation").asInt() : -1;
            ByteBuffer userData = null;
            if (!at(member, "user_data").isNull()) {
                userData = ByteBuffer.wrap(
                    Base64.getDecoder().decode(at(member, "user_data").asText()));
            } else if (sticky && (has || !owned.isEmpty())) {
                userData = claims(owned, has, generation);
            }
            JsonNode rack = at(member, "rack_id");
            ConsumerPartitionAssignor.Subscription subscription =
                new ConsumerPartitionAssignor.Subscription(
                    topics,
                    userData,
                    sticky ? Collections.emptyList() : owned,
                    generation,
                    rack.isNull() ? Optional.empty() : Optional.of(rack.asText()));
            JsonNode instance = at(member, "group_instance_id");
            subscription.setGroupInstanceId(
                instance.isNull() ? Optional.empty() : Optional.of(instance.asText()));
            subscriptions.put(at(member, "member_id").asText(), subscription);
        }
        return subscriptions;
    }

    /** StickyAssignor's user data: version 1 ends with the generation, version 0 lacks it. */
    private static ByteBuffer claims(List owned, boolean has, int generation) {
        Map byTopic = new LinkedHashMap();
        int size = 8;
        for (Iterator it = owned.iterator(); it.hasNext();) {
            TopicPartition tp = (TopicPartition) it.next();
            List partitions = (List) byTopic.get(tp.topic());
            if (partitions == null) {
                partitions = new ArrayList();
                byTopic.put(tp.topic(), partitions);
                size += 6 + tp.topic().getBytes(StandardCharsets.UTF_8).length;
            }
            partitions.add(Integer.valueOf(tp.partition()));
            size += 4;
        }
        ByteBuffer data = ByteBuffer.allocate(size);
        data.putInt(byTopic.size());
        for (Iterator it = byTopic.entrySet().iterator(); it.hasNext();) {
            Map.Entry entry = (Map.Entry) it.next();
            byte[] topic = ((String) entry.getKey()).getBytes(StandardCharsets.UTF_8);
            List partitions = (List) entry.getValue();
            data.putShort((short) topic.length).put(topic).putInt(partitions.size());
            for (int i = 0; i < partitions.size(); i++) {
                data.putInt(((Integer) partitions.get(i)).intValue());
            }
        }
        if (has) data.putInt(generation);
        data.flip();
        return data;
    }

    private static JsonNode at(JsonNode node, String field) {
        return (JsonNode) node.get(field);
    }

    private static JsonNode at(JsonNode node, int index) {
        return (JsonNode) node.get(index);
    }
}
