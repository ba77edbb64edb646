import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.ByteBuffer;
import java.util.Base64;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.group.GroupCoordinatorRecordSerde;
import org.apache.kafka.coordinator.group.generated.CoordinatorRecordJsonConverters;
import org.apache.kafka.server.common.ApiMessageAndVersion;

/**
 * Records of __consumer_offsets written and read by the coordinator's own code; JSON a line.
 *
 * Compiled by Janino in the Spark JVM, as Assignors.java is.
 */
public class Records {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final GroupCoordinatorRecordSerde SERDE = new GroupCoordinatorRecordSerde();

    /** From type, key, version and value (null: a tombstone) to the bytes of both in base64. */
    public String write(String records) throws Exception {
        StringBuilder out = new StringBuilder();
        String[] lines = records.split("\n");
        for (int i = 0; i < lines.length; i++) {
            JsonNode given = JSON.readTree(lines[i]);
            short type = (short) ((JsonNode) given.get("type")).asInt();
            ApiMessage key = CoordinatorRecordJsonConverters.readRecordKeyFromJson(
                (JsonNode) given.get("key"), type);
            ObjectNode written = JSON.createObjectNode();
            if (((JsonNode) given.get("value")).isNull()) {
                written.put("key", encode(SERDE.serializeKey(CoordinatorRecord.tombstone(key))));
            } else {
                short version = (short) ((JsonNode) given.get("version")).asInt();
                CoordinatorRecord record = CoordinatorRecord.record(key, new ApiMessageAndVersion(
                    CoordinatorRecordJsonConverters.readRecordValueFromJson(
                        (JsonNode) given.get("value"), type, version),
                    version));
                written.put("key", encode(SERDE.serializeKey(record)));
                written.put("value", encode(SERDE.serializeValue(record)));
            }
            out.append(JSON.writeValueAsString(written)).append('\n');
        }
        return out.toString();
    }

    /** From the bytes of key and value to what they say, or the error that they are. */
    public String read(String records) throws Exception {
        StringBuilder out = new StringBuilder();
        String[] lines = records.split("\n");
        for (int i = 0; i < lines.length; i++) {
            JsonNode given = JSON.readTree(lines[i]);
            ObjectNode said = JSON.createObjectNode();
            try {
                CoordinatorRecord record = SERDE.deserialize(
                    decode((JsonNode) given.get("key")), decode((JsonNode) given.get("value")));
                said.put("type", (int) record.key().apiKey());
                said.set("key", CoordinatorRecordJsonConverters.writeRecordKeyAsJson(record.key()));
                if (record.value() != null) {
                    said.put("version", (int) record.value().version());
                    said.set("value", CoordinatorRecordJsonConverters.writeRecordValueAsJson(
                        record.value().message(), record.value().version()));
                }
            } catch (RuntimeException error) {
                said.removeAll();
                said.put("error", String.valueOf(error.getMessage()));
            }
            out.append(JSON.writeValueAsString(said)).append('\n');
        }
        return out.toString();
    }

    private static String encode(byte[] bytes) {
        return Base64.getEncoder().encodeToString(bytes);
    }

    private static ByteBuffer decode(JsonNode base64) {
        return base64 == null || base64.isNull()
            ? null : ByteBuffer.wrap(Base64.getDecoder().decode(base64.asText()));
    }
}
