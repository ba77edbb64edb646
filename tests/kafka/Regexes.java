import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.google.re2j.Pattern;
import com.google.re2j.PatternSyntaxException;

/** The broker's regexes: which names each matches as a whole, or null where it is refused. */
public class Regexes {
    private static final ObjectMapper JSON = new ObjectMapper();

    public String run(String asked) throws Exception {
        JsonNode regexes = (JsonNode) JSON.readTree(asked).get(0);
        JsonNode names = (JsonNode) JSON.readTree(asked).get(1);
        ArrayNode answers = JSON.createArrayNode();
        for (int i = 0; i < regexes.size(); i++) {
            try {
                Pattern pattern = Pattern.compile(((JsonNode) regexes.get(i)).asText());
                ArrayNode found = answers.addArray();
                for (int n = 0; n < names.size(); n++) {
                    String name = ((JsonNode) names.get(n)).asText();
                    if (pattern.matcher(name).matches()) found.add(name);
                }
            } catch (PatternSyntaxException e) {
                answers.addNull();
            }
        }
        return JSON.writeValueAsString(answers);
    }
}
