import com.fasterxml.jackson.databind.JsonNode;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.Map;
import org.apache.kafka.common.header.internals.RecordHeader;

/** Prints what Kafka makes of the bytes of a header's key: {"key": hex} a line in, the same of its text out. */
public final class HeaderKeys {
    public static void main(String[] args) throws Exception {
        for (JsonNode line : Json.standardInput()) {
            ByteBuffer bytes = ByteBuffer.wrap(HexFormat.of().parseHex(line.get("key").textValue()));
            byte[] text = new RecordHeader(bytes, null).key().getBytes(StandardCharsets.UTF_8);
            System.out.write(Json.line(Map.of("key", HexFormat.of().formatHex(text))));
        }
        System.out.flush();
    }
}
