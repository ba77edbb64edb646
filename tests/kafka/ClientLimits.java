import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Iterator;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.common.config.ConfigDef;

/** What Kafka's own {@code ConsumerConfig} says of settings, and which it knows. */
public class ClientLimits {
    private static final ObjectMapper JSON = new ObjectMapper();

    /** By setting its type, and its validator as text, or null. */
    public String definitions() throws Exception {
        ObjectNode answer = JSON.createObjectNode();
        Iterator keys = new TreeMap(ConsumerConfig.configDef().configKeys()).values().iterator();
        while (keys.hasNext()) {
            ConfigDef.ConfigKey key = (ConfigDef.ConfigKey) keys.next();
            ObjectNode definition = answer.putObject(key.name);
            definition.put("type", key.type.name());
            definition.put("validator", key.validator == null ? null : key.validator.toString());
        }
        return JSON.writeValueAsString(answer);
    }

    /** For each of the settings the message of the error, or null. */
    public String refusals(String cases) throws Exception {
        ArrayNode answers = JSON.createArrayNode();
        JsonNode listed = JSON.readTree(cases);
        for (int i = 0; i < listed.size(); i++) {
            Properties settings = new Properties();
            Iterator names = ((JsonNode) listed.get(i)).fieldNames();
            while (names.hasNext()) {
                String name = (String) names.next();
                settings.put(name, ((JsonNode) ((JsonNode) listed.get(i)).get(name)).asText());
            }
            try {
                new ConsumerConfig(settings);
                answers.addNull();
            } catch (RuntimeException e) {
                answers.add(String.valueOf(e.getMessage()));
            }
        }
        return JSON.writeValueAsString(answers);
    }
}
