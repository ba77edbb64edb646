import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.regex.Pattern;
import org.apache.kafka.clients.consumer.CloseOptions;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Real consumers of the Java client, each polling on a thread of its own, driven from Python.
 *
 * Compiled by Janino in the Spark JVM, as Assignors.java is.
 */
public class Consumers {
    private static final ObjectMapper JSON = new ObjectMapper();
    private final Map workers = new LinkedHashMap();
    private final List ended = new ArrayList();

    /** A consumer that subscribes to a JSON list of topics or, given a JSON string, a pattern. */
    public void start(String name, String settings, String topics) throws Exception {
        if (workers.containsKey(name)) throw new IllegalArgumentException(name + " is running");
        Map config = new HashMap();
        for (Iterator it = JSON.readTree(settings).fields(); it.hasNext();) {
            Map.Entry setting = (Map.Entry) it.next();
            config.put(setting.getKey(), ((JsonNode) setting.getValue()).asText());
        }
        Worker worker = new Worker(name, config);
        worker.subscription = JSON.readTree(topics);
        workers.put(name, worker);
        worker.start();
    }

    /** Another subscription, from the consumer's next poll on. */
    public void subscribe(String name, String topics) throws Exception {
        ((Worker) workers.get(name)).subscription = JSON.readTree(topics);
    }

    /** Close a consumer; a dynamic member leaves its group by that, a static one does not. */
    public void stop(String name) throws Exception {
        Worker worker = (Worker) workers.remove(name);
        ended.add(worker);
        worker.stopping = true;
        worker.join();
    }

    /** End a consumer without a word to its group, which misses it after the session timeout. */
    public void crash(String name) throws Exception {
        ((Worker) workers.get(name)).silently = true;
        stop(name);
    }

    public void stopAll() throws Exception {
        List all = new ArrayList(workers.values());
        for (int i = 0; i < all.size(); i++) ((Worker) all.get(i)).stopping = true;
        for (int i = 0; i < all.size(); i++) ((Worker) all.get(i)).join();
        workers.clear();
    }

    /** What every running consumer knows of itself, as one JSON object by name. */
    public String states() throws Exception {
        ObjectNode states = JSON.createObjectNode();
        for (Iterator it = workers.values().iterator(); it.hasNext();) {
            Worker worker = (Worker) it.next();
            states.set(worker.getName(), worker.state());
        }
        return JSON.writeValueAsString(states);
    }

    /** All calls of the listeners so far, of consumers that were stopped too: a JSON list. */
    public String events() throws Exception {
        List all = new ArrayList(ended);
        all.addAll(workers.values());
        ArrayNode events = JSON.createArrayNode();
        for (int i = 0; i < all.size(); i++) {
            Worker worker = (Worker) all.get(i);
            JsonNode of = worker.state().get("events");
            for (int n = 0; n < of.size(); n++) {
                events.add(((ObjectNode) of.get(n)).put("name", worker.getName()));
            }
        }
        return JSON.writeValueAsString(events);
    }

    static ArrayNode asJson(Collection partitions) {
        Map byTopic = new TreeMap();
        for (Iterator it = partitions.iterator(); it.hasNext();) {
            TopicPartition tp = (TopicPartition) it.next();
            if (!byTopic.containsKey(tp.topic())) byTopic.put(tp.topic(), new TreeSet());
            ((TreeSet) byTopic.get(tp.topic())).add(Integer.valueOf(tp.partition()));
        }
        ArrayNode list = JSON.createArrayNode();
        for (Iterator it = byTopic.entrySet().iterator(); it.hasNext();) {
            Map.Entry topic = (Map.Entry) it.next();
            for (Iterator n = ((TreeSet) topic.getValue()).iterator(); n.hasNext();) {
                list.addArray().add((String) topic.getKey()).add((Integer) n.next());
            }
        }
        return list;
    }

    static class Worker extends Thread implements ConsumerRebalanceListener {
        private final Map config;
        private final long revoking;
        private final long betweenPolls;
        private final ArrayNode events = JSON.createArrayNode();
        private ObjectNode now = JSON.createObjectNode();
        volatile JsonNode subscription;
        volatile boolean stopping;
        volatile boolean silently;

        Worker(String name, Map config) {
            super(name);
            this.config = config;
            revoking = taken(config, "revoking.ms");
            betweenPolls = taken(config, "between.polls.ms");
            setDaemon(true);
        }

        /** A setting that is the worker's own; 0 where it is not given. */
        static long taken(Map config, String setting) {
            String value = (String) config.remove(setting);
            return value == null ? 0L : Long.parseLong(value);
        }

        public void run() {
            KafkaConsumer consumer = null;
            try {
                consumer = new KafkaConsumer(
                    config, new ByteArrayDeserializer(), new ByteArrayDeserializer());
                JsonNode subscribed = null;
                while (!stopping) {
                    JsonNode wanted = subscription;
                    if (wanted != subscribed) {
                        // The client takes a pattern after a list, or a list after a pattern, only so.
                        if (subscribed != null && subscribed.isTextual() != wanted.isTextual()) {
                            consumer.unsubscribe();
                        }
                        subscribe(consumer, wanted);
                    }
                    subscribed = wanted;
                    consumer.poll(Duration.ofMillis(betweenPolls == 0L ? 100L : 1L));
                    note(consumer);
                    Thread.sleep(betweenPolls);
                }
            } catch (Throwable e) {
                fail(e);
            } finally {
                if (consumer != null) close(consumer);
            }
        }

        private void close(KafkaConsumer consumer) {
            if (silently) {
                consumer.close(CloseOptions.groupMembershipOperation(
                    CloseOptions.GroupMembershipOperation.REMAIN_IN_GROUP));
            } else {
                // What is asked of the broker is sent at once; its answers are waited for.
                consumer.close(CloseOptions.timeout(Duration.ofSeconds(5)));
            }
        }

        private void subscribe(KafkaConsumer consumer, JsonNode topics) {
            if (topics.isTextual()) {
                consumer.subscribe(Pattern.compile(topics.asText()), this);
                return;
            }
            List names = new ArrayList();
            for (int i = 0; i < topics.size(); i++) {
                names.add(((JsonNode) topics.get(i)).asText());
            }
            consumer.subscribe(names, this);
        }

        // Not private: Janino makes such methods static, and they would lock another object.
        synchronized void note(KafkaConsumer consumer) {
            ObjectNode state = JSON.createObjectNode();
            state.put("group_id", consumer.groupMetadata().groupId());
            state.put("member_id", consumer.groupMetadata().memberId());
            state.put("generation", consumer.groupMetadata().generationId());
            state.set("assignment", asJson(consumer.assignment()));
            now = state;
        }

        synchronized void fail(Throwable e) {
            now.put("error", e.toString());
        }

        synchronized ObjectNode state() {
            ObjectNode state = now.deepCopy();
            state.set("events", events.deepCopy());
            return state;
        }

        synchronized void event(String kind, Collection partitions) {
            ObjectNode event = JSON.createObjectNode();
            event.put("event", kind);
            event.put("at", System.currentTimeMillis());
            event.set("partitions", asJson(partitions));
            events.add(event);
        }

        private void pause() {
            try {
                Thread.sleep(revoking);
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
        }

        public void onPartitionsAssigned(Collection partitions) {
            event("assigned", partitions);
        }

        public void onPartitionsRevoked(Collection partitions) {
            event("revoked", partitions);
            if (!partitions.isEmpty()) pause();
        }

        public void onPartitionsLost(Collection partitions) {
            event("lost", partitions);
        }
    }
}
