import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.net.InetAddress;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.message.ConsumerGroupDescribeResponseData;
import org.apache.kafka.common.message.ConsumerGroupHeartbeatRequestData;
import org.apache.kafka.common.message.ConsumerGroupHeartbeatResponseData;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.common.utils.internals.LogContext;
import org.apache.kafka.coordinator.common.runtime.CoordinatorExecutor;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataDelta;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataImage;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.common.runtime.CoordinatorResult;
import org.apache.kafka.coordinator.common.runtime.CoordinatorTimer;
import org.apache.kafka.coordinator.group.GroupConfigManager;
import org.apache.kafka.coordinator.group.GroupCoordinatorConfig;
import org.apache.kafka.coordinator.group.GroupMetadataManager;
import org.apache.kafka.coordinator.group.api.assignor.ShareGroupPartitionAssignor;
import org.apache.kafka.coordinator.group.metrics.GroupCoordinatorMetricsShard;
import org.apache.kafka.coordinator.group.modern.consumer.ConsumerGroup;
import org.apache.kafka.coordinator.group.modern.consumer.ConsumerGroupMember;
import org.apache.kafka.coordinator.group.modern.share.ShareGroupConfig;
import org.apache.kafka.coordinator.group.streams.assignor.StickyTaskAssignor;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.timeline.SnapshotRegistry;

/**
 * The broker's own group coordinator (GroupMetadataManager), without a broker around it: one a
 * script, its time standing still until a script moves it, its records replayed as they come.
 *
 * Compiled by Janino in the Spark JVM, as Assignors.java is.
 */
public class Coordinator {
    private static final ObjectMapper JSON = new ObjectMapper();
    /** The manager's own methods by the class of a record's key. */
    private static final Map REPLAYS = replays();

    /** Scripts in, one line each; out, for each a line: what each of its steps answered. */
    public String run(String scripts) throws Exception {
        StringBuilder out = new StringBuilder();
        String[] lines = scripts.split("\n");
        for (int i = 0; i < lines.length; i++) {
            out.append(JSON.writeValueAsString(new One(JSON.readTree(lines[i])).run())).append('\n');
        }
        return out.toString();
    }

    private static Map replays() {
        Map replays = new HashMap();
        Method[] methods = GroupMetadataManager.class.getMethods();
        for (int i = 0; i < methods.length; i++) {
            if (methods[i].getName().equals("replay")) {
                replays.put(methods[i].getParameterTypes()[0], methods[i]);
            }
        }
        return replays;
    }

    /** One coordinator with one group, and the clients of the group's members. */
    static class One implements InvocationHandler {
        private final JsonNode script;
        private final String groupId;
        private final GroupMetadataManager manager;
        private final Map clients = new LinkedHashMap();
        private Image image = new Image(0L);
        private Image imageBefore;
        private Set deletedTopics = new HashSet();
        private Set createdTopics = new HashSet();
        private long now = 1000000L;
        /** What the manager wants done later: of timers by key when and what, of the executor what. */
        private final Map timers = new LinkedHashMap();
        private final Map tasks = new LinkedHashMap();
        private final GroupConfigManager configs;

        One(JsonNode script) throws Exception {
            this.script = script;
            groupId = text(script, "group");
            ArrayList definitions = new ArrayList();
            definitions.add(GroupCoordinatorConfig.CONFIG_DEF);
            definitions.add(ShareGroupConfig.CONFIG_DEF);
            AbstractConfig given =
                new AbstractConfig(Utils.mergeConfigs(definitions), settings(script), false);
            GroupCoordinatorConfig config = new GroupCoordinatorConfig(given);
            configs = new GroupConfigManager(config, new ShareGroupConfig(given));
            SnapshotRegistry registry = new SnapshotRegistry(new LogContext());
            Constructor constructor = GroupMetadataManager.class.getDeclaredConstructors()[0];
            constructor.setAccessible(true);
            manager = (GroupMetadataManager) constructor.newInstance(new Object[] {
                registry,
                new LogContext(),
                proxy(Time.class),
                proxy(CoordinatorTimer.class),
                proxy(CoordinatorExecutor.class),
                new GroupCoordinatorMetricsShard(
                    registry, new HashMap(), new TopicPartition("__consumer_offsets", 0)),
                image,
                config,
                configs,
                proxy(ShareGroupPartitionAssignor.class),
                Optional.empty(),
                Collections.singletonList(new StickyTaskAssignor())});
        }

        ArrayNode run() throws Exception {
            ArrayNode answers = JSON.createArrayNode();
            JsonNode steps = script.get("steps");
            for (int i = 0; i < steps.size(); i++) answers.add(step((JsonNode) steps.get(i)));
            return answers;
        }

        private JsonNode step(JsonNode step) throws Exception {
            String kind = text(step, "step");
            if (kind.equals("topics")) return topics((JsonNode) step.get("topics"));
            if (kind.equals("sleep")) {
                sleep(((JsonNode) step.get("ms")).asLong());
                return JSON.createObjectNode();
            }
            if (kind.equals("settings")) {
                Properties properties = new Properties();
                properties.putAll(settings(step));
                configs.updateGroupConfig(groupId, properties);
                return JSON.createObjectNode();
            }
            if (kind.equals("silence")) {
                clients.remove(text(step, "member"));
                return JSON.createObjectNode();
            }
            if (kind.equals("describe")) return describe();
            if (kind.equals("heartbeat")) return heartbeat(client(step), 0);
            if (kind.equals("leave")) return leave(client(step), ((JsonNode) step.get("epoch")).asInt());
            if (kind.equals("round")) return round(step);
            throw new IllegalArgumentException(kind);
        }

        /** The cluster's topics from now on: name to id and number of partitions. */
        private JsonNode topics(JsonNode topics) throws Exception {
            Image made = new Image(image.version + 1);
            for (Iterator it = topics.fields(); it.hasNext();) {
                Map.Entry entry = (Map.Entry) it.next();
                JsonNode topic = (JsonNode) entry.getValue();
                made.add(new Topic(
                    (String) entry.getKey(),
                    Uuid.fromString(((JsonNode) topic.get(0)).asText()),
                    ((JsonNode) topic.get(1)).asInt(),
                    (JsonNode) topic.get(2)));
            }
            deletedTopics = new HashSet(image.byId.keySet());
            deletedTopics.removeAll(made.byId.keySet());
            imageBefore = image;  // the manager looks up there what was deleted
            createdTopics = new HashSet(made.byId.keySet());
            createdTopics.removeAll(image.byId.keySet());
            image = made;
            manager.onMetadataUpdate(
                (CoordinatorMetadataDelta) proxy(CoordinatorMetadataDelta.class), made);
            return JSON.createObjectNode();
        }

        /** The client of a step's member; what the step says of it holds from then on. */
        private Client client(JsonNode step) {
            String id = text(step, "member");
            Client client = (Client) clients.get(id);
            if (client == null) {
                client = new Client(id);
                clients.put(id, client);
            }
            if (step.has("instance")) client.instance = text(step, "instance");
            if (step.has("assignor")) {
                client.assignor = text(step, "assignor");
                client.isChanged = true;
            }
            if (step.has("regex")) {
                client.regex = text(step, "regex");
                client.isChanged = true;
            }
            if (step.has("rack")) client.rack = text(step, "rack");
            if (step.has("topics")) {
                client.topics = new ArrayList();
                JsonNode topics = (JsonNode) step.get("topics");
                for (int i = 0; i < topics.size(); i++) {
                    client.topics.add(((JsonNode) topics.get(i)).asText());
                }
                client.isChanged = true;
            }
            return client;
        }

        /**
         * Heartbeats of many members one after the other. Those of a `round` are regular ones; with
         * `confirm` only members speak that have something to confirm.
         */
        private JsonNode round(JsonNode step) throws Exception {
            ObjectNode answers = JSON.createObjectNode();
            boolean confirm = step.get("confirm") != null && ((JsonNode) step.get("confirm")).asBoolean();
            JsonNode members = (JsonNode) step.get("members");
            for (int i = 0; i < members.size(); i++) {
                String id = ((JsonNode) members.get(i)).asText();
                Client client = (Client) clients.get(id);
                if (confirm && !client.mustConfirm) continue;
                answers.set(id, heartbeat(client, 0));
            }
            return answers;
        }

        private ObjectNode heartbeat(Client client, int leaveEpoch) throws Exception {
            boolean joins = client.epoch <= 0;
            ConsumerGroupHeartbeatRequestData request = new ConsumerGroupHeartbeatRequestData()
                .setGroupId(groupId)
                .setMemberId(client.id)
                .setInstanceId(client.instance)
                .setMemberEpoch(joins ? 0 : client.epoch);
            if (joins || client.isChanged) {
                request.setSubscribedTopicNames(client.topics)
                    .setSubscribedTopicRegex(client.regex)
                    .setServerAssignor(client.assignor);
            }
            if (joins) request.setRebalanceTimeoutMs(300000).setRackId(client.rack);
            if (joins || client.mustConfirm) request.setTopicPartitions(client.owned());
            client.isChanged = false;
            client.mustConfirm = false;
            ConsumerGroupHeartbeatResponseData answer;
            ObjectNode out = JSON.createObjectNode();
            try {
                answer = send(request);
            } catch (RuntimeException e) {
                return out.put("error", e.getClass().getSimpleName());
            }
            client.epoch = answer.memberEpoch();
            out.put("epoch", client.epoch);
            if (answer.assignment() != null) {
                Map before = client.owned;
                client.owned = new TreeMap();
                Iterator it = answer.assignment().topicPartitions().iterator();
                while (it.hasNext()) {
                    ConsumerGroupHeartbeatResponseData.TopicPartitions of =
                        (ConsumerGroupHeartbeatResponseData.TopicPartitions) it.next();
                    client.owned.put(of.topicId(), new TreeSet(of.partitions()));
                }
                client.mustConfirm = !before.equals(client.owned);
                out.set("assignment", named(client.owned));
            }
            ConsumerGroup group = manager.consumerGroup(groupId, Long.MAX_VALUE);
            out.put("state", ((ConsumerGroupMember) group.members().get(client.id)).state().name());
            return out;
        }

        private ObjectNode leave(Client client, int epoch) throws Exception {
            clients.remove(client.id);
            ConsumerGroupHeartbeatRequestData request = new ConsumerGroupHeartbeatRequestData()
                .setGroupId(groupId)
                .setMemberId(client.id)
                .setInstanceId(client.instance)
                .setMemberEpoch(epoch);
            ObjectNode out = JSON.createObjectNode();
            try {
                return out.put("epoch", send(request).memberEpoch());
            } catch (RuntimeException e) {
                return out.put("error", e.getClass().getSimpleName());
            }
        }

        private ConsumerGroupHeartbeatResponseData send(ConsumerGroupHeartbeatRequestData request)
            throws Exception {
            CoordinatorResult result = manager.consumerGroupHeartbeat(
                (AuthorizableRequestContext) proxy(AuthorizableRequestContext.class), request);
            replayAll(result);
            runTasks();
            return (ConsumerGroupHeartbeatResponseData) result.response();
        }

        private void replayAll(CoordinatorResult result) throws Exception {
            for (Iterator it = result.records().iterator(); it.hasNext();) {
                replay((CoordinatorRecord) it.next());
            }
        }

        /** The resolution of regexes, which a broker does in the background. */
        private void runTasks() throws Exception {
            while (!tasks.isEmpty()) {
                Object[] task = (Object[]) tasks.remove(tasks.keySet().iterator().next());
                Object found;
                try {
                    found = ((CoordinatorExecutor.TaskRunnable) task[1]).run();
                } catch (Throwable e) {
                    throw new IllegalStateException(e);
                }
                replayAll(((CoordinatorExecutor.TaskOperation) task[2]).onComplete(found, null));
            }
        }

        /** Moves the time; timers go off on the way. Clients that are there keep their sessions. */
        private void sleep(long ms) throws Exception {
            long end = now + ms;
            while (true) {
                String next = null;
                long when = end;
                for (Iterator it = timers.entrySet().iterator(); it.hasNext();) {
                    Map.Entry entry = (Map.Entry) it.next();
                    long at = ((Long) ((Object[]) entry.getValue())[0]).longValue();
                    if (at <= when && !isKept((String) entry.getKey())) {
                        next = (String) entry.getKey();
                        when = at;
                    }
                }
                if (next == null) break;
                now = Math.max(now, when);
                CoordinatorTimer.TimeoutOperation operation =
                    (CoordinatorTimer.TimeoutOperation) ((Object[]) timers.remove(next))[1];
                replayAll(operation.generateRecords());
            }
            now = end;
        }

        private boolean isKept(String timer) {
            if (!timer.startsWith("session-timeout-")) return false;
            for (Iterator it = clients.keySet().iterator(); it.hasNext();) {
                if (timer.endsWith("-" + it.next())) return true;
            }
            return false;
        }

        private void replay(CoordinatorRecord record) throws Exception {
            Method replay = (Method) REPLAYS.get(record.key().getClass());
            Object value = record.value() == null ? null : record.value().message();
            try {
                replay.invoke(manager, new Object[] {record.key(), value});
            } catch (InvocationTargetException e) {
                throw (Exception) e.getCause();
            }
        }

        private ObjectNode describe() {
            ConsumerGroupDescribeResponseData.DescribedGroup group =
                (ConsumerGroupDescribeResponseData.DescribedGroup) manager
                    .consumerGroupDescribe(Collections.singletonList(groupId), Long.MAX_VALUE).get(0);
            ObjectNode out = JSON.createObjectNode();
            out.put("group_state", group.groupState());
            out.put("group_epoch", group.groupEpoch());
            out.put("assignment_epoch", group.assignmentEpoch());
            out.put("assignor", group.assignorName());
            ArrayNode members = out.putArray("members");
            for (Iterator it = group.members().iterator(); it.hasNext();) {
                ConsumerGroupDescribeResponseData.Member member =
                    (ConsumerGroupDescribeResponseData.Member) it.next();
                ObjectNode row = members.addObject();
                row.put("member_id", member.memberId());
                row.put("instance", member.instanceId());
                row.put("epoch", member.memberEpoch());
                row.put("state", ((ConsumerGroupMember) manager.consumerGroup(groupId, Long.MAX_VALUE)
                    .members().get(member.memberId())).state().name());
                ArrayNode topics = row.putArray("topics");
                for (Iterator t = member.subscribedTopicNames().iterator(); t.hasNext();) {
                    topics.add((String) t.next());
                }
                Client client = (Client) clients.get(member.memberId());
                if (client != null) row.set("owned", named(client.owned));
                row.set("assignment", listed(member.assignment()));
                row.set("target", listed(member.targetAssignment()));
            }
            return out;
        }

        /** Topic id, name, and the partitions in the order of the coordinator's own record. */
        private static ArrayNode listed(ConsumerGroupDescribeResponseData.Assignment assignment) {
            ArrayNode out = JSON.createArrayNode();
            for (Iterator it = assignment.topicPartitions().iterator(); it.hasNext();) {
                ConsumerGroupDescribeResponseData.TopicPartitions of =
                    (ConsumerGroupDescribeResponseData.TopicPartitions) it.next();
                ArrayNode topic = out.addArray().add(of.topicId().toString()).add(of.topicName());
                ArrayNode numbers = topic.addArray();
                for (Iterator n = of.partitions().iterator(); n.hasNext();) {
                    numbers.add((Integer) n.next());
                }
            }
            return out;
        }

        private static ArrayNode named(Map owned) {
            ArrayNode out = JSON.createArrayNode();
            for (Iterator it = owned.entrySet().iterator(); it.hasNext();) {
                Map.Entry entry = (Map.Entry) it.next();
                for (Iterator n = ((Set) entry.getValue()).iterator(); n.hasNext();) {
                    out.addArray().add(entry.getKey().toString()).add((Integer) n.next());
                }
            }
            return out;
        }

        private Object proxy(Class type) {
            return Proxy.newProxyInstance(
                Coordinator.class.getClassLoader(), new Class[] {type}, this);
        }

        /** Time, timers, metadata's changes and the rest of what a broker has around its manager. */
        public Object invoke(Object proxy, Method method, Object[] args) throws Throwable {
            String name = method.getName();
            if (name.startsWith("schedule") && method.getDeclaringClass() == CoordinatorTimer.class) {
                if (!name.equals("scheduleIfAbsent") || !timers.containsKey(args[0])) {
                    long delay = ((TimeUnit) args[2]).toMillis(((Long) args[1]).longValue());
                    Object[] timer = {Long.valueOf(now + delay), args[args.length - 1]};
                    timers.put(args[0], timer);
                }
                return null;
            }
            if (name.equals("schedule")) return Boolean.valueOf(tasks.put(args[0], args) == null);
            if (name.equals("cancel")) {
                timers.remove(args[0]);
                return null;
            }
            if (name.equals("isScheduled")) {
                return Boolean.valueOf(timers.containsKey(args[0]) || tasks.containsKey(args[0]));
            }
            if (name.equals("milliseconds") || name.equals("hiResClockMs")) return Long.valueOf(now);
            if (name.equals("nanoseconds")) return Long.valueOf(now * 1000000L);
            if (name.equals("image")) return imageBefore;
            if (name.equals("createdTopicIds")) return createdTopics;
            if (name.equals("changedTopicIds")) return image.byId.keySet();
            if (name.equals("deletedTopicIds")) return deletedTopics;
            if (name.equals("clientId")) return "client";
            if (name.equals("clientAddress")) return InetAddress.getLoopbackAddress();
            if (name.equals("requestVersion")) return Integer.valueOf(1);
            if (name.equals("hashCode")) return Integer.valueOf(System.identityHashCode(proxy));
            if (name.equals("equals")) return Boolean.valueOf(proxy == args[0]);
            Class type = method.getReturnType();
            if (type == Boolean.TYPE) return Boolean.FALSE;
            if (type == Integer.TYPE) return Integer.valueOf(0);
            if (type == Long.TYPE) return Long.valueOf(0L);
            return null;
        }

        private static Map settings(JsonNode script) {
            Map settings = new HashMap();
            if (!script.has("settings")) return settings;
            for (Iterator it = ((JsonNode) script.get("settings")).fields(); it.hasNext();) {
                Map.Entry entry = (Map.Entry) it.next();
                settings.put(entry.getKey(), ((JsonNode) entry.getValue()).asText());
            }
            return settings;
        }

        private static String text(JsonNode node, String field) {
            JsonNode value = (JsonNode) node.get(field);
            return value == null || value.isNull() ? null : value.asText();
        }
    }

    static class Image implements CoordinatorMetadataImage {
        final Map byName = new LinkedHashMap();
        final Map byId = new LinkedHashMap();
        final long version;

        Image(long version) {
            this.version = version;
        }

        void add(Topic topic) {
            byName.put(topic.name, topic);
            byId.put(topic.id, topic);
        }

        public Set topicIds() {
            return byId.keySet();
        }

        public Set topicNames() {
            return byName.keySet();
        }

        public Optional topicMetadata(String name) {
            return Optional.ofNullable(byName.get(name));
        }

        public Optional topicMetadata(Uuid id) {
            return Optional.ofNullable(byId.get(id));
        }

        public CoordinatorMetadataDelta emptyDelta() {
            return CoordinatorMetadataDelta.EMPTY;
        }

        public long version() {
            return version;
        }

        public boolean isEmpty() {
            return byId.isEmpty();
        }
    }

    static class Topic implements CoordinatorMetadataImage.TopicMetadata {
        final String name;
        final Uuid id;
        final int count;

        final JsonNode racks;

        /** Of each partition the racks of its replicas, or nothing. */
        Topic(String name, Uuid id, int count, JsonNode racks) {
            this.name = name;
            this.id = id;
            this.count = count;
            this.racks = racks;
        }

        public String name() {
            return name;
        }

        public Uuid id() {
            return id;
        }

        public int partitionCount() {
            return count;
        }

        public List partitionRacks(int partition) {
            List found = new ArrayList();
            if (racks != null && partition < racks.size()) {
                JsonNode listed = (JsonNode) racks.get(partition);
                for (int i = 0; i < listed.size(); i++) found.add(((JsonNode) listed.get(i)).asText());
            }
            return found;
        }
    }

    /** As a Java consumer that reconciles whatever it is told at once, and confirms it. */
    static class Client {
        final String id;
        String instance;
        String assignor;
        String rack;
        String regex;
        List topics = new ArrayList();
        int epoch;
        boolean isChanged;
        boolean mustConfirm;
        Map owned = new TreeMap();

        Client(String id) {
            this.id = id;
        }

        List owned() {
            List list = new ArrayList();
            for (Iterator it = owned.entrySet().iterator(); it.hasNext();) {
                Map.Entry entry = (Map.Entry) it.next();
                list.add(new ConsumerGroupHeartbeatRequestData.TopicPartitions()
                    .setTopicId((Uuid) entry.getKey())
                    .setPartitions(new ArrayList((Set) entry.getValue())));
            }
            return list;
        }
    }
}
