import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.google.re2j.Pattern;
import com.google.re2j.PatternSyntaxException;

/** Of each regex the names that it matches as a whole, or what it is refused for. */
public class Regexes {
    private static final ObjectMapper JSON = new ObjectMapper();

    /** As the broker does (TopicRegexResolver, GroupMetadataManager), by RE2/J. */
    public String broker(String regexes, String names) throws Exception {
        ArrayNode answers = JSON.createArrayNode();
        JsonNode listed = JSON.readTree(regexes);
        for (int i = 0; i < listed.size(); i++) {
            try {
                Pattern pattern = Pattern.compile(((JsonNode) listed.get(i)).asText());
                ArrayNode found = JSON.createArrayNode();
                JsonNode of = JSON.readTree(names);
                for (int n = 0; n < of.size(); n++) {
                    String name = ((JsonNode) of.get(n)).asText();
                    if (pattern.matcher(name).matches()) found.add(name);
                }
                answers.add(found);
            } catch (PatternSyntaxException e) {
                answers.add(e.getDescription());
            }
        }
        return JSON.writeValueAsString(answers);
    }

    /** As a consumer does, by java.util.regex; one that is refused gives null. */
    public String client(String regexes, String names) throws Exception {
        ArrayNode answers = JSON.createArrayNode();
        JsonNode listed = JSON.readTree(regexes);
        for (int i = 0; i < listed.size(); i++) {
            try {
                java.util.regex.Pattern pattern =
                        java.util.regex.Pattern.compile(((JsonNode) listed.get(i)).asText());
                ArrayNode found = JSON.createArrayNode();
                JsonNode of = JSON.readTree(names);
                for (int n = 0; n < of.size(); n++) {
                    String name = ((JsonNode) of.get(n)).asText();
                    if (pattern.matcher(name).matches()) found.add(name);
                }
                answers.add(found);
            } catch (java.util.regex.PatternSyntaxException e) {
                answers.addNull();
            }
        }
        return JSON.writeValueAsString(answers);
    }
}
