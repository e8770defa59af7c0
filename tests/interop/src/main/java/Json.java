import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;

/** One JSON object a line is how the tests and these clients talk: bytes are hex, and null stays null. */
final class Json {
    private static final ObjectMapper MAPPER = new ObjectMapper();
    private static final HexFormat HEX = HexFormat.of();

    private Json() {}

    static List<JsonNode> standardInput() throws IOException {
        List<JsonNode> lines = new ArrayList<>();
        lines(System.in).forEachRemaining(lines::add);
        return lines;
    }

    /** Reads each line when it is asked for: its writer may wait for an answer to the one before. */
    static Iterator<JsonNode> lines(InputStream from) {
        BufferedReader reader = new BufferedReader(new InputStreamReader(from, StandardCharsets.UTF_8));
        return reader.lines().map(Json::parsed).iterator();
    }

    private static JsonNode parsed(String line) {
        try {
            return MAPPER.readTree(line);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    static Map<String, String> strings(JsonNode object) {
        return MAPPER.convertValue(object, MAPPER.getTypeFactory().constructMapType(Map.class, String.class, String.class));
    }

    static ProducerRecord<byte[], byte[]> toSend(JsonNode line) {
        List<Header> headers = new ArrayList<>();
        for (JsonNode header : line.get("headers")) {
            headers.add(new RecordHeader(header.get(0).textValue(), bytes(header.get(1))));
        }
        return new ProducerRecord<>(
                line.get("topic").textValue(),
                line.get("partition").intValue(),
                line.get("timestamp").longValue(),
                bytes(line.get("key")),
                bytes(line.get("value")),
                headers);
    }

    static byte[] line(ConsumerRecord<byte[], byte[]> record) throws IOException {
        ObjectNode line = MAPPER.createObjectNode()
                .put("topic", record.topic())
                .put("partition", record.partition())
                .put("offset", record.offset())
                .put("timestamp", record.timestamp())
                .put("timestampType", record.timestampType().toString())
                .put("key", hex(record.key()))
                .put("value", hex(record.value()));
        ArrayNode headers = line.putArray("headers");
        for (Header header : record.headers()) {
            headers.addArray().add(header.key()).add(hex(header.value()));
        }
        return line((Object) line);
    }

    static byte[] line(Object object) throws IOException {
        return (MAPPER.writeValueAsString(object) + "\n").getBytes(StandardCharsets.UTF_8);
    }

    private static byte[] bytes(JsonNode hex) {
        return hex.isNull() ? null : HEX.parseHex(hex.textValue());
    }

    private static String hex(byte[] bytes) {
        return bytes == null ? null : HEX.formatHex(bytes);
    }
}
