import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.common.errors.UnsupportedVersionException;
import org.apache.kafka.common.metadata.MetadataJsonConverters;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.image.writer.ImageWriterOptions;
import org.apache.kafka.image.writer.RecordListWriter;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.MetadataVersion;

/**
 * Writes an image at every lower metadata.version, as a controller does for a downgrade. Standard input: the image's
 * records, JSON lines {"type_id", "version", "data"}. Prints for each level a line {"level", "metadata_changed",
 * "losses", "records"}; a record that cannot be written in its version has "error" in place of "data".
 */
public final class Downgraded {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] args) throws Exception {
        MetadataImage image = read();
        MetadataVersion newest = image.features().metadataVersionOrThrow();
        for (MetadataVersion version : MetadataVersion.VERSIONS) {
            if (version.isLessThan(newest)) {
                System.out.println(JSON.writeValueAsString(write(image, version, newest)));
            }
        }
    }

    private static MetadataImage read() throws Exception {
        MetadataDelta delta = new MetadataDelta.Builder().setImage(MetadataImage.EMPTY).build();
        var input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            JsonNode record = JSON.readTree(line);
            short version = record.get("version").shortValue();
            delta.replay(MetadataJsonConverters.readJson(
                    record.get("data"), record.get("type_id").shortValue(), version));
        }
        return delta.apply(new MetadataProvenance(0, 0, 0, true));
    }

    private static ObjectNode write(MetadataImage image, MetadataVersion version, MetadataVersion newest) {
        Set<String> losses = new TreeSet<>();
        RecordListWriter writer = new RecordListWriter();
        image.write(writer, new ImageWriterOptions.Builder(image)
                .setMetadataVersion(version)
                .setLossHandler(loss -> losses.add(loss.loss()))
                .build());
        ObjectNode line = JSON.createObjectNode();
        line.put("level", version.featureLevel());
        line.put("metadata_changed", MetadataVersion.checkIfMetadataChanged(newest, version));
        losses.forEach(line.putArray("losses")::add);
        ArrayNode records = line.putArray("records");
        for (ApiMessageAndVersion record : writer.records()) {
            records.add(json(record));
        }
        return line;
    }

    private static ObjectNode json(ApiMessageAndVersion record) {
        ApiMessage message = record.message();
        ObjectNode line = JSON.createObjectNode();
        line.put("type_id", message.apiKey());
        line.put("version", record.version());
        try {
            line.set("data", MetadataJsonConverters.writeJson(message, record.version()));
        } catch (UnsupportedVersionException error) {
            line.put("error", error.getMessage());
        }
        return line;
    }
}
