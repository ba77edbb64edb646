import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.coordinator.group.GroupConfig;
import org.apache.kafka.coordinator.group.GroupCoordinatorConfig;
import org.apache.kafka.coordinator.group.modern.share.ShareGroupConfig;

/** What a broker says of its own settings of groups and of a group's settings; null: it takes them. */
public class Limits {
    private static final ObjectMapper JSON = new ObjectMapper();

    public String ofBroker(String cases) throws Exception {
        ArrayNode answers = JSON.createArrayNode();
        JsonNode listed = JSON.readTree(cases);
        for (int i = 0; i < listed.size(); i++) {
            try {
                new GroupCoordinatorConfig(config(settings((JsonNode) listed.get(i))));
                answers.addNull();
            } catch (RuntimeException e) {
                answers.add(String.valueOf(e.getMessage()));
            }
        }
        return JSON.writeValueAsString(answers);
    }

    public String ofGroup(String cases) throws Exception {
        ArrayNode answers = JSON.createArrayNode();
        JsonNode listed = JSON.readTree(cases);
        AbstractConfig defaults = config(new HashMap());
        GroupCoordinatorConfig broker = new GroupCoordinatorConfig(defaults);
        for (int i = 0; i < listed.size(); i++) {
            try {
                Map settings = settings((JsonNode) listed.get(i));
                GroupConfig.validate(settings, broker, new ShareGroupConfig(defaults));
                answers.addNull();
            } catch (RuntimeException e) {
                answers.add(String.valueOf(e.getMessage()));
            }
        }
        return JSON.writeValueAsString(answers);
    }

    private static AbstractConfig config(Map settings) {
        ArrayList definitions = new ArrayList();
        definitions.add(GroupCoordinatorConfig.CONFIG_DEF);
        definitions.add(ShareGroupConfig.CONFIG_DEF);
        return new AbstractConfig(Utils.mergeConfigs(definitions), settings, false);
    }

    private static Map settings(JsonNode given) {
        Map settings = new HashMap();
        Iterator names = given.fieldNames();
        while (names.hasNext()) {
            String name = (String) names.next();
            settings.put(name, ((JsonNode) given.get(name)).asText());
        }
        return settings;
    }
}
