import com.fasterxml.jackson.databind.JsonNode;
import java.nio.ByteBuffer;
import java.util.HexFormat;
import java.util.Map;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.server.common.ApiMessageAndVersion;

/**
 * Serializes the metadata records on standard input, {"type", "version", "data"} a line with the data as Kafka's own
 * converter of that type has it. Prints a line {"record"} for each.
 */
public final class MetadataRecords {
    public static void main(String[] args) throws Exception {
        for (JsonNode line : Json.standardInput()) {
            short version = line.get("version").shortValue();
            Class<?> converter = Class.forName(
                    "org.apache.kafka.common.metadata." + line.get("type").textValue() + "JsonConverter");
            Object message =
                    converter.getMethod("read", JsonNode.class, short.class).invoke(null, line.get("data"), version);
            System.out.write(Json.line(Map.of("record", serialized((ApiMessage) message, version))));
        }
        System.out.flush();
    }

    private static String serialized(ApiMessage message, short version) {
        var record = new ApiMessageAndVersion(message, version);
        var cache = new ObjectSerializationCache();
        ByteBuffer bytes = ByteBuffer.allocate(MetadataRecordSerde.INSTANCE.recordSize(record, cache));
        MetadataRecordSerde.INSTANCE.write(record, cache, new ByteBufferAccessor(bytes));
        return HexFormat.of().formatHex(bytes.array());
    }
}
